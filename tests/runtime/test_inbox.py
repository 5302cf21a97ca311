"""Inboxes: entries that wait, entries that break the machine, pages, waking up."""

from __future__ import annotations

import threading

import pytest
from redis import Redis

from coordinator.runtime.loop import Bounds
from coordinator.wire import channels
from coordinator.wire.connection import connect
from coordinator.wire.reports import ExternalReport, Start
from tests.runtime.harness import NAMESPACE, WORKER, Stepped, team

OPERATE = channels.scope_inbox(NAMESPACE, "operate")


def external(run: str, task: str) -> dict[str, str]:
    """A report that an external task is being worked on."""
    return ExternalReport(run=run, task=task, state="working").fields()


def hold(stepped: Stepped, run: str) -> None:
    """Opens a batch of a run, as a large cascade would."""
    stepped.redis.hset(f"{NAMESPACE}:run:{run}", "batch", "open")


def release(stepped: Stepped, run: str) -> None:
    """The batch is empty."""
    stepped.redis.hset(f"{NAMESPACE}:run:{run}", "batch", "")


@pytest.fixture
def two_runs(redis: Redis) -> Stepped:
    """Two runs of one external task each; pages are of two entries."""
    stepped = Stepped(redis, Bounds(page=2, pages=4))
    for run in ("busy", "free"):
        stepped.submit(team({"x": {"external": True}}), run)
    return stepped


def test_entries_of_a_busy_run_wait_and_others_pass_them(two_runs: Stepped) -> None:
    hold(two_runs, "busy")
    for _ in range(5):
        two_runs.put(OPERATE, external("busy", "x"))
    two_runs.put(OPERATE, external("free", "x"))
    result = two_runs.step()
    assert (result.entries, result.waiting) == (1, 5)
    assert two_runs.state("x", "free") == "running"
    assert two_runs.state("x", "busy") == "queued"
    release(two_runs, "busy")
    assert two_runs.step().entries == 5
    assert two_runs.state("x", "busy") == "running"
    assert two_runs.inbox_lengths() == {}


def test_a_step_reads_a_bounded_number_of_pages_and_says_that_there_is_more(two_runs: Stepped) -> None:
    for _ in range(20):
        two_runs.put(OPERATE, external("free", "x"))
    result = two_runs.step()
    assert (result.entries, result.more) == (8, True)
    two_runs.settle()
    assert two_runs.inbox_lengths() == {}


def test_entries_are_applied_in_their_order_of_arrival(two_runs: Stepped) -> None:
    states = ["working", "working", "completed", "working", "failed"]
    for state in states:
        two_runs.put(OPERATE, ExternalReport(run="free", task="x", state=state, source=state).fields())
    two_runs.settle()
    kinds = [kind for kind in two_runs.kinds("free") if not kind.startswith("run_")]
    assert kinds == [
        "task_queued",
        "attempt_started",
        "working_repeated",
        "task_succeeded",
        "late_ignored",
        "late_ignored",
    ]


@pytest.mark.parametrize("broken", ["run:r1", "task:r1:a"])
def test_i8_an_entry_that_breaks_the_machine_stops_nobody(stepped: Stepped, broken: str) -> None:
    """A record of the wrong type is a fault inside Lua; the entries around it are applied all the same. The first one
    breaks before the gate has deleted the entry, the second one after it."""
    for run in ("r1", "r2"):
        stepped.submit(team({"a": {}}), run)
    stepped.redis.delete(f"{NAMESPACE}:{broken}")
    stepped.redis.set(f"{NAMESPACE}:{broken}", "broken")
    for run in ("r1", "r2", "r1"):
        stepped.say(Start(run=run, task="a", attempt=1, worker=WORKER))
    stepped.settle()
    assert stepped.state("a", "r2") == "running"
    assert stepped.inbox_lengths() == {}
    reasons = [entry["reason"] for entry in stepped.ledger()]
    assert len(reasons) == 2
    for reason in reasons:
        assert reason.startswith("the state machine failed on this entry (crewline:inbox:role:clerk ")


def test_a_new_entry_ends_the_wait(stepped: Stepped, redis_url: str) -> None:
    stepped.submit(team({"a": {}}))
    writer = connect(redis_url)
    waited = threading.Thread(target=lambda: stepped.loop.inboxes.wait(60_000))
    waited.start()
    while not any(client["cmd"] == "xread" for client in writer.client_list()):
        pass
    stepped.say(Start(run="r1", task="a", attempt=1, worker=WORKER))
    waited.join(10)
    assert not waited.is_alive()
    writer.close()
    assert stepped.step().entries == 1


def test_an_entry_between_step_and_wait_is_not_missed(stepped: Stepped) -> None:
    stepped.submit(team({"a": {}}))
    stepped.step()
    stepped.say(Start(run="r1", task="a", attempt=1, worker=WORKER))
    stepped.loop.inboxes.wait(60_000)
    assert stepped.step().entries == 1


def test_entries_that_wait_do_not_end_the_wait(two_runs: Stepped) -> None:
    hold(two_runs, "busy")
    two_runs.put(OPERATE, external("busy", "x"))
    two_runs.step()
    two_runs.loop.inboxes.wait(1)
    assert two_runs.redis.xlen(OPERATE) == 1


def test_the_inbox_of_a_role_is_read_as_soon_as_a_run_names_it(stepped: Stepped) -> None:
    stepped.put(channels.inbox(NAMESPACE, "nobody"), {"kind": "start"})
    stepped.submit(team({"a": {}}))
    assert stepped.redis.xlen(channels.inbox(NAMESPACE, "nobody")) == 1
    document = team({"a": {}})
    document["roles"]["nobody"] = {"capabilities": []}
    stepped.submit(document, "r2")
    stepped.settle()
    assert stepped.redis.xlen(channels.inbox(NAMESPACE, "nobody")) == 0
