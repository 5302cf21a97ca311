"""Owns the one rule that says whether and how a piece of work was interrupted (SPEC 8).

Must not log: who calls it warns of every kind but `completed`, so that an unknown status is never unseen.
Must not read runs or threads: it gets the status and the reason that stand at the level in question.
"""

from __future__ import annotations

from enum import StrEnum

from coordinator.wire.names import Limit

AWAITING_STATUS = "WORKFLOW_AWAITING_NEXT_STEPS"
CANCELED_STATUS = "WORKFLOW_CANCELED"
COMPLETED_STATUS = "COMPLETED"
LIMIT_REASON = "spending_limit_exceeded"

_COMPLETED = frozenset({"", COMPLETED_STATUS, "WORKFLOW_COMPLETED"})
_LIMITS = frozenset(limit.value for limit in Limit)


class InterruptionKind(StrEnum):
    """How a turn, a sub-agent, a task or a run stands."""

    COMPLETED = "completed"
    """It came to its end, or has no status at all."""
    LIMIT_INTERRUPTED = "limit_interrupted"
    """A limit was reached: the content ends at the break."""
    AWAITING = "awaiting"
    """It waits for the next step and can be continued."""
    CANCELED = "canceled"
    """Somebody or something called it off."""
    OTHER = "other"
    """A status that this version does not know, or that is no interruption; never dressed up as one."""


LISTED = frozenset({InterruptionKind.LIMIT_INTERRUPTED, InterruptionKind.AWAITING, InterruptionKind.CANCELED})
"""Kinds that belong into an `interruptions` list."""

HEADINGS: dict[InterruptionKind, str] = {
    InterruptionKind.LIMIT_INTERRUPTED: "⏸ limit reached (content ends at the break)",
    InterruptionKind.AWAITING: "⏸ interrupted, can be continued",
    InterruptionKind.CANCELED: "⛔ canceled",
}
"""What stands in a heading; nothing for completed and other."""


def classify_interruption(status: str | None, locked_reason: str | None) -> InterruptionKind:
    """Says how `(status, locked_reason)` is to be read. An awaiting status with an unknown reason is `other`
    (SPEC 8).
    """
    status = status or ""
    if status in _COMPLETED:
        return InterruptionKind.COMPLETED
    if status == CANCELED_STATUS:
        return InterruptionKind.CANCELED
    if status == AWAITING_STATUS:
        if locked_reason == LIMIT_REASON:
            return InterruptionKind.LIMIT_INTERRUPTED
        if not locked_reason:
            return InterruptionKind.AWAITING
    return InterruptionKind.OTHER


def run_pair(status: str, locked_reason: str) -> tuple[str, str]:
    """Maps the status of a Crewline run or task onto the pair that `classify_interruption` reads (SPEC 8).

    A run is `paused` with the limit's name as reason when a limit was reached; paused otherwise (a task
    awaits input, a stop rule paused it) it can be continued. Whatever maps onto nothing passes through and is
    classified as `other`.
    """
    if status == "paused" and locked_reason in _LIMITS:
        return AWAITING_STATUS, LIMIT_REASON
    if status in ("paused", "awaiting"):
        return AWAITING_STATUS, ""
    if status == "canceled":
        return CANCELED_STATUS, ""
    if status in ("completed", "succeeded"):
        return COMPLETED_STATUS, ""
    return status, locked_reason
