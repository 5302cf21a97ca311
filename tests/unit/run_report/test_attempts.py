"""Attempts are folded from events alone."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.run_report.sections.attempts import fold_attempts


def test_attempts_have_their_times_worker_outcome_and_error(refund: Any) -> None:
    attempts = fold_attempts(refund.events)
    assert attempts["order"] == [
        {
            "number": 1,
            "worker": "w1",
            "queued_at": 1200,
            "started_at": 1300,
            "ended_at": 1700,
            "outcome": "succeeded",
            "error": None,
        }
    ]
    lost, failed = attempts["policy"]
    assert (lost["number"], lost["outcome"], lost["worker"]) == (1, "lost", "w2")
    assert (failed["number"], failed["outcome"], failed["started_at"]) == (2, "failed", None)
    assert failed["error"]["type"] == "FileNotFoundError"


def test_a_task_that_never_was_queued_has_no_attempt(refund: Any) -> None:
    refund.event("task_denied", "style", "pending>denied", 0, reason="no_capability")
    assert set(fold_attempts(refund.events)) == {"order", "policy"}


@pytest.mark.parametrize(
    ("kind", "move", "outcome"),
    [
        ("attempt_never_started", "running>pending", "never_started"),
        ("attempt_timed_out", "running>pending", "timed_out"),
        ("attempt_failed", "running>pending", "failed"),
        ("task_awaiting", "running>awaiting", "awaiting"),
        ("task_denied", "running>denied", "denied"),
        ("task_canceled", "running>canceled", "canceled"),
        ("task_conflicted", "running>needs_review", "conflicted"),
    ],
)
def test_every_way_to_end_has_its_outcome(new_snapshot: Any, kind: str, move: str, outcome: str) -> None:
    snapshot = new_snapshot()
    snapshot.event("task_queued", "a", "pending>queued", 1)
    snapshot.event("attempt_started", "a", "queued>running", 1)
    snapshot.event(kind, "a", move, 1)
    assert fold_attempts(snapshot.events)["a"][0]["outcome"] == outcome


def test_news_about_an_ended_attempt_does_not_change_it(new_snapshot: Any) -> None:
    snapshot = new_snapshot()
    snapshot.event("task_queued", "a", "pending>queued", 1)
    snapshot.event("attempt_started", "a", "queued>running", 1)
    snapshot.event("task_succeeded", "a", "running>succeeded", 1)
    snapshot.event("late_ignored", "a", attempt=1)
    snapshot.event("task_conflicted", "a", "succeeded>needs_review", 1)
    assert fold_attempts(snapshot.events)["a"][0]["outcome"] == "succeeded"


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("lease_expired", "lost"),
        ("timeout", "timed_out"),
        ("never_started", "never_started"),
        ("permanent", "failed"),
    ],
)
def test_the_last_attempts_outcome_is_not_just_failed(new_snapshot: Any, reason: str, outcome: str) -> None:
    snapshot = new_snapshot()
    snapshot.event("task_queued", "a", "pending>queued", 1)
    snapshot.event("attempt_started", "a", "queued>running", 1)
    snapshot.event("task_failed", "a", "running>failed", 1, reason=reason)
    assert fold_attempts(snapshot.events)["a"][0]["outcome"] == outcome


def test_what_the_coordinator_does_itself_is_no_attempt(new_snapshot: Any) -> None:
    snapshot = new_snapshot()
    snapshot.event("task_queued", "fan", "pending>queued")
    snapshot.event("task_spawning", "fan", "queued>running")
    snapshot.event("task_awaiting", "fan", "running>awaiting")
    assert fold_attempts(snapshot.events) == {}


def test_the_event_of_the_run_that_names_a_task_is_not_the_tasks(new_snapshot: Any) -> None:
    snapshot = new_snapshot()
    snapshot.event("task_queued", "a", "pending>queued", 1)
    snapshot.event("run_stopped", "a", "running>failed", 1)
    assert fold_attempts(snapshot.events)["a"][0]["outcome"] is None
