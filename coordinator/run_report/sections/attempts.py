"""Owns the folding of a run's events into the attempts of each task (SPEC 10).

Must not judge: what an attempt came to is what its event says. Must not read anything but events; what a stop
did to attempts that were under way is added by `close_open`, because a stop writes no event for each of them
(SPEC 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coordinator.run_report.fields import count, document, number, word
from coordinator.wire.names import AttemptOutcome

Attempt = dict[str, Any]

_OUTCOME_OF_EVENT: dict[str, AttemptOutcome] = {
    "attempt_lost": AttemptOutcome.LOST,
    "attempt_timed_out": AttemptOutcome.TIMED_OUT,
    "attempt_never_started": AttemptOutcome.NEVER_STARTED,
    "task_blocked": AttemptOutcome.NEVER_STARTED,
}
"""What an attempt came to, where the state that its task went to does not say it."""

_OUTCOME_OF_REASON: dict[str, AttemptOutcome] = {
    "lease_expired": AttemptOutcome.LOST,
    "timeout": AttemptOutcome.TIMED_OUT,
    "progress_timeout": AttemptOutcome.TIMED_OUT,
    "queue_timeout": AttemptOutcome.TIMED_OUT,
    "never_started": AttemptOutcome.NEVER_STARTED,
}
"""The same for the last attempt of a task, whose end is the event of the task."""

_OUTCOME_OF_STATE: dict[str, AttemptOutcome] = {
    "pending": AttemptOutcome.FAILED,
    "succeeded": AttemptOutcome.SUCCEEDED,
    "failed": AttemptOutcome.FAILED,
    "denied": AttemptOutcome.DENIED,
    "awaiting": AttemptOutcome.AWAITING,
    "canceled": AttemptOutcome.CANCELED,
    "needs_review": AttemptOutcome.CONFLICTED,
}

_UNDER_WAY = ("queued", "running")

RUN_EVENT = "run_"
"""Begins the kind of an event of the run itself, which may name the task that decided it."""


def fold_attempts(events: Iterable[Mapping[str, str]]) -> dict[str, list[Attempt]]:
    """Gives the attempts of each task by number, in order of the events. Tasks without any are missing."""
    found: dict[str, dict[int, Attempt]] = {}
    for event in events:
        task, source, target = event.get("task_id", ""), event.get("from", ""), event.get("to", "")
        if not task or source == target or event.get("kind", "").startswith(RUN_EVENT):
            continue
        if (
            count(event, "attempt") < 1
        ):  # no attempt: a block, a denial, what the coordinator does for a for_each
            continue
        attempts = found.setdefault(task, {})
        if target in _UNDER_WAY:
            _begin(attempts, target, event)
        elif source in _UNDER_WAY:
            _end(attempts, target, event)
    return {task: [numbered[n] for n in sorted(numbered)] for task, numbered in found.items() if numbered}


def _begin(attempts: dict[int, Attempt], target: str, event: Mapping[str, str]) -> None:
    attempt = attempts.setdefault(count(event, "attempt"), _new(count(event, "attempt")))
    attempt["queued_at" if target == "queued" else "started_at"] = number(event, "at")
    attempt["worker"] = word(event, "worker") or attempt["worker"]


def _end(attempts: dict[int, Attempt], target: str, event: Mapping[str, str]) -> None:
    attempt = attempts.get(count(event, "attempt"))
    if attempt is None or attempt["outcome"] is not None:
        return
    by_event = _OUTCOME_OF_EVENT.get(event.get("kind", ""))
    by_reason = _OUTCOME_OF_REASON.get(event.get("reason", ""))
    attempt["outcome"] = str(by_event or by_reason or _OUTCOME_OF_STATE.get(target, AttemptOutcome.FAILED))
    attempt["ended_at"] = number(event, "at")
    attempt["error"] = document(event.get("error"))
    attempt["worker"] = word(event, "worker") or attempt["worker"]


def _new(attempt_number: int) -> Attempt:
    return {
        "number": attempt_number,
        "worker": None,
        "queued_at": None,
        "started_at": None,
        "ended_at": None,
        "outcome": None,
        "error": None,
    }


def close_open(attempts: Iterable[Attempt], at: int | None) -> None:
    """Ends what was under way when the run stopped at `at`: the stop is its one event (SPEC 3)."""
    for attempt in attempts:
        if attempt["outcome"] is None:
            attempt["outcome"] = str(AttemptOutcome.CANCELED)
            attempt["ended_at"] = at
