"""Cases J: what people decide, and interrupted work (C-50, C-52, C-53)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coordinator.agent_threads.interruptions import classify_interruption
from coordinator.machine.commands import DoubtAction, EndAction, StartAction
from tests.support.builders import digest, task, text
from tests.support.replay import Lease, Replay


def conflicted(replay: Replay) -> Lease:
    """a succeeded with A and then said B; b waits for it."""
    replay.submit(task("a", key="k"), task("b", requires=["a"]))
    lease = replay.claim("a")
    replay.result(lease, "A")
    replay.result(lease, "B")
    assert replay.states() == {"a": "needs_review", "b": "blocked"}
    return lease


def act(replay: Replay, lease: Lease, again: int = 0) -> Any:
    """The handler is about to pay; gives the word."""
    return replay.apply(
        StartAction(
            now=replay.now, **lease.who, worker=lease.worker, key="pay", payload=text(5), digest=digest(5), again=again
        )
    ).word  # fmt: skip


def paid(replay: Replay, lease: Lease, state: str = "confirmed") -> Any:
    """The handler has paid."""
    return replay.apply(
        EndAction(
            now=replay.now, **lease.who, worker=lease.worker, key="pay", state=state, payload=text("receipt"),
            digest=digest("receipt"),
        )
    )  # fmt: skip


def test_C_50_of_two_deciders_one_wins_and_the_other_is_told(replay: Replay) -> None:
    conflicted(replay)
    [review] = replay.reviews()
    version = int(replay.reviews()[review]["state_version"])
    words = [
        replay.decide(review, "accept", choice, version, source=who).word
        for choice, who in (("A", "ann"), ("B", "bob"), ("A", "cid"))
    ]
    assert words == ["", "already_decided", "already_decided"]
    assert (replay.states(), replay.status()) == ({"a": "succeeded", "b": "pending"}, "running")
    assert (replay.task("a")["digest"], replay.task("a")["result_trust"]) == (digest("A"), "reviewed")
    assert replay.kinds("b").count("task_unblocked") == 1
    assert len(replay.ledger("conflicts")) == 2, "the evidence is kept"
    assert replay.work("b").run_status == "completed"


def test_C_50_who_decided_on_old_evidence_is_told(replay: Replay) -> None:
    lease = conflicted(replay)
    [review] = replay.reviews()
    seen = int(replay.reviews()[review]["state_version"])
    replay.resume()
    replay.result(lease, "C")
    if int(replay.reviews()[review]["state_version"]) != seen:
        assert replay.decide(review, "accept", "A", seen).word == "stale_version"
    assert replay.decide(review, "accept", "Z").word == "unknown_digest", (
        "a decision is bound to what somebody sent"
    )
    assert replay.decide(review, "accept", "C").status == "applied"


@pytest.mark.parametrize(("decision", "state"), [("supply", "succeeded"), ("rerun", "pending")])
def test_C_50_another_result_or_another_try(replay: Replay, decision: str, state: str) -> None:
    conflicted(replay)
    [review] = replay.reviews()
    assert replay.decide(review, decision, "S").run_status == "running"
    assert replay.states() == {"a": state, "b": "pending"}
    if decision == "rerun":
        assert replay.work("a", "again").status == "applied", (
            "a new attempt answers anew, with whatever result"
        )
    assert replay.work("b").run_status == "completed"


def test_C_50_a_rejected_result_fails_the_task_for_good(replay: Replay) -> None:
    conflicted(replay)
    [review] = replay.reviews()
    assert replay.decide(review, "reject").run_status == "critical_failure"
    assert replay.states() == {"a": "failed", "b": "blocked"}


def test_C_52_an_effect_before_the_pause_is_not_done_again(replay: Replay) -> None:
    replay.submit(task("a"))
    first = replay.claim("a")
    assert act(replay, first) == "action_started"
    paid(replay, first)
    replay.fail(first, "missing_input")
    assert replay.status() == "paused"
    assert replay.answer("a", "yes").run_status == "running"
    second = replay.claim("a", "w2")
    assert act(replay, second) == "action_confirmed", "it gets the receipt back"
    assert replay.result(second, 1).run_status == "completed"
    assert [(each["key"], each["state"], each["receipt"]) for each in replay.records("actions")] == [
        ("pay", "confirmed", digest("receipt"))
    ]


def test_C_52_a_question_is_answered_once(replay: Replay) -> None:
    replay.submit(task("a"), task("b"))
    for name in "ab":
        replay.fail(replay.claim(name), "missing_input")
    assert replay.answer("a", "yes").status == "applied"
    assert replay.answer("a", "yes").status == "repeated"
    assert replay.answer("a", "no", source="bob").word == "already_answered"
    assert replay.states()["b"] == "awaiting", "an answer to one question never answers another"
    refused = [event for event in replay.events("a") if event["kind"] == "refused"]
    assert len(refused) == 1, "the other value is on record"


def test_C_52_an_unconfirmed_effect_is_never_silently_repeated(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=3, backoff_ms=0), task("z", requires=["a"]))
    first = replay.claim("a")
    act(replay, first)
    replay.tick(31)
    replay.reap()
    second = replay.claim("a", "w2")
    assert act(replay, second) == "action_unknown"
    doubt = DoubtAction(now=replay.now, **second.who, worker="w2", key="pay", tokens=0, cost_micros=0)
    assert replay.apply(doubt).run_status == "needs_review"
    assert replay.states() == {"a": "needs_review", "z": "blocked"}
    assert [review["kind"] for review in replay.reviews().values()] == ["unknown_action"]
    assert paid(replay, first).status == "applied", "the one that did it is believed, late as it is"
    assert [each["state"] for each in replay.records("actions")] == ["confirmed"]


def test_C_53_an_end_does_not_overwrite_a_question(replay: Replay) -> None:
    """The finisher saw `running`; meanwhile the task asked. Its lease is gone, so its word comes too late."""
    replay.submit(task("a"), task("b", external=1))
    lease = replay.claim("a")
    replay.fail(lease, "missing_input")
    assert replay.result(lease, 1).word == "late_ignored"
    assert replay.states()["a"] == "awaiting"
    assert replay.report("b").run_status == "paused", "awaiting is neither success nor failure"


def test_C_53_at_the_deadline_it_is_told_what_was_awaiting(replay: Replay) -> None:
    replay.submit(task("a"), task("b", external=1), limits={"deadline_ms": 60_000})
    replay.fail(replay.claim("a"), "missing_input")
    replay.tick(60)
    replay.reap()
    assert replay.status() == "deadline_exceeded"
    assert (replay.states()["a"], replay.task("a")["was"]) == ("canceled", "awaiting")


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("", "awaiting"), ("spending_limit_exceeded", "limit_interrupted"), ("phase_of_the_moon", "other")],
)
def test_C_53_a_limit_and_a_question_are_told_apart(reason: str, kind: str) -> None:
    assert classify_interruption("WORKFLOW_AWAITING_NEXT_STEPS", reason) == kind


def test_C_53_a_run_paused_by_a_limit_says_which_and_goes_on_when_it_is_raised(replay: Replay) -> None:
    replay.submit(task("a"), task("b", requires=["a"]), limits={"step_budget": 1}, on_limit="pause")
    replay.work("a")
    assert (replay.status(), replay.run()["locked_reason"]) == ("paused", "step_budget")
    assert replay.resume(["limit_step_budget", 1, 1]).run_status == "running"
    assert replay.work("b").run_status == "completed"
    assert json.loads(replay.run()["also_true"] or "[]") == []
