"""Cases B: dependencies and fan-in (C-08 to C-14), and the order in which what is ready is served (SPEC 3)."""

from __future__ import annotations

import json

import pytest

from coordinator.machine.commands import SignalRun
from coordinator.machine.reads import ReadOutbox
from tests.support.builders import plan, submit, task
from tests.support.replay import Replay


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_C_08_a_dependant_is_ready_exactly_once_however_it_is_registered(replay: Replay, parts: int) -> None:
    """Dependants come with the run; one that is submitted in parts is shut until the last part is there."""
    made = plan(task("a", external=1), task("b", requires=["a"]), task("c", requires=["a", "b"]))
    first, *rest = submit(made, now=replay.now, parts=parts, library=replay.machine.library.hash)
    replay.machine.apply(first)
    for command in rest:
        assert replay.report("a").status == "waiting"
        assert replay.machine.apply(SignalRun(now=1, run="r1", signal="x", source="")).status == "waiting"
        replay.machine.apply(command)
    replay.runs.append("r1")
    assert replay.dispatch() == 0
    replay.report("a")
    assert replay.dispatch() == 1
    assert replay.dispatch() == 0
    replay.work("b")
    assert replay.work("c").run_status == "completed"
    assert [replay.kinds(name).count("task_queued") for name in "abc"] == [1, 1, 1]


@pytest.mark.parametrize(
    "order", [("fail", "begin", "end"), ("begin", "fail", "end"), ("begin", "end", "fail")], ids="-".join
)
def test_C_08_readiness_follows_states_in_every_order_of_two_parents(
    replay: Replay, order: tuple[str, ...]
) -> None:
    """b requires a and runs after x; x fails at any moment relative to a."""
    replay.submit(task("a"), task("x", required=0), task("b", requires=["a"], after=["x"]))
    bad = replay.claim("x")
    leases = {}
    for step in order:
        if step == "begin":
            leases["a"] = replay.claim("a")
        elif step == "end":
            replay.result(leases["a"], 1)
        else:
            replay.fail(bad)
    assert replay.dispatch() == 1
    assert replay.work("b").run_status == "completed"
    assert replay.kinds("b").count("task_queued") == 1


@pytest.mark.parametrize("y_first", [True, False])
def test_C_09_a_failure_in_mid_chain_reaches_the_join(replay: Replay, y_first: bool) -> None:
    replay.submit(task("x1"), task("x2", requires=["x1"]), task("y"), task("join", requires=["x2", "y"]))
    chain, y = replay.claim("x1"), replay.claim("y")
    if y_first:
        replay.result(y, {"y": 1})
    replay.fail(chain)
    assert replay.status() == "critical_failure"
    if not y_first:
        assert replay.result(y, {"y": 1}).word == "late_ignored"
    expected = {
        "x1": "failed",
        "x2": "blocked",
        "join": "blocked",
        "y": "succeeded" if y_first else "canceled",
    }
    assert replay.states() == expected
    assert {replay.task(name)["root"] for name in ("x2", "join")} == {"x1"}
    assert len(replay.ledger("late")) == (0 if y_first else 1), "what came too late is kept"


def test_C_10_a_failed_child_blocks_its_parent_in_the_same_call(replay: Replay) -> None:
    replay.submit(task("c1", required=0), task("c2", required=0), task("sum", requires=["c1", "c2"]))
    replay.work("c2")
    reply = replay.fail(replay.claim("c1"))
    assert reply.run_status == "critical_failure"
    assert replay.states() == {"c1": "failed", "c2": "succeeded", "sum": "blocked"}
    assert replay.run()["stop_task"] == "c1"


def test_C_10_a_parent_that_only_waits_for_the_end_runs(replay: Replay) -> None:
    replay.submit(task("c1", required=0), task("c2", required=0), task("sum", after=["c1"], requires=["c2"]))
    replay.work("c2")
    replay.fail(replay.claim("c1"))
    assert replay.work("sum").run_status == "completed"
    assert replay.states()["c1"] == "failed"


