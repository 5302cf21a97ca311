"""Owns the counters as all histories together add them up (SPEC 11): what is exported must be exactly that.

Only counters that a history can tell are compared; the rest (fenced writes, gauges) are not its business. Must not take
any number from the counters themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from coordinator.wire.names import TaskState
from ops.chaos.checker.evidence import Evidence, Fields, RunEvidence, Violation

PREFIXES = (
    "stops:", "parks:", "stopped:", "tasks:", "attempts:", "late_results:", "cancellations:", "budget_overruns:",
    "duplicate_results", "result_conflicts", "lease_expirations", "malformed_entries",
)  # fmt: skip
UNFINISHED = (TaskState.PENDING, TaskState.QUEUED, TaskState.RUNNING, TaskState.AWAITING)
NOTES = {"duplicate_result_ignored": "duplicate_results", "result_conflict_detected": "result_conflicts"}
OUTCOMES = {
    "task_succeeded": "succeeded",
    "attempt_failed": "failed",
    "attempt_lost": "lost",
    "attempt_timed_out": "timed_out",
    "attempt_never_started": "never_started",
    "task_denied": "denied",
    "task_awaiting": "awaiting",
    "task_canceled": "canceled",
    "task_conflicted": "conflicted",
    "task_in_doubt": "awaiting",
}
"""Event that ends a running attempt, and the attempt's outcome; `task_failed` is told by its reason."""
REASONS = {
    "lease_expired": "lost",
    "timeout": "timed_out",
    "progress_timeout": "timed_out",
    "queue_timeout": "timed_out",
    "never_started": "never_started",
}
UNBEGUN = ("attempt_never_started", "task_failed")
"""Events that end an attempt that was only queued and count as its outcome."""


def check_counters(evidence: Evidence) -> Iterable[Violation]:
    """Every counter that the histories can tell."""
    told = sum((_told(run) for run in evidence.runs.values()), Counter[str]())
    told["malformed_entries"] = evidence.malformed
    stored = {name: value for name, value in evidence.counters.items() if name.startswith(PREFIXES)}
    for name in sorted({*told, *stored}):
        if told[name] != stored.get(name, 0):
            what = f"{name} is {stored.get(name, 0)}, the histories say {told[name]}"
            yield Violation("counter", "", what)


def _told(run: RunEvidence) -> Counter[str]:
    count: Counter[str] = Counter({"tasks:pending": len(run.tasks)})
    without_attempts = {task["id"] for task in run.tasks if task.get("for_each") == "1"}
    states: dict[str, str] = dict.fromkeys((task["id"] for task in run.tasks), TaskState.PENDING)
    for event in run.events:
        count.update(_names(event))
        if event["kind"].startswith("run_"):
            if event["kind"] == "run_stopped":
                count.update(f"stopped:{state}" for state in states.values() if state in UNFINISHED)
            continue
        if event["to"]:
            states[event["task_id"]] = event["to"]
            if event["task_id"] not in without_attempts:
                count.update(_outcome(event))
    return count


def _names(event: Fields) -> Iterator[str]:
    """The counters of an event by itself."""
    kind, reason, to = event["kind"], event["reason"], event["to"]
    if kind == "run_stopped":
        yield f"stops:{to}"
    elif kind == "run_parked":
        yield f"parks:{to}"
    elif kind == "late_ignored":
        yield f"late_results:{reason}"
    elif kind in NOTES:
        yield NOTES[kind]
    elif kind == "budget_overrun":
        yield f"budget_overruns:{reason}"
    elif kind.startswith("cancel_") and kind != "cancel_run_requested":
        yield f"cancellations:{kind.removeprefix('cancel_')}"
    elif to and not kind.startswith("run_") and to not in (TaskState.QUEUED, TaskState.RUNNING):
        yield f"tasks:{to}"


def _outcome(event: Fields) -> Iterator[str]:
    kind, reason = event["kind"], event["reason"]
    if event["from"] == TaskState.QUEUED and kind not in UNBEGUN:
        return
    if event["from"] not in (TaskState.QUEUED, TaskState.RUNNING):
        return
    outcome = REASONS.get(reason, "failed") if kind == "task_failed" else OUTCOMES.get(kind)
    if outcome is None:
        return
    yield f"attempts:{outcome}"
    if outcome == "lost":
        yield "lease_expirations"
