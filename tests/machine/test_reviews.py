"""Reviews of conflicting results: what a decision is bound to, who wins, and what it does to the rest (SPEC 6)."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.machine import commands as c
from tests.support.builders import digest, task
from tests.support.replay import Replay

A, B = {"v": "A"}, {"v": "B"}


@pytest.fixture
def replay(redis: Any) -> Any:
    made = Replay(redis)
    yield made
    made.check()


def conflict(replay: Replay, *others: Any, **header: Any) -> dict[str, Any]:
    """`a` sent A and then B under one key; gives its review. `others` are more tasks of the run."""
    replay.submit(task("a", key="k"), *others, **header)
    lease = replay.claim("a")
    replay.result(lease, A)
    return contradict(replay, lease)


def contradict(replay: Replay, lease: Any) -> dict[str, Any]:
    reply = replay.result(lease, B)
    assert reply.word == "result_conflict_detected", reply
    [review] = [found for found in replay.records("reviews") if found["status"] == "open"]
    return review


AFTER = (task("b", requires=["a"]), task("other", external=1))
"""A dependant that had not started, and something that keeps the run going."""


def test_a_conflict_opens_one_review_with_all_evidence(replay: Replay) -> None:
    review = conflict(replay, *AFTER)
    assert (review["id"], review["task"], review["kind"], review["status"]) == (
        "a.1",
        "a",
        "conflict",
        "open",
    )
    assert [entry["digest"] for entry in replay.ledger("conflicts")] == [digest(A), digest(B)]
    assert [entry["arrival"] for entry in replay.ledger("conflicts")] == [1, 2]
    assert [entry["accepted"] for entry in replay.ledger("conflicts")] == [1, 0]
    assert all(entry["worker"] == "w1" and entry["lease"] for entry in replay.ledger("conflicts"))
    assert replay.task("a")["digest"] == ""
    assert replay.states()["b"] == "blocked"


@pytest.mark.parametrize("choice", [A, B])
def test_accept_takes_one_of_the_digests_and_unblocks(replay: Replay, choice: Any) -> None:
    conflict(replay, *AFTER)
    assert replay.decide("a.1", "accept", choice).status == "applied"
    assert (replay.task("a")["state"], replay.task("a")["digest"]) == ("succeeded", digest(choice))
    assert replay.task("a")["result_trust"] == "reviewed"
    assert replay.states()["b"] == "pending"
    replay.work("b")
    replay.report("other")
    assert replay.status() == "completed"


def test_what_nobody_sent_cannot_be_accepted_but_supplied(replay: Replay) -> None:
    conflict(replay, *AFTER)
    assert replay.decide("a.1", "accept", {"v": "C"}).word == "unknown_digest"
    assert replay.states()["a"] == "needs_review"
    assert replay.decide("a.1", "supply", {"v": "C"}).status == "applied"
    assert replay.task("a")["digest"] == digest({"v": "C"})


def test_reject_fails_the_task_and_makes_the_block_final(replay: Replay) -> None:
    conflict(replay, *AFTER)
    assert replay.status() == "running", "a block by an open review is no failure"
    assert replay.decide("a.1", "reject").run_status == "critical_failure"
    assert replay.states() == {"a": "failed", "b": "blocked", "other": "canceled"}
    assert replay.run()["stop_task"] == "a"


def test_rerun_is_a_new_attempt_beyond_max_attempts_and_binds_no_more(replay: Replay) -> None:
    conflict(replay, *AFTER)
    assert replay.decide("a.1", "rerun").status == "applied"
    lease = replay.claim("a")
    assert lease.attempt == 2
    assert replay.result(lease, {"v": "C"}).status == "applied"
    assert replay.states() == {"a": "succeeded", "b": "pending", "other": "queued"}
    assert len(replay.ledger("conflicts")) == 2, "what was sent stays evidence"


def test_a_decision_on_old_evidence_is_refused(replay: Replay) -> None:
    replay.submit(task("a", key="k"), *AFTER)
    lease = replay.claim("a")
    replay.result(lease, A)
    seen = contradict(replay, lease)
    replay.report("other", "working")
    replay.result(lease, {"v": "C"})
    now = replay.reviews()["a.1"]
    assert now["evidence"] == seen["evidence"] + 1
    assert now["state_version"] > seen["state_version"]
    assert replay.decide("a.1", "accept", A, version=seen["state_version"]).word == "stale_version"
    assert replay.decide("a.1", "accept", A).status == "applied"


def test_a_move_elsewhere_in_the_run_does_not_age_a_review(replay: Replay) -> None:
    seen = conflict(replay, *AFTER)
    replay.report("other", "working")
    assert replay.decide("a.1", "accept", A, version=seen["state_version"]).status == "applied"


def test_of_two_deciders_one_wins_and_the_record_names_him(replay: Replay) -> None:
    seen = conflict(replay, *AFTER)
    version = seen["state_version"]
    assert replay.decide("a.1", "accept", A, version=version, source="ann").status == "applied"
    assert replay.decide("a.1", "accept", B, version=version, source="bob").word == "already_decided"
    assert replay.decide("a.1", "accept", A, version=version, source="cid").word == "already_decided"
    record = replay.reviews()["a.1"]
    assert (record["status"], record["decision"], record["source"]) == ("decided", "accept", "ann")
    assert (record["digest"], record["reason"], record["decided_at"]) == (digest(A), "looked", replay.now)
    assert replay.kinds("b").count("task_unblocked") == 1
    assert replay.run()["reviews_open"] == "0"


def test_a_run_parked_for_a_review_goes_on(replay: Replay) -> None:
    conflict(replay, task("b", requires=["a"]))
    assert replay.status() == "needs_review"
    assert replay.decide("a.1", "accept", B).run_status == "running"
    assert "run_resumed" in replay.kinds()
    replay.work("b")
    assert replay.status() == "completed"


def test_a_run_parked_for_a_review_ends_by_its_rejection(replay: Replay) -> None:
    conflict(replay, task("b", requires=["a"]))
    assert replay.decide("a.1", "reject").run_status == "critical_failure"


def tainted(replay: Replay) -> None:
    """`b` had succeeded from A when B came; `c` had not started."""
    replay.submit(
        task("a", key="k"), task("b", requires=["a"]), task("c", requires=["b"]), task("other", external=1)
    )
    lease = replay.claim("a")
    replay.result(lease, A)
    replay.work("b")
    contradict(replay, lease)
    assert replay.task("b")["tainted"] == "1"
    assert replay.states()["c"] == "blocked"


def test_tainted_descendants_are_kept(replay: Replay) -> None:
    tainted(replay)
    replay.decide("a.1", "accept", B, tainted="keep")
    assert (replay.task("b")["tainted"], replay.states()["b"]) == ("0", "succeeded")
    assert replay.states()["c"] == "pending"
    replay.work("c")
    replay.report("other")
    assert replay.status() == "completed"


def test_tainted_descendants_are_run_again(replay: Replay) -> None:
    tainted(replay)
    replay.decide("a.1", "accept", B, tainted="rerun")
    assert (replay.task("b")["tainted"], replay.states()["b"]) == ("0", "pending")
    assert replay.states()["c"] == "pending"
    lease = replay.claim("b")
    assert lease.attempt == 2
    replay.result(lease, {"from": "B"})
    replay.work("c")
    replay.report("other")
    assert replay.status() == "completed"


def test_a_rejection_keeps_what_had_ended_but_the_run_cannot_complete(replay: Replay) -> None:
    tainted(replay)
    assert replay.decide("a.1", "reject").run_status == "critical_failure"
    assert replay.states()["b"] == "succeeded"


def test_a_run_is_not_complete_while_a_required_task_is_in_doubt(replay: Replay) -> None:
    replay.submit(task("a", key="k", required=0), task("b", requires=["a"]), task("other", external=1))
    lease = replay.claim("a")
    replay.result(lease, A)
    replay.work("b")
    contradict(replay, lease)
    replay.report("other")
    assert replay.status() == "needs_review"
    assert replay.decide("a.1", "accept", A).run_status == "completed"


def test_a_repeat_of_the_accepted_result_is_a_duplicate_and_another_one_a_new_conflict(
    replay: Replay,
) -> None:
    replay.submit(task("a", key="k"), *AFTER)
    lease = replay.claim("a")
    replay.result(lease, A)
    contradict(replay, lease)
    replay.decide("a.1", "accept", A)
    assert replay.result(lease, A).word == "duplicate_result_ignored"
    assert replay.states()["a"] == "succeeded"
    assert replay.result(lease, {"v": "C"}).word == "result_conflict_detected"
    assert replay.states()["a"] == "needs_review"
    assert "a.2" in replay.reviews()


def test_a_review_of_a_run_that_has_stopped_changes_neither_status_nor_stop(replay: Replay) -> None:
    replay.submit(task("a", key="k", required=0), task("b"))
    lease = replay.claim("a")
    replay.result(lease, A)
    replay.work("b")
    assert replay.status() == "completed"
    before = replay.run()
    contradict(replay, lease)
    assert replay.states()["a"] == "needs_review"
    assert replay.decide("a.1", "accept", A).status == "applied"
    after = replay.run()
    for field in ("status", "stop_seq", "stop_reason", "ended_at", "used_step_budget"):
        assert after[field] == before[field], field


@pytest.mark.parametrize(("run", "word"), [("r1", "unknown_review"), ("r2", "unknown_run")])
def test_a_decision_on_what_does_not_exist_is_refused(replay: Replay, run: str, word: str) -> None:
    conflict(replay, *AFTER)
    decision = c.DecideReview(
        now=replay.now, run=run, review="a.9", decision="reject", payload="", digest="", facts="[]", version=1,
        tainted="keep", reason="", source="ann",
    )  # fmt: skip
    assert replay.apply(decision).word == word
    assert replay.reviews()["a.1"]["status"] == "open"


def test_an_unknown_action_is_a_review_that_ends_with_the_action(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=2, backoff_ms=0), task("other", external=1))
    first = replay.claim("a")
    act: dict[str, Any] = {"key": "pay", "payload": "", "digest": "", "again": 0}
    assert (
        replay.apply(c.StartAction(now=replay.now, worker="w1", **first.who, **act)).word == "action_started"
    )
    replay.fail(first, "transient")
    second = replay.claim("a")
    assert (
        replay.apply(c.StartAction(now=replay.now, worker="w1", **second.who, **act)).word == "action_unknown"
    )
    doubt = c.DoubtAction(now=replay.now, worker="w1", **second.who, key="pay", tokens=0, cost_micros=0)
    assert replay.apply(doubt).status == "applied"
    assert replay.reviews()["a.1"]["kind"] == "unknown_action"
    assert replay.states()["a"] == "needs_review"
    decided = c.DecideAction(
        now=replay.now, run="r1", task="a", key="pay", state="confirmed", payload='{"n":7}',
        digest=digest({"n": 7}), reason="found it in the ledger", source="ann",
    )  # fmt: skip
    assert replay.apply(decided).status == "applied"
    assert replay.reviews()["a.1"]["status"] == "decided"
    third = replay.claim("a")
    assert (
        replay.apply(c.StartAction(now=replay.now, worker="w1", **third.who, **act)).word
        == "action_confirmed"
    )
    assert replay.result(third, A).status == "applied"
