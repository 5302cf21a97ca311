"""`crewline resume`: a limit paused the run, a person raises it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edges.conftest import Call
from tests.edges.desk import Desk

pytestmark = pytest.mark.process

PAUSING: dict[str, Any] = {"limits": {"step_budget": 1}, "on_limit": "pause"}


@pytest.mark.usefixtures("worker")
def test_a_limit_that_paused_a_run_is_raised(call: Call, desk: Desk) -> None:
    team = desk.team(
        PAUSING, quick={}, ask={"after": ["quick"], "required": False}, gated={"requires": ["quick"]}
    )
    desk.gate.touch()
    call("submit", team, "--id", "r1")
    assert call("watch", "r1").out == "paused\n"
    report = call("report", "r1", "--json").json
    assert report["interruptions"][0]["kind"] == "limit_interrupted"
    assert call("explain", "r1", "--json").json["remedies"] == ["crewline resume r1 --raise step_budget=+1"]
    still = call("resume", "r1")
    assert (still.code, still.out) == (0, "paused\n"), "it parks again"
    raised = call("resume", "-", "--raise", "step_budget=10")
    assert (raised.code, raised.out) == (0, "running\n"), raised.err
    assert call("watch", "r1").out == "completed\n"
    events = call("events", "r1", "--json").json
    raises = [event for event in events if event["kind"] == "limit_raised"]
    assert [(event["reason"], event["detail"]) for event in raises] == [("limit_step_budget", "1 -> 10")]


@pytest.mark.usefixtures("coordinator")
def test_what_the_caller_got_wrong_exits_2_and_raises_nothing(call: Call, desk: Desk) -> None:
    limits = {"limits": {"max_steps": 2, "deadline": "1h", "cost": 5, "tokens": 9}, "on_limit": "pause"}
    team = desk.team(limits, order={"external": True, "reserve": {"tokens": 0, "cost": 0}})
    call("submit", team, "--id", "r1")
    for words, said in (
        (["max_steps"], "expected LIMIT=N"),
        (["=5"], "expected LIMIT=N"),
        (["steps=5"], "no such limit; there are step_budget"),
        (["max_steps=1.5"], "expected a whole number"),
        (["max_steps=-1"], "expected a whole number"),
        (["max_steps=1"], "it is 2 already"),
        (["deadline=soon"], "expected a duration"),
        (["deadline=30m"], "it is 1h 0m already"),
        (["cost=4.99"], "it is 5.00 already"),
        (["cost=0.0000001"], "expected an amount of money"),
        (["no_progress=+1m"], "the run has no such limit"),
        (["tokens=10", "tokens=11"], "given twice"),
    ):
        options = [word for limit in words for word in ("--raise", limit)]
        done = call("resume", "r1", *options)
        assert (done.code, done.out) == (2, ""), words
        assert said in done.err, words
    running = call("resume", "r1", "--raise", "max_steps=+5")
    assert (running.code, "not parked" in running.err) == (1, True)
    assert call("status", "r1", "--json").json["budgets"]["max_steps"]["limit"] == 2


@pytest.mark.usefixtures("coordinator")
def test_money_and_times_are_raised_exactly(call: Call, desk: Desk) -> None:
    limits = {"limits": {"max_steps": 1, "deadline": "1h", "cost": "0.10"}, "on_limit": "pause"}
    free = {"external": True, "reserve": {"tokens": 0, "cost": 0}}
    call("submit", desk.team(limits, order=free, other=free), "--id", "r1")
    assert call("report-task", "r1", "order", "working").out == "paused\n"
    raises = ("--raise", "cost=+0.2", "--raise", "deadline=+10m", "--raise", "max_steps=+9")
    assert call("resume", "r1", *raises).out == "running\n"
    assert call("status", "r1", "--json").json["budgets"]["cost"]["limit"] == "0.30"
    details = {
        e["reason"]: e["detail"] for e in call("events", "r1", "--json").json if e["kind"] == "limit_raised"
    }
    assert details["limit_deadline_ms"] == "3600000 -> 4200000"


def test_a_run_that_was_kept_is_raised_and_gone_on_with(desk: Desk) -> None:
    desk.gate.touch()
    done = desk.run(desk.team(PAUSING, quick={}, gated={"requires": ["quick"]}), "--id", "r1")
    assert done.returncode == 1
    assert "  crewline resume r1 --raise step_budget=+1" in done.stderr
    raised = desk.call("resume", "r1", "--raise", "step_budget=+1")
    assert (raised.returncode, raised.stdout) == (0, "running\n"), raised.stderr
    done = desk.run("--continue", "r1")
    assert done.returncode == 0, done.stderr
    assert desk.report("r1")["budgets"]["step_budget"] == {
        "limit": 2,
        "used": 2,
        "reserved": 0,
        "overrun": False,
    }
