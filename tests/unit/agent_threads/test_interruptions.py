"""The classification of SPEC 8, pair by pair."""

from __future__ import annotations

import pytest

from coordinator.agent_threads import classify_interruption, run_pair


@pytest.mark.parametrize(
    ("status", "locked_reason", "kind"),
    [
        (None, None, "completed"),
        ("", "", "completed"),
        ("COMPLETED", None, "completed"),
        ("WORKFLOW_COMPLETED", "spending_limit_exceeded", "completed"),
        ("WORKFLOW_AWAITING_NEXT_STEPS", "spending_limit_exceeded", "limit_interrupted"),
        ("WORKFLOW_AWAITING_NEXT_STEPS", None, "awaiting"),
        ("WORKFLOW_AWAITING_NEXT_STEPS", "", "awaiting"),
        ("WORKFLOW_AWAITING_NEXT_STEPS", "a_reason_of_tomorrow", "other"),
        ("WORKFLOW_CANCELED", None, "canceled"),
        ("WORKFLOW_FAILED", None, "other"),
        ("completed", None, "other"),
    ],
)
def test_a_pair_has_one_kind(status: str | None, locked_reason: str | None, kind: str) -> None:
    assert classify_interruption(status, locked_reason) == kind


@pytest.mark.parametrize(
    ("status", "locked_reason", "kind"),
    [
        ("paused", "tokens", "limit_interrupted"),
        ("paused", "deadline", "limit_interrupted"),
        ("paused", "", "awaiting"),
        ("paused", "a rule's name", "awaiting"),
        ("awaiting", "", "awaiting"),
        ("canceled", "", "canceled"),
        ("completed", "", "completed"),
        ("succeeded", "", "completed"),
        ("critical_failure", "", "other"),
        ("needs_review", "", "other"),
    ],
)
def test_crewlines_own_statuses_map_first(status: str, locked_reason: str, kind: str) -> None:
    assert classify_interruption(*run_pair(status, locked_reason)) == kind
