"""Owns how records of the machine are shown as JSON: numbers as numbers, payloads beside their digests. Pure.

Must not leave out or judge anything but what a caller may not see: evidence and ledgers are for operators and
reviewers only (SPEC 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.machine.snapshot import RunSnapshot
from coordinator.run_report.build import RunReport, budget_entries
from coordinator.run_report.fields import count, document, flag, number, word
from coordinator.wire.names import FINAL, TaskState

UNFINISHED = (TaskState.PENDING, TaskState.QUEUED, TaskState.RUNNING, TaskState.AWAITING)
"""States that a stop turns into `canceled` without rewriting the task."""
WITHHELD = ("result_conflicts", "late_results")
"""Parts of a report whose payloads only operators and reviewers see."""


def run_line(run: Mapping[str, str]) -> dict[str, Any]:
    """A run in a list."""
    return {
        "run": run["run"],
        "team": run.get("team", ""),
        "status": run["status"],
        "created_at": number(run, "created_at"),
        "state_version": count(run, "state_version"),
    }


def run_summary(run: Mapping[str, str]) -> dict[str, Any]:
    """A run in short."""
    return {
        **run_line(run),
        "ended_at": number(run, "ended_at"),
        "stop_reason": word(run, "stop_reason"),
        "locked_reason": word(run, "locked_reason"),
        "tasks": task_counts(run),
        "steps_used": count(run, "used_step_budget"),
        "budgets": budget_entries(run),
        "reviews_open": count(run, "reviews_open"),
    }


def task_counts(run: Mapping[str, str]) -> dict[str, int]:
    """Tasks by the state that people see: what a stop left unfinished counts as canceled (SPEC 4)."""
    counts = {state: count(run, f"n_{state}") for state in TaskState}
    if run["status"] in FINAL:
        for state in UNFINISHED:
            counts[TaskState.CANCELED] += counts[state]
            counts[state] = 0
    return {str(state): amount for state, amount in counts.items() if amount}


def task_line(task: Mapping[str, str]) -> dict[str, Any]:
    """A task in a list."""
    return {
        "id": task["id"],
        "state": task["state"],
        "required": flag(task, "required"),
        "role": word(task, "role"),
        "external": flag(task, "external"),
        "attempt": count(task, "attempt"),
        "max_attempts": count(task, "max_attempts"),
        "result_digest": word(task, "digest"),
        "result_trust": word(task, "result_trust"),
        "tainted": flag(task, "tainted"),
        "blocked_root": word(task, "root") if task["state"] == TaskState.BLOCKED else None,
        "reason": word(task, "reason"),
    }


def evidence(entry: Mapping[str, Any], payloads: Mapping[str, str]) -> dict[str, Any]:
    """One arrival under a key in conflict, without the lease: that was a secret once."""
    return {
        "arrival": number(entry, "arrival"),
        "digest": word(entry, "digest"),
        "payload": document(payloads.get(entry.get("digest", ""))),
        "worker": word(entry, "worker"),
        "attempt": number(entry, "attempt"),
        "at": number(entry, "at"),
        "accepted": flag(entry, "accepted"),
    }


def late_result(entry: Mapping[str, Any], payloads: Mapping[str, str]) -> dict[str, Any]:
    """An entry of the late ledger."""
    return {
        "task": entry["task"],
        "source": word(entry, "source"),
        "attempt": number(entry, "attempt"),
        "at": number(entry, "at"),
        "digest": word(entry, "digest"),
        "payload": document(payloads.get(entry.get("digest", ""))),
        "verdict": word(entry, "verdict"),
        "reason": word(entry, "reason"),
        "would_change": flag(entry, "would_change"),
        "state": word(entry, "state"),
    }


def action(entry: Mapping[str, Any], payloads: Mapping[str, str]) -> dict[str, Any]:
    """An action with what was said of it."""
    return {
        **entry,
        "details": document(payloads.get(entry.get("details", ""))),
        "receipt": document(payloads.get(entry.get("receipt", ""))),
    }


def evidence_of(found: RunSnapshot, task: str) -> list[dict[str, Any]]:
    """The evidence about a task, in order of arrival."""
    entries = [entry for entry in found.conflicts if entry["task"] == task]
    return [evidence(entry, found.payloads) for entry in entries]


def without_evidence(report: RunReport) -> RunReport:
    """The report as a caller sees it who may not see evidence; `withheld` says what is missing."""
    shown = {**report, "withheld": list(WITHHELD)}
    for part in WITHHELD:
        shown[part] = [{**entry, "payload": None} for entry in report[part]]
    return shown
