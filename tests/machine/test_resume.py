"""Limits that pause a run, and the person who raises them (SPEC 5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import task
from tests.support.replay import Replay


@pytest.fixture
def replay(redis: Any) -> Any:
    made = Replay(redis)
    yield made
    made.check()


def pausing(replay: Replay, *tasks: Any, **limits: int) -> None:
    replay.submit(*tasks, limits=limits, on_limit="pause")


def test_a_step_budget_is_raised_and_the_run_completes(replay: Replay) -> None:
    pausing(replay, task("a"), task("b"), step_budget=1)
    replay.work("a")
    assert (replay.status(), replay.run()["locked_reason"]) == ("paused", "step_budget")
    assert replay.resume(["limit_step_budget", 1, 1]).run_status == "running"
    assert replay.run()["limit_step_budget"] == "2"
    assert replay.run()["locked_reason"] == ""
    replay.work("b")
    assert replay.status() == "completed"
    kinds = [kind for kind in replay.kinds() if kind in ("run_parked", "limit_raised", "run_resumed")]
    assert kinds == ["run_parked", "limit_raised", "run_resumed"], "the interruption stays in the history"


@pytest.mark.parametrize(
    ("limits", "spec", "raise_"),
    [
        ({"tokens": 10}, {"tokens": 10}, ["limit_tokens", 20, 0]),
        ({"cost_micros": 10}, {"cost_micros": 10}, ["limit_cost", 10, 1]),
    ],
)
def test_tokens_and_cost_are_raised(
    replay: Replay, limits: dict[str, int], spec: dict[str, int], raise_: list[Any]
) -> None:
    pausing(replay, task("a", **spec), task("b", **spec), **limits)
    lease = replay.claim("a")
    replay.result(lease, 1, tokens=spec.get("tokens", 0), cost=spec.get("cost_micros", 0))
    assert replay.status() == "paused"
    assert replay.run()["locked_reason"] == raise_[0].removeprefix("limit_")
    assert replay.resume(raise_).run_status == "running"
    replay.work("b")
    assert replay.status() == "completed"


def test_max_steps_is_raised(replay: Replay) -> None:
    pausing(replay, task("a"), task("b"), max_steps=2)
    replay.work("a")
    assert (replay.status(), replay.run()["locked_reason"]) == ("paused", "max_steps")
    replay.resume(["limit_max_steps", 10, 1])
    replay.work("b")
    assert replay.status() == "completed"


def test_a_deadline_is_raised_by_a_span_that_counts_from_the_resume(replay: Replay) -> None:
    pausing(replay, task("a", external=1), deadline_ms=60_000)
    replay.tick(61)
    replay.reap()
    assert (replay.status(), replay.run()["locked_reason"]) == ("paused", "deadline")
    replay.tick(3600)
    assert replay.resume(["limit_deadline_ms", 60_000, 1]).run_status == "running"
    replay.tick(58)
    replay.reap()
    assert replay.status() == "running"
    replay.tick(2)
    replay.reap()
    assert replay.status() == "paused"


def test_no_progress_is_raised(replay: Replay) -> None:
    pausing(replay, task("a", external=1), no_progress_ms=60_000)
    replay.tick(61)
    replay.reap()
    assert (replay.status(), replay.run()["locked_reason"]) == ("paused", "no_progress")
    assert replay.resume(["limit_no_progress_ms", 60_000, 1]).run_status == "running"
    replay.tick(70)
    replay.reap()
    assert replay.status() == "paused"


def test_a_run_that_still_exceeds_its_limit_parks_again(replay: Replay) -> None:
    pausing(replay, task("a"), task("b"), step_budget=1)
    replay.work("a")
    first = replay.run()["stop_seq"]
    assert replay.resume().run_status == "paused"
    assert replay.run()["locked_reason"] == "step_budget"
    assert int(replay.run()["stop_seq"]) > int(first)


def test_work_in_flight_may_end_while_a_run_is_parked(replay: Replay) -> None:
    pausing(replay, task("a"), task("b"), deadline_ms=60_000)
    lease = replay.claim("a")
    replay.tick(20)
    replay.beat(lease)
    replay.tick(20)
    replay.beat(lease)
    replay.tick(21)
    replay.reap()
    assert replay.status() == "paused"
    assert replay.result(lease, 1).status == "applied"
    assert replay.states()["a"] == "succeeded"
    replay.dispatch()
    assert replay.ask("b").status == "refused", "nothing new starts"


def test_only_a_parked_run_is_resumed(replay: Replay) -> None:
    pausing(replay, task("a"), step_budget=5)
    assert replay.resume(["limit_step_budget", 1, 1]).word == "not_parked"
    assert replay.run()["limit_step_budget"] == "5"
    replay.work("a")
    assert replay.resume(["limit_step_budget", 1, 1]).word == "run_stopped"


def test_what_is_no_limit_is_never_written(replay: Replay) -> None:
    pausing(replay, task("a"), task("b"), step_budget=1)
    replay.work("a")
    replay.resume(["status", "completed", 0], ["used_step_budget", 0, 0], ["limit_step_budget", 1, 1])
    assert replay.status() == "running"
    assert replay.run()["used_step_budget"] == "1"


def test_a_run_paused_by_a_rule_is_passed_over_it_by_an_operator(replay: Replay) -> None:
    rule = {"name": "look", "ends": "paused", "rule": ["ge", "reports_accepted", 2]}
    replay.submit(task("a"), task("b"), rules=[rule])
    replay.work("a")
    assert (replay.status(), replay.run()["stop_rule"]) == ("paused", "look")
    assert replay.run()["locked_reason"] == "stop_rule"
    replay.resume()
    assert replay.status() == "running", "the rule still holds; it counts again only after it has been false"
    replay.work("b")
    assert replay.status() == "completed"