def test_C_11_a_parent_that_was_never_begun_is_not_satisfied(replay: Replay) -> None:
    replay.submit(task("a"), task("b", external=1), task("c", requires=["a", "b"]))
    replay.work("a")
    replay.tick(5)
    replay.reap()
    assert replay.dispatch() == 0
    assert (replay.states()["c"], replay.status()) == ("pending", "running")


def test_C_12_a_diamond_runs_and_a_cycle_never_starts(replay: Replay) -> None:
    """That `submit` and `run` name the cycle stands in tests/unit/team and tests/runtime."""
    diamond = [
        task("a"),
        task("b", requires=["a"]),
        task("c", requires=["a"]),
        task("d", requires=["b", "c"]),
    ]
    replay.submit(*diamond)
    for name in "acbd":
        replay.work(name)
    assert replay.status() == "completed"
    assert replay.submit(task("a", requires=["b"]), task("b", requires=["a"]), run="r2") == "deadlock"
    assert replay.states("r2") == {"a": "canceled", "b": "canceled"}


def test_C_13_descendants_wait_while_the_parent_still_has_retries(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=2, backoff_ms=60_000), task("b", requires=["a"]))
    replay.fail(replay.claim("a"), "transient")
    replay.tick(30)
    replay.reap()
    assert replay.dispatch() == 0
    assert (replay.states(), replay.status()) == ({"a": "pending", "b": "pending"}, "running")
    replay.tick(45)
    replay.reap()
    replay.work("a")
    assert replay.work("b").run_status == "completed"
    assert "task_blocked" not in replay.kinds()


def test_C_14_a_double_completion_opens_the_join_once_and_not_early(replay: Replay) -> None:
    """x is handed back at shutdown, and the old attempt's result lands all the same."""
    replay.submit(task("x", key="k"), task("y"), task("join", requires=["x", "y"]))
    first = replay.claim("x", "w1")
    replay.hand_back(first)
    assert replay.result(first, {"p": 1}).word == "late_ignored"
    second = replay.claim("x", "w2")
    assert replay.result(second, {"p": 1}).status == "applied"
    assert replay.result(second, {"p": 1}).word == "duplicate_result_ignored"
    assert "join" not in {event["task_id"] for event in replay.events() if event["kind"] == "task_queued"}
    replay.work("y")
    assert replay.work("join").run_status == "completed"
    assert replay.kinds("join").count("task_queued") == 1


# -- who is served first (SPEC 3 Dispatch)


def test_dispatch_goes_by_priority_then_round_robin_between_runs_then_file_order(replay: Replay) -> None:
    roles = {"clerk": ["work"], "editor": ["work"]}
    replay.submit(task("a1", role="editor"), task("a2"), task("a3"), run="r1", roles=roles)
    replay.submit(task("b1"), task("b2"), task("b3", priority=5), run="r2", roles=roles)
    served = []
    while replay.dispatch(1):
        served.append(json.loads(replay.machine.read(ReadOutbox(100))[-1])["task"])
    assert served[0] == "b3"
    assert [name for name in served if name[0] == "a"] == ["a1", "a2", "a3"]
    assert [name for name in served if name[0] == "b"] == ["b3", "b1", "b2"]
    runs = [name[0] for name in served[1:]]
    assert runs.count("a") == 3 and all(runs[n : n + 3] != ["a", "a", "a"] for n in range(3)), runs


def test_what_does_not_fit_is_passed_over_and_the_last_step_goes_by_priority(replay: Replay) -> None:
    roles = {"clerk": ["work"], "editor": ["work"]}
    replay.submit(
        task("b", role="clerk"), task("a", role="editor", priority=5), roles=roles, limits={"step_budget": 1}
    )
    replay.dispatch()
    assert replay.states() == {"b": "pending", "a": "queued"}
    replay.submit(task("big", tokens=50), task("small", tokens=5), run="r2", limits={"tokens": 20})
    replay.dispatch()
    assert replay.states("r2") == {"big": "pending", "small": "queued"}
