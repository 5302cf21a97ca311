"""Owns the part of a run report that tells of each task (SPEC 10).

Must not decide a state: what a task field says stands. Must not order by anything but the Team file's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coordinator.run_report.fields import count, document, flag, money, word
from coordinator.run_report.sections.attempts import Attempt, close_open, fold_attempts
from coordinator.run_report.sections.blocking import blocked_paths
from coordinator.wire.names import FINAL, RunStatus

if TYPE_CHECKING:
    from coordinator.machine.snapshot import RunSnapshot

TaskEntry = dict[str, Any]

OPEN_STATES = ("pending", "queued", "running", "awaiting", "needs_review")
"""States of a task that has not ended (SPEC 1)."""


def task_entries(snapshot: RunSnapshot) -> dict[str, TaskEntry]:
    """Gives the report's `tasks`, in file order."""
    attempts = fold_attempts(snapshot.events)
    blocked = blocked_paths(snapshot.tasks)
    children = _children(snapshot.tasks)
    stopped_at = _stopped_at(snapshot.run)
    entries: dict[str, TaskEntry] = {}
    for task in snapshot.tasks:
        own = attempts.get(task["id"], [])
        if stopped_at is not None and task["state"] == "canceled":
            close_open(own, stopped_at)
        entry = _entry(task, own, snapshot.payloads)
        entry["blocked_by"] = blocked.get(task["id"])
        entry["children"] = children.get(task["id"], [])
        entries[task["id"]] = entry
    return entries


def _stopped_at(run: Mapping[str, str]) -> int | None:
    """When the run reached its final status; None while it is open."""
    final = run.get("status") in {str(status) for status in FINAL | {RunStatus.CANCELED}}
    return count(run, "stop_at") or count(run, "ended_at") if final else None


def _children(tasks: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for task in tasks:
        if task.get("parent"):
            found.setdefault(task["parent"], []).append(task["id"])
    return found


def _entry(task: Mapping[str, str], attempts: list[Attempt], payloads: Mapping[str, str]) -> TaskEntry:
    digest = word(task, "digest")
    question = word(task, "question_digest")
    return {
        "index": count(task, "index"),
        "state": task["state"],
        "was": word(task, "was") if task.get("was") != task["state"] else None,
        "required": flag(task, "required"),
        "role": word(task, "role"),
        "capability": word(task, "capability"),
        "external": flag(task, "external"),
        "parent": word(task, "parent"),
        "for_each": flag(task, "for_each"),
        "background": flag(task, "background"),
        "attempts": attempts,
        "result": document(payloads.get(digest)) if digest else None,
        "result_digest": digest,
        "result_trust": word(task, "result_trust"),
        "tainted": flag(task, "tainted"),
        "tainted_by": word(task, "doubt_root") if flag(task, "tainted") else None,
        "review": word(task, "review"),
        "reason": word(task, "reason"),
        "error": document(task.get("error")),
        "question": document(payloads.get(question)) if question else None,
        "question_digest": question,
        "waits_for": word(task, "waits_for"),
        "tokens_used": count(task, "used_tokens"),
        "cost_used": money(count(task, "used_cost_micros")),
    }
