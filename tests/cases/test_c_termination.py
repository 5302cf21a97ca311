"""Cases C: when and why a team stops (C-15 to C-20). Handlers that raise, exit or answer nonsense: tests/workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import plan, submit, task
from tests.support.replay import RUN, Replay


def also_true(replay: Replay) -> list[str]:
    return [
        entry if isinstance(entry, str) else entry["reason"]
        for entry in json.loads(replay.run()["also_true"])
    ]


def test_C_15_control_words_in_a_payload_end_nothing(replay: Replay) -> None:
    stop = "status: critical_failure; team completed; TERMINATE"
    replay.submit(
        task("a", input=json.dumps(stop)), task("b", requires=["a"]), task("c", required=0, max_attempts=2)
    )
    lease = replay.claim("c", worker="completed")
    replay.fail(lease, "transient", message=stop, type="critical_failure")
    replay.work("a", {"text": stop, "status": "failed", "state": "canceled"})
    assert (replay.status(), replay.states()["b"]) == ("running", "pending")
    assert replay.work("b", stop).run_status == "completed"


def test_C_16_what_is_no_step_consumes_none(replay: Replay) -> None:
    """A step is an accepted report: a granted lease one, an accepted end one. Nothing else is (SPEC 4)."""
    replay.submit(task("a"), task("b", requires=["a"]), limits={"max_steps": 4, "step_budget": 2})
    lease = replay.claim("a")
    for _ in range(50):
        assert replay.beat(lease, progress=1).status == "applied"
    assert replay.run()["reports"] == "1"
    replay.result(lease, 1)
    assert replay.result(lease, 1).word == "duplicate_result_ignored"
    assert replay.fail(lease).word == "late_ignored"
    assert replay.report("zzz", "working").word == "unknown_task"
    assert replay.report("b", "exploded").word == "unknown_state"
    assert replay.ask("b", attempt=7).word == "stale_attempt"
    replay.tick(5)
    replay.reap()
    assert (replay.run()["reports"], replay.run()["used_step_budget"]) == ("2", "1")
    assert replay.work("b").run_status == "completed"


OUTCOMES: dict[str, tuple[Callable[[Replay], Any], str, str]] = {
    "the last step completes all": (lambda r: r.report("b"), "completed", "b"),
    "the last step is a critical failure": (lambda r: r.report("b", "failed"), "critical_failure", "b"),
    "neither": (lambda r: r.report("b", "working"), "step_limit", "b"),
}


@pytest.mark.parametrize("how", OUTCOMES)
def test_C_17_a_limit_and_an_end_in_the_same_step(replay: Replay, how: str) -> None:
    step, status, decided = OUTCOMES[how]
    replay.submit(task("a", external=1), task("b", external=1), limits={"max_steps": 2})
    replay.report("a")
    step(replay)
    run = replay.run()
    assert (run["status"], run["stop_reason"], run["stop_task"]) == (status, status, decided)
    assert run["reports"] == "2"
    [deciding] = [event for event in replay.events() if event["seq"] == run["stop_seq"]]
    assert deciding["task_id"] == decided and replay.kinds()[-1] == "run_stopped"
    assert also_true(replay) == ([] if status == "step_limit" else ["step_limit"])


LIMITS = {"deadline_ms": 60_000, "no_progress_ms": 60_000, "max_steps": 2}
RULE = {"name": "enough", "ends": "stopped", "rule": ["ge", "reports_accepted", 2]}
TRUTH = [
    # what is true at once, what wins; the rest is told beside it, in the order of SPEC 4
    (("failed", True, True), ["critical_failure", "stop_rule", "deadline_exceeded", "step_limit"]),
    (("completed", True, True), ["completed", "stop_rule", "deadline_exceeded", "step_limit"]),
    (("working", True, True), ["stop_rule", "deadline_exceeded", "step_limit", "no_progress"]),
    (("working", False, True), ["deadline_exceeded", "step_limit", "no_progress"]),
    (("working", False, False), ["step_limit"]),
]


@pytest.mark.parametrize(("true", "expected"), TRUTH)
def test_C_17_everything_at_once_has_one_reason_and_tells_the_rest(
    replay: Replay, true: tuple[str, bool, bool], expected: list[str]
) -> None:
    report, rule, late = true
    replay.submit(task("b", external=1), limits=LIMITS, rules=[RULE] if rule else [])
    replay.report("b", "working")
    replay.tick(60 if late else 1)
    replay.report("b", report)
    assert [replay.status(), *also_true(replay)] == expected


@pytest.mark.parametrize("how", ["raises", "exits", "answers nothing", "dies"])
def test_C_18_no_way_for_a_handler_to_break_ends_as_completed(replay: Replay, how: str) -> None:
    """What a worker makes of each of these stands in tests/workers/test_outcomes.py; here what the team makes of it."""
    replay.submit(task("a"), task("b", requires=["a"]))
    lease = replay.claim("a")
    if how == "dies":
        replay.tick(31)
        replay.reap()
    else:
        replay.fail(
            lease, "invalid_output" if how == "answers nothing" else "permanent", type=how, message=how
        )
    assert (replay.status(), replay.states()) == ("critical_failure", {"a": "failed", "b": "blocked"})
    assert replay.task("a")["outcome"] == ("lost" if how == "dies" else "failed")
    assert how == "dies" or json.loads(replay.task("a")["error"])["type"] == how


def test_C_18_an_idle_queue_is_no_success(replay: Replay) -> None:
    replay.submit(task("a"), task("b", requires=["a"]))
    replay.claim("a")
    replay.reap()
    assert replay.dispatch() == 0
    assert replay.status() == "running"


def test_C_19_nothing_of_an_ended_run_leaks_into_the_next(replay: Replay) -> None:
    tasks = [task("a", key="k"), task("b")]
    replay.submit(*tasks, limits={"max_steps": 1, "step_budget": 1})
    old = replay.claim("a")
    assert replay.status() == "step_limit"
    assert replay.submit(*tasks, run="r2", limits={"max_steps": 9, "step_budget": 3}) == "running"
    run = replay.run("r2")
    assert (run.get("reports", "0"), run.get("used_step_budget", "0")) == ("0", "0")
    assert replay.result(old, {"v": 1}).word == "late_ignored"
    assert len(replay.ledger("late")) == 1 and replay.ledger("late", "r2") == []
    replay.result(replay.claim("a", run="r2"), {"v": 2})
    assert replay.states("r2")["a"] == "succeeded", "a key belongs to its run"


def test_C_19_the_same_id_is_the_same_run(replay: Replay) -> None:
    made = plan(task("a", external=1))
    replay.submit_plan(made)
    [again] = submit(made, now=replay.now)
    assert replay.apply(again).status == "repeated"
    [other] = submit(plan(task("a", external=1, required=0), task("b")), RUN, now=replay.now)
    assert replay.apply(other).word == "run_exists"
