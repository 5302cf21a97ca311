"""Each invariant sees what it is there for: a sound picture passes, a broken one is named."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.simulation.exploration.graph_view import GraphView, Needs
from coordinator.simulation.invariants import Stored, Watch

GRAPH = GraphView({"b": Needs(requires=("a",))})


def event(
    seq: int, version: int, kind: str, task: str = "", before: str = "", to: str = ""
) -> dict[str, str]:
    return {
        "seq": str(seq),
        "state_version": str(version),
        "kind": kind,
        "task_id": task,
        "from": before,
        "to": to,
    }


EVENTS = (
    event(1, 1, "run_submitted", to="running"),
    event(2, 2, "task_queued", "a", "pending", "queued"),
    event(3, 3, "attempt_started", "a", "queued", "running"),
    event(4, 3, "refused", "a"),
    event(5, 4, "task_succeeded", "a", "running", "succeeded"),
    event(6, 5, "task_queued", "b", "pending", "queued"),
)
RUN = {
    "status": "running",
    "seq": "6",
    "state_version": "5",
    "n_succeeded": "1",
    "n_queued": "1",
    "open_tasks": "1",
    "in_flight": "1",
    "required_open": "1",
    "limit_tokens": "10",
    "used_tokens": "4",
    "reserved_tokens": "6",
    "reserved_step_budget": "1",
}
A = {"was": "succeeded", "state": "succeeded", "required": "1", "held_tokens": "4", "reserved": "0"}
B = {"was": "queued", "state": "queued", "required": "1", "held_tokens": "6", "reserved": "1"}


def look(
    run: dict[str, str] | None = None,
    a: dict[str, str] | None = None,
    b: dict[str, str] | None = None,
    events: tuple[dict[str, str], ...] = EVENTS,
    timers: frozenset[str] = frozenset(),
) -> list[str]:
    stored = Stored(
        {**RUN, **(run or {})}, {"a": {**A, **(a or {})}, "b": {**B, **(b or {})}}, events, timers
    )
    return [violation.invariant for violation in Watch(GRAPH).look(stored, 1)]


def test_a_sound_run_passes() -> None:
    assert look() == []


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ({"run": {"used_tokens": "5"}}, "I3"),
        ({"run": {"reserved_tokens": "5", "used_tokens": "4"}}, "I3"),
        ({"run": {"reserved_step_budget": "0"}}, "I3"),
        ({"a": {"reserved": "1"}}, "I3"),
        ({"run": {"n_queued": "0"}}, "counters"),
        ({"run": {"in_flight": "0"}}, "counters"),
        ({"run": {"ready": "1"}}, "counters"),
        ({"run": {"required_open": "0"}}, "counters"),
        ({"run": {"seq": "7"}}, "I5"),
        ({"run": {"state_version": "6"}}, "I6"),
        ({"timers": frozenset({"a"})}, "timers"),
        ({"timers": frozenset({"zzz"})}, "timers"),
        ({"b": {"waiting": "1"}}, "timers"),
        ({"b": {"was": "running", "state": "running"}}, "I7"),
    ],
)
def test_a_broken_picture_is_named(broken: dict[str, Any], name: str) -> None:
    assert name in look(**broken)


def with_event(number: int, **changes: str) -> tuple[dict[str, str], ...]:
    return tuple({**e, **changes} if e["seq"] == str(number) else e for e in EVENTS)


def test_a_jump_of_the_version_is_seen() -> None:
    assert "I6" in look(events=with_event(4, state_version="4"))


def test_a_missing_event_is_seen() -> None:
    assert "I5" in look(events=EVENTS[:3] + EVENTS[4:])


def test_a_start_before_its_requirement_is_seen() -> None:
    events = (
        *EVENTS[:2],
        event(3, 3, "task_queued", "b", "pending", "queued"),
    )
    assert "readiness" in look(events=events)


def test_a_second_accepted_result_and_a_move_of_an_ended_task_are_seen() -> None:
    again = (
        *EVENTS,
        event(7, 6, "attempt_started", "a", "succeeded", "running"),
        event(8, 7, "task_succeeded", "a", "running", "succeeded"),
    )
    found = look(run={"seq": "8", "state_version": "7"}, events=again)
    assert found[:2] == ["I2", "I1"]


def test_a_stop_is_final_and_leaves_nothing_unfinished() -> None:
    watch = Watch(GRAPH)
    stopped = {**RUN, "status": "canceled", "stop_reason": "canceled"}
    tasks = {"a": A, "b": {**B, "state": "canceled"}}
    assert watch.look(Stored(stopped, tasks, EVENTS, frozenset()), 1) == []
    kept = {"a": A, "b": B}
    assert "I4" in [v.invariant for v in watch.look(Stored(stopped, kept, (), frozenset()), 1)]
    again = {**stopped, "status": "completed"}
    assert "I2" in [v.invariant for v in watch.look(Stored(again, tasks, (), frozenset()), 1)]
    assert "I2" in [v.invariant for v in watch.look(Stored({**RUN}, tasks, (), frozenset()), 1)]


def test_an_unblocked_dead_end_is_seen_once_no_batch_is_open() -> None:
    failed = with_event(5, to="failed", kind="task_failed")[:5]
    run = {
        "seq": "5",
        "state_version": "4",
        "n_succeeded": "0",
        "n_failed": "1",
        "n_queued": "0",
        "n_pending": "1",
    }
    run |= {"in_flight": "0", "required_open": "2", "reserved_tokens": "0", "reserved_step_budget": "0"}
    a, b = {"was": "failed", "state": "failed"}, {"was": "pending", "state": "pending", "reserved": "0"}
    assert look(run, a, b, failed) == ["blocking"]
    assert look({**run, "batch": "continue"}, a, b, failed) == []
