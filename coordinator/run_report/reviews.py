"""Owns what a reviewer must see of one review: every payload with who sent it when, what differs, what hangs on it.

Pure: reads the report alone. Must not shorten a payload or a digest: a decision is bound to them (SPEC 6).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from coordinator.wire.digest import canonical


def review_view(report: Mapping[str, Any], review: str) -> dict[str, Any] | None:
    """Gives one review with its evidence; None when the run has no such review.

    `candidates`: each different payload once, by digest, in order of arrival; `evidence_list`: all arrivals. `tainted`,
    `blocked`: tasks that had started from the doubtful result, and that wait for the decision. `actions`: side effects
    of the task and of what it tainted.
    """
    found = next((entry for entry in report["reviews"] if entry["id"] == review), None)
    if found is None:
        return None
    task, tasks = found["task"], report["tasks"]
    evidence = [entry for entry in report["result_conflicts"] if entry["task"] == task]
    tainted = [name for name, entry in tasks.items() if entry["tainted_by"] == task]
    return {
        "run": report["run"],
        "run_status": report["status"],
        **found,
        "candidates": _candidates(evidence),
        "evidence_list": [{name: entry[name] for name in entry if name != "payload"} for entry in evidence],
        "tainted": [{"task": name, "state": tasks[name]["state"]} for name in tainted],
        "blocked": [name for name, t in tasks.items() if t["blocked_by"] and t["blocked_by"]["root"] == task],
        "actions": [action for action in report["actions"] if action["task"] in (task, *tainted)],
    }


def _candidates(evidence: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for entry in evidence:
        candidate = found.setdefault(
            entry["digest"], {"digest": entry["digest"], "payload": entry["payload"], "arrivals": []}
        )
        candidate["arrivals"].append(entry["arrival"])
    return list(found.values())


def pretty(payload: Any) -> list[str]:
    """A payload as lines of canonical JSON: the same value always gives the same ones."""
    text = json.dumps(json.loads(canonical(payload)), ensure_ascii=False, indent=2, sort_keys=True)
    return [visible(line) for line in text.split("\n")]


def visible(text: str) -> str:
    """The text with everything that a screen would hide or obey written as an escape, so that no difference is lost."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The unified difference of two candidates, line by line; empty when they look the same."""
    return list(
        difflib.unified_diff(
            pretty(one["payload"]),
            pretty(other["payload"]),
            one["digest"],
            other["digest"],
            lineterm="",
        )
    )
