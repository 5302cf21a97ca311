"""Owns what stands still short of an end: open questions, and the report's `interruptions` (SPEC 1, 8, 10).

Must not classify by itself: `agent_threads.classify_interruption` is the one rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.agent_threads.interruptions import HEADINGS, LISTED, classify_interruption, run_pair
from coordinator.run_report.sections.tasks import TaskEntry


def awaiting_entries(tasks: Mapping[str, TaskEntry]) -> list[dict[str, Any]]:
    """Gives `awaiting`: the tasks that ask a person, each with its question; `open` is false once a stop ended the
    waiting, so that an answer would come too late."""
    found = []
    for name, task in tasks.items():
        if "awaiting" in (task["state"], task["was"]) and task["waits_for"] == "input":
            entry = {
                "task": name,
                "question": task["question"],
                "question_digest": task["question_digest"],
                "since": task["attempts"][-1]["ended_at"] if task["attempts"] else None,
                "open": task["state"] == "awaiting",
            }
            found.append(entry)
    return found


def interruption_entries(run: Mapping[str, str], tasks: Mapping[str, TaskEntry]) -> list[dict[str, str]]:
    """Gives `interruptions`: the run, and tasks that had begun; unstarted ones never paused.

    A task that a stop found awaiting is listed as awaiting (C-53).
    """
    found = [_interruption("run", run["status"], run.get("locked_reason", ""))]
    for name, task in tasks.items():
        if "awaiting" in (task["state"], task["was"]):
            found.append(_interruption(f"tasks/{name}", "awaiting", ""))
        elif task["state"] == "canceled" and any(_began(a) for a in task["attempts"]):
            found.append(_interruption(f"tasks/{name}", "canceled", ""))
    return [entry for entry in found if entry["kind"] in LISTED]


def _began(attempt: Mapping[str, Any]) -> bool:
    return attempt["started_at"] is not None


def _interruption(location: str, status: str, locked_reason: str) -> dict[str, str]:
    kind = classify_interruption(*run_pair(status, locked_reason))
    return {"location": location, "kind": str(kind), "headline": HEADINGS.get(kind, ""), "status": status}
