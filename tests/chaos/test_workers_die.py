"""Workers that are killed, frozen and drained, with a real coordinator: every attempt ends, and one result counts."""

from __future__ import annotations

import os
import re
import signal
import urllib.request
from collections import Counter

import pytest

from coordinator.client import Client
from coordinator.machine.reads import ReadLedger
from coordinator.wire.channels import DEFAULT_NAMESPACE, queue_name
from ops.chaos.checker.budgets import check_budgets
from ops.chaos.checker.executions import check_executions
from ops.chaos.gather import gather
from tests.chaos.processes import ROLE, Crew, team
from tests.support.waiting import until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]


@pytest.mark.parametrize("mode", ["fork", "inline"])
def test_c01_a_job_three_times_as_long_as_its_lease_runs_once(crew: Crew, mode: str) -> None:
    crew.coordinator()
    crew.worker("w1", mode)
    crew.worker("w2", mode)
    crew.submit(team({"a": {"input": {"ms": 3_200}}}))
    assert crew.await_end() == "completed"
    assert [e.attempt_of for e in crew.executions()] == [("r1", "a", 1)]
    assert not crew.events("attempt_lost")


@pytest.mark.parametrize("mode", ["fork", "inline"])
def test_c03_a_frozen_worker_wakes_up_too_late(crew: Crew, mode: str) -> None:
    crew.coordinator()
    crew.worker("w1", mode)
    crew.worker("w2", mode)
    crew.submit(team({"a": {"input": {"ms": 500}}}))
    frozen = crew.named(crew.await_began("a").pid)
    crew.signal(frozen, signal.SIGSTOP)
    crew.await_event("attempt_lost")
    assert crew.await_end() == "completed"
    crew.signal(frozen, signal.SIGCONT)
    crew.await_event("late_ignored")
    [late] = crew.machine.read(ReadLedger("r1", "late", 0, 10))
    assert (late["task"], late["attempt"], late["reason"], late["would_change"]) == ("a", 1, "run_stopped", 0)
    assert crew.task("a")["attempt"] == "2"
    assert len(crew.events("task_succeeded")) == 1


@pytest.mark.parametrize("mode", ["fork", "inline"])
def test_c04_a_host_that_is_lost_costs_one_attempt(crew: Crew, mode: str) -> None:
    crew.coordinator()
    crew.worker("w1", mode)
    crew.worker("w2", mode)
    tasks = {
        "a": {"input": {"ms": 800}},
        "once": {"max_attempts": 1, "requires": ["a"], "input": {"ms": 5_000}},
    }
    crew.submit(team(tasks))
    lost = crew.named(crew.await_began("a").pid)
    crew.signal(lost, signal.SIGKILL)
    assert crew.await_event("task_succeeded", task="a")["attempt"] == "2"
    crew.worker("w3", mode)
    crew.signal(crew.named(crew.await_began("once").pid), signal.SIGKILL)
    assert crew.await_end() == "critical_failure"
    assert [e["reason"] for e in crew.events("task_failed")] == ["lease_expired"]
    assert Counter(e.attempt_of for e in crew.executions()).most_common(1)[0][1] == 1


def test_c18_a_handler_that_ends_its_workers_own_process_is_lost_with_a_cause(crew: Crew) -> None:
    crew.coordinator()
    crew.worker("w1", "inline")
    crew.submit(team({"a": {"max_attempts": 1, "input": {"ends": "exit"}}, "b": {"requires": ["a"]}}))
    assert crew.await_end() == "critical_failure"
    assert [(e["task_id"], e["reason"]) for e in crew.events("task_failed")] == [("a", "lease_expired")]
    assert crew.task("b")["state"] == "blocked"
    assert not crew.events("task_succeeded")


def test_c40_workers_at_once_never_pass_the_budget(crew: Crew) -> None:
    crew.coordinator()
    crew.worker("w1", "inline", "-c", "2")
    crew.worker("w2", "inline", "-c", "2")
    task = {"capability": "nap", "reserve": {"tokens": 30}, "input": {"ms": 60, "tokens": 5}}
    crew.submit(team({f"t{n}": task for n in range(19)}, limits={"tokens": 120}))
    assert crew.await_end() == "completed"
    assert list(check_budgets(gather(crew.machine, None))) == []
    running = most = 0
    for event in sorted(
        crew.events("attempt_started") + crew.events("task_succeeded"), key=lambda e: int(e["seq"])
    ):
        running += 1 if event["kind"] == "attempt_started" else -1
        most = max(most, running)
    assert 2 <= most <= 4


