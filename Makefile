# `make` lists what can be done here. Everything runs in .venv, which `make setup` makes.
PYTHON ?= python3
BIN := .venv/bin
IMAGES ?=
COMPOSE = $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)

.PHONY: help setup test process browser size test-all containers images lint format generate verify check walk sim bench chaos up down

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | expand -t 14

setup: .venv/installed ## make .venv and install Crewline with its test and lint tools

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,dev]'
	@touch $@

test: setup ## the fast tests: no Docker, no Redis of yours is touched
	$(BIN)/pytest -n 2

process: setup ## whole teams in processes of their own
	$(BIN)/pytest -n 4 -m process

browser: setup ## the pages in a headless browser (Debian: chromium)
	$(BIN)/pytest -m browser

size: setup ## what a transition costs in a Team of 100,000 tasks
	$(BIN)/pytest -m size

containers: setup images ## the tests that need Docker
	TESTCONTAINERS_RYUK_DISABLED=true $(BIN)/pytest -m container

test-all: test process size browser containers chaos ## every test

lint: setup ## style, types, layers, Lua
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	@if command -v luacheck >/dev/null; then luacheck --quiet coordinator; else echo "luacheck is not installed: Lua not checked"; fi

format: setup ## let ruff format and sort
	$(BIN)/ruff check --fix-only --quiet . && $(BIN)/ruff format .

generate: setup ## write the generated files anew
	$(BIN)/python -m coordinator.machine.render

verify: setup ## fail if a generated file is not what its source says
	$(BIN)/python -m coordinator.machine.render --check

check: lint verify test process size browser containers chaos ## exactly what .ci/run runs

walk: setup ## print the transition table, the stop order and the key map
	$(BIN)/python -m coordinator.machine.render --walk

sim: setup ## simulate the scenario example, then explore interleavings and faults of the refund example
	$(BIN)/crewline simulate examples/scenario.json || true
	$(BIN)/crewline simulate examples/refund/team.yaml --explore 500

bench: setup ## measure against RQ and Celery (ops/bench)
	ops/bench/run

chaos: setup ## the tests that kill processes and cut connections; with SEED=1 MINUTES=3: the chaos run of that seed
	$(if $(SEED)$(MINUTES),$(BIN)/python -m ops.chaos --seed $(or $(SEED),1) --minutes $(or $(MINUTES),3),$(BIN)/pytest -n 3 -m chaos)

images: setup ## build the Docker images (IMAGES=--local: without an image registry)
	ops/docker/build $(IMAGES)

up: images ## start Redis, coordinator and a worker by Docker Compose
	$(COMPOSE) up --detach

down: ## stop them
	$(COMPOSE) down
