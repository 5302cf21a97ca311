"""Questions and answers: a task waits without a worker or a lease, is answered once, and goes on (SPEC 3, 8)."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.machine import commands as c
from tests.support.builders import digest, task, text
from tests.support.replay import Lease, Replay


@pytest.fixture
def replay(redis: Any) -> Any:
    made = Replay(redis)
    yield made
    made.check()


def ask(replay: Replay, lease: Lease, question: str) -> None:
    """The attempt asks for something."""
    reply = replay.apply(
        c.EndAttempt(
            now=replay.now, **lease.who, worker=lease.worker, outcome="missing_input", payload=text(question),
            digest=digest(question), facts="[]", error="", retry_after_ms=0, tokens=0, cost_micros=0,
        )
    )  # fmt: skip
    assert reply.status == "applied", reply


def test_an_awaiting_task_holds_no_lease_and_the_rest_goes_on(replay: Replay) -> None:
    replay.submit(task("a"), task("b"))
    ask(replay, replay.claim("a"), "which account?")
    found = replay.task("a")
    assert (found["state"], found["waits_for"], found["question_digest"]) == (
        "awaiting",
        "input",
        digest("which account?"),
    )
    assert found["lease"] == ""
    assert replay.status() == "running"
    replay.work("b")
    assert replay.status() == "paused", "nothing else is left to do"
    assert replay.run()["locked_reason"] == ""


def test_an_answer_lets_task_and_run_go_on_and_costs_no_attempt(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=1))
    ask(replay, replay.claim("a"), "which?")
    assert replay.answer("a", "the second").run_status == "running"
    lease = replay.claim("a")
    assert lease.attempt == 2
    assert replay.task("a")["answer_digest"] == digest("the second")
    replay.result(lease, 1)
    assert replay.status() == "completed"
    assert [k for k in replay.kinds() if k in ("run_parked", "run_resumed")] == ["run_parked", "run_resumed"]


def test_a_failed_attempt_after_the_answer_keeps_it(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=2, backoff_ms=0))
    ask(replay, replay.claim("a"), "which?")
    replay.answer("a", "this")
    replay.fail(replay.claim("a"), "transient")
    replay.claim("a")
    assert replay.task("a")["answer_digest"] == digest("this")


def test_the_same_answer_again_is_repeated_and_another_one_refused_and_recorded(replay: Replay) -> None:
    replay.submit(task("a"))
    ask(replay, replay.claim("a"), "which?")
    assert replay.answer("a", "yes").status == "applied"
    version = replay.run()["state_version"]
    assert replay.answer("a", "yes").status == "repeated"
    assert replay.answer("a", "no", source="bob").word == "already_answered"
    assert replay.task("a")["answer_digest"] == digest("yes")
    assert replay.run()["state_version"] == version
    refused = [event for event in replay.events("a") if event["kind"] == "refused"]
    assert [event["reason"] for event in refused] == ["already_answered"]


def test_an_answer_to_the_first_question_never_answers_the_second(replay: Replay) -> None:
    replay.submit(task("a"))
    ask(replay, replay.claim("a"), "q1")
    assert replay.answer("a", "one", question=digest("q1")).status == "applied"
    ask(replay, replay.claim("a"), "q2")
    assert replay.answer("a", "two", question=digest("q1")).word == "already_answered"
    assert replay.states()["a"] == "awaiting"
    assert replay.answer("a", "one", question=digest("q1")).status == "repeated"
    assert replay.states()["a"] == "awaiting"
    assert replay.answer("a", "one", question=digest("q2")).status == "applied"


def test_what_asks_nothing_cannot_be_answered(replay: Replay) -> None:
    replay.submit(task("a"), task("b"))
    assert replay.answer("a", "x").word == "wrong_state"
    assert replay.answer("nobody", "x").word == "unknown_task"
    replay.claim("a")
    assert replay.answer("a", "x").word == "wrong_state"
    assert replay.answer("b", "x", question=digest("q")).word == "wrong_state"


def test_an_answer_after_the_stop_is_refused(replay: Replay) -> None:
    replay.submit(task("a", required=0), task("b"))
    ask(replay, replay.claim("a"), "which?")
    replay.work("b")
    assert replay.status() == "completed"
    assert replay.answer("a", "x").word == "run_stopped"
    assert (replay.task("a")["state"], replay.task("a")["was"]) == ("canceled", "awaiting")


def test_at_the_deadline_an_awaiting_task_was_awaiting(replay: Replay) -> None:
    replay.submit(task("a"), task("b", external=1), limits={"deadline_ms": 60_000})
    ask(replay, replay.claim("a"), "which?")
    replay.tick(61)
    replay.reap()
    assert replay.status() == "deadline_exceeded"
    assert (replay.task("a")["state"], replay.task("a")["was"]) == ("canceled", "awaiting")


def test_a_paused_run_does_not_age(replay: Replay) -> None:
    replay.submit(task("a"), limits={"deadline_ms": 60_000, "no_progress_ms": 30_000})
    replay.tick(20)
    ask(replay, replay.claim("a"), "which?")
    assert replay.status() == "paused"
    replay.tick(3600)
    replay.reap()
    assert replay.status() == "paused", "the deadline stands still"
    assert replay.answer("a", "x").run_status == "running"
    replay.tick(9)
    replay.reap()
    replay.work("a")
    assert replay.status() == "completed"


def test_two_tasks_that_ask_are_answered_apart(replay: Replay) -> None:
    replay.submit(task("a"), task("b"))
    ask(replay, replay.claim("a"), "q")
    ask(replay, replay.claim("b"), "q")
    assert replay.status() == "paused"
    assert replay.answer("a", "x").run_status == "running"
    replay.work("a")
    assert (replay.status(), replay.states()["b"]) == ("paused", "awaiting")
    replay.answer("b", "y")
    replay.work("b")
    assert replay.status() == "completed"


def test_a_finisher_cannot_overwrite_a_fresh_question(replay: Replay) -> None:
    replay.submit(task("a"), task("b", external=1))
    lease = replay.claim("a")
    ask(replay, lease, "which?")
    reply = replay.result(lease, 1)
    assert reply.word == "late_ignored"
    assert replay.states()["a"] == "awaiting"