def test_c48_counters_do_not_follow_the_workers(crew: Crew) -> None:
    """The working processes are killed ten times; every scrape is what happened, and none falls back."""
    crew.coordinator("coordinator", "--metrics-port", "0")
    crew.worker("w1", "inline")
    crew.worker("w2", "inline")
    until(lambda: "metrics_served" in crew.log("coordinator"), "metrics are served")
    port = re.search(r'"port": (\d+)', crew.log("coordinator"))
    assert port is not None
    tasks = {f"t{n}": {"capability": "nap", "max_attempts": 30, "input": {"ms": 20}} for n in range(100)}
    crew.submit(team(tasks))
    scraped = [0]
    for kill in range(10):
        until(lambda least=kill * 8: scrape(port[1]) >= least, "some tasks were done")  # type: ignore[misc] # bound
        scraped.append(scrape(port[1]))
        name = ("w1", "w2")[kill % 2]
        worker = until(lambda name=name: crew.pids(name)[1:2], "the worker is there again")  # type: ignore[misc] # bound
        os.kill(worker[0], signal.SIGKILL)
    assert crew.await_end() == "completed"
    scraped += [scrape(port[1]) for _ in range(20)]
    assert scraped == sorted(scraped)
    assert scraped[-20:] == [100] * 20
    assert crew.metrics()["tasks:succeeded"] == 100


def test_c51_a_child_whose_process_died_is_found_within_its_lease(crew: Crew) -> None:
    crew.coordinator()
    crew.worker("w1", "fork")
    crew.worker("w2", "fork")
    each = {"for_each": {"from": "inputs.parts", "min_success": 6}, "max_attempts": 1}
    parts = [{"ms": 5_000 if n == 4 else 50} for n in range(7)]
    crew.submit(team({"each": each}, inputs={"parts": {"type": "array"}}), parts=parts)
    crew.signal(crew.named(crew.await_began("each[4]").ppid), signal.SIGKILL)
    assert crew.await_end() == "completed"
    assert [(e["task_id"], e["reason"]) for e in crew.events("task_failed")] == [("each[4]", "lease_expired")]
    assert len(crew.events("task_succeeded")) == 7, "six children, and the parent"


@pytest.mark.parametrize("mode", ["fork", "inline"])
def test_c57_a_deploy_that_kills_in_the_end_leaves_nothing_running(crew: Crew, mode: str) -> None:
    """SIGTERM, a handler that does not care, SIGKILL: its attempt is lost within one lease, the next worker goes on."""
    crew.coordinator()
    old = crew.worker("w1", mode, "--drain-timeout", "60")
    crew.submit(team({"a": {"input": {"ms": 1_500, "deaf": True}}}))
    crew.await_began("a")
    old.send_signal(signal.SIGTERM)
    crew.submit(team({"b": {}}), "r2")
    crew.signal("w1", signal.SIGKILL)
    crew.worker("w2", mode)
    assert crew.await_end("r2") == "completed"
    assert crew.await_end() == "completed"
    assert [e["reason"] for e in crew.events("attempt_lost")] == ["lease_expired"]
    assert [e.attempt for e in crew.executions()] == [1, 2]


def scrape(port: str) -> int:
    """How many tasks have succeeded, as Prometheus would read it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text = page.read().decode()
    found = re.search(r'crewline_tasks_total\{state="succeeded"\} (\S+)', text)
    assert found is not None
    return int(float(found[1]))


def test_c22_a_worker_that_dies_before_it_confirms_leaves_the_cancel_unconfirmed(crew: Crew) -> None:
    crew.redis.hset(f"{DEFAULT_NAMESPACE}:settings", "cancel_grace_ms", 500)
    crew.coordinator()
    crew.worker("w1", "fork")
    crew.submit(team({"a": {"heartbeat": "20s", "input": {"ms": 30_000, "deaf": True}}}))
    crew.await_began("a")
    crew.signal("w1", signal.SIGSTOP)
    assert Client(crew.redis).cancel("r1", reason="enough").run_status == "canceled"
    crew.signal("w1", signal.SIGKILL)
    crew.await_event("cancel_unconfirmed")
    assert crew.task("a")["attempt"] == "1"
    assert not crew.events("attempt_lost")


def test_c24_nothing_starts_after_a_cancel_that_came_while_children_were_launched(crew: Crew) -> None:
    crew.coordinator()
    crew.worker("w1", "inline")
    crew.worker("w2", "fork")
    children = {f"c{n}": {"requires": ["root"], "input": {"ms": 20}} for n in range(200)}
    crew.submit(team({"root": {}, **children}))
    until(lambda: len(crew.events("attempt_started")) > 30, "some children run")
    assert Client(crew.redis).cancel("r1", reason="enough").run_status == "canceled"
    queue = f"rq:queue:{queue_name(DEFAULT_NAMESPACE, ROLE)}"
    until(lambda: not crew.redis.llen(queue), "stale jobs have drained")
    until(lambda: not crew.redis.zcard(f"{DEFAULT_NAMESPACE}:graces"), "who ran has answered", seconds=40)
    stopped = int(crew.events("run_stopped")[0]["seq"])
    assert all(int(event["seq"]) < stopped for event in crew.events("attempt_started"))
    evidence = gather(crew.machine, None)
    evidence.executions = crew.executions()
    assert [
        v for v in check_executions(evidence) if v.kind not in ("report never sent", "result from nothing")
    ] == []
