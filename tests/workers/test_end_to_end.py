"""Workers with the real coordinator: what a handler does is what the report says (SPEC 3, 5, 8; C-18, C-04)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from workers.testing import TeamRun, run_team

pytestmark = pytest.mark.process

MODES = ("fork", "inline")
HANDLERS = """
import os, signal, time
from pathlib import Path
from workers import Context, MissingInput, Transient, handler

@handler("good")
async def good(context: Context):
    return {"task": context.task}

@handler("dies_once")
def dies_once(context: Context):
    if context.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"attempt": context.attempt}

@handler("exits")
def exits(context: Context):
    os._exit(0)

@handler("base")
def base(context: Context):
    raise GeneratorExit("odd")

@handler("nothing")
def nothing(context: Context):
    pass

@handler("busy_twice")
def busy_twice(context: Context):
    if context.attempt < 3:
        raise Transient("busy", retry_after=0.01)
    return {"attempt": context.attempt}

@handler("asks")
def asks(context: Context):
    raise MissingInput({"ask": "which?"})

@handler("endless")
def endless(context: Context):
    while not context.canceled:
        time.sleep(0.01)
    Path(context.input["file"]).write_text("canceled")
    return {}

@handler("waits_then_fails")
def waits_then_fails(context: Context):
    time.sleep(0.8)
    raise ValueError("broken")

@handler("spends")
def spends(context: Context):
    answers = [context.use(tokens=60, cost="0.10").over_budget for _ in range(2)]
    return {"over": answers}
"""


@pytest.fixture
def handlers(tmp_path: Path) -> Path:
    file = tmp_path / "handlers.py"
    file.write_text(HANDLERS)
    return file


def play(handlers: Path, mode: str, tasks: dict[str, Any], **more: Any) -> TeamRun:
    names = sorted({task.get("capability", name) for name, task in tasks.items()})
    team = {"team": "t", "roles": {"r": {"capabilities": names}}, "tasks": tasks, **more}
    return run_team(team, handlers=handlers, options=("--mode", mode))


@pytest.mark.parametrize("mode", MODES)
def test_c18_no_way_of_failing_counts_as_done(handlers: Path, mode: str) -> None:
    tasks: dict[str, Any] = {"good": {}, "base": {"required": False}, "nothing": {"required": False}}
    expected = {"base": ("permanent", "GeneratorExit"), "nothing": ("invalid_output", "InvalidOutput")}
    if mode == "fork":  # a handler that ends an inline worker's own process is found by its lease
        tasks["exits"] = {"required": False}
        expected["exits"] = ("transient", "ProcessExited")
    done = play(handlers, mode, tasks, on_completion="drain")
    assert (done.exit_code, done.status) == (0, "completed"), done.stderr
    for name, (failure, kind) in expected.items():
        task = done.task(name)
        error = task["attempts"][0]["error"]
        assert (task["state"], error["class"], error["type"]) == ("failed", failure, kind)


def test_c04_a_killed_child_costs_one_attempt(handlers: Path) -> None:
    done = play(handlers, "fork", {"dies_once": {"max_attempts": 2, "backoff": 0}})
    assert done.status == "completed", done.stderr
    assert done.task("dies_once")["result"] == {"attempt": 2}


@pytest.mark.parametrize("mode", MODES)
def test_transient_failures_are_retried_and_questions_wait(handlers: Path, mode: str) -> None:
    done = play(handlers, mode, {"busy_twice": {"max_attempts": 3, "backoff": 0}, "asks": {}})
    assert (done.exit_code, done.status) == (1, "paused"), done.stderr
    assert done.task("busy_twice")["result"] == {"attempt": 3}
    assert done.task("asks")["state"] == "awaiting"


@pytest.mark.parametrize("mode", MODES)
def test_a_stop_tells_what_runs_at_once(handlers: Path, tmp_path: Path, mode: str) -> None:
    file = tmp_path / "said"
    team = {"endless": {"input": {"file": str(file)}}, "waits_then_fails": {}}
    began = time.monotonic()
    done = run_team(
        {"team": "t", "roles": {"r": {"capabilities": list(team)}}, "tasks": team},
        handlers=handlers,
        options=("--mode", mode, "-c", "2"),
    )
    assert done.status == "critical_failure", done.stderr
    assert done.task("endless")["state"] == "canceled"
    assert file.read_text() == "canceled"
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("mode", MODES)
def test_use_is_booked_and_answered(handlers: Path, mode: str) -> None:
    done = play(
        handlers,
        mode,
        {"spends": {"reserve": {"tokens": 50, "cost": "0.10"}}},
        limits={"tokens": 100, "cost": 5},
    )
    assert done.task("spends")["result"] == {"over": [False, True]}, done.stderr
    assert done.report["budgets"]["tokens"]["used"] == 120
