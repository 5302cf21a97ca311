"""Owns how a report's facts are said to a person: one sentence for a stop, one line for an error, times and
spans.

Must not decide anything, and must not let a payload's or a worker's text through unescaped: control
characters, which a terminal would obey, and line breaks, which would forge a line, become spaces.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

_HIDDEN = ("Cc", "Cf", "Zl", "Zp", "Cs")
"""Unicode categories that can move the cursor, turn the writing direction or break a line."""


def clean(text: object, limit: int = 200) -> str:
    """`text` as one harmless line of at most `limit` characters."""
    head = str(text)[: limit + 1]
    if not head.isprintable():
        head = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in head)
    return head if len(head) <= limit else head[: limit - 1] + "…"


def when(at: int | None) -> str:
    """A time in ms as UTC to the millisecond; `-` for none."""
    if at is None:
        return "-"
    try:
        moment = datetime.fromtimestamp(at // 1000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return f"{at} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{at % 1000:03d}Z"


def span(ms: int | None) -> str:
    """A span in ms in the two largest units that say something: `0.25 s`, `3m 20s`, `2h 5m`; `-` for none."""
    if ms is None:
        return "-"
    if ms < 60_000:
        return f"{ms / 1000:g} s"
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m" if hours else f"{minutes}m {seconds}s"


def names(items: Sequence[str], most: int = 6) -> str:
    """A list of names, shortened: `a, b, c and 4 more`."""
    shown = ", ".join(clean(name, 80) for name in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def path(blocked_by: Mapping[str, Any]) -> str:
    """The path from a root cause to a blocked task, with a mark where hops were omitted."""
    hops = [clean(name, 80) for name in blocked_by["path"]]
    if "omitted" in blocked_by:
        hops.insert(len(hops) // 2, f"… {blocked_by['omitted']} more …")
    return " → ".join(hops)


def error_line(error: Any) -> str:
    """An error document as one line: `permanent: ValueError: no such order (handlers.py:12)`."""
    if not isinstance(error, Mapping):
        return clean(error) if error else ""
    parts = [clean(error[name]) for name in ("class", "type", "message") if error.get(name)]
    where = f" ({clean(error['where'], 120)})" if error.get("where") else ""
    return ": ".join(parts) + where


def why(report: Mapping[str, Any]) -> str:
    """One sentence (without a full stop) that says why the run stands where it stands."""
    status = report["status"]
    stop = report["stop"] or {}
    if status == "running":
        return "it is still running"
    if status == "paused":
        return _why_paused(report, stop)
    if stop.get("rule"):
        return f"the stop rule {clean(stop['rule'], 80)!r} held"
    said = _why_task(report, stop) if status in ("critical_failure", "failed") else None
    return said or _why_limit(report, stop) or _WHY.get(status, clean(status))


_WHY = {
    "completed": "every required task succeeded",
    "critical_failure": "a required task can no longer succeed",
    "failed": "a required task did not succeed, and the rest is done",
    "needs_review": "nothing is left to do, and a person must decide what is in doubt",
    "no_progress": "nothing has moved for too long",
    "deadline_exceeded": "the deadline has passed",
    "canceled": "it was canceled",
    "stop_rule": "a stop rule held",
}

_ENDINGS = {"failed": "failed", "denied": "was denied", "canceled": "was canceled"}


def _why_paused(report: Mapping[str, Any], stop: Mapping[str, Any]) -> str:
    if stop.get("limit"):
        return f"the limit {stop['limit']} was reached and the team asks to pause then"
    if stop.get("rule"):
        return f"the stop rule {clean(stop['rule'], 80)!r} held"
    awaiting = [name for name, task in report["tasks"].items() if task["state"] == "awaiting"]
    return (
        f"nothing else is left to do, and a person must answer: {names(awaiting)}"
        if awaiting
        else "it is paused"
    )


def _why_task(report: Mapping[str, Any], stop: Mapping[str, Any]) -> str | None:
    name = stop.get("task")
    task = report["tasks"].get(name) if name else None
    if task is None:
        return None
    if task["blocked_by"]:
        root = task["blocked_by"]["root"]
        how = _ENDINGS.get(report["tasks"].get(root, {}).get("state", ""), "cannot succeed")
        return f"the required task {clean(name, 80)} can never run, because {clean(root, 80)} {how}"
    kind = "required task" if task["required"] else "task"
    return f"the {kind} {clean(name, 80)} {_ENDINGS.get(task['state'], 'did not succeed')}"


def _why_limit(report: Mapping[str, Any], stop: Mapping[str, Any]) -> str | None:
    status = report["status"]
    if status == "step_limit":
        budget = report["budgets"]["max_steps"]
        return f"{budget['used']} task reports were accepted and max_steps is {budget['limit']}"
    if status == "budget_exhausted":
        limit = stop.get("limit") or "the budget"
        budget = report["budgets"].get(limit)
        spent = f" ({budget['used']} of {budget['limit']} used)" if budget else ""
        return f"work is ready, but none of it fits what is left of {limit}{spent}"
    if status == "deadlock":
        cycle = stop.get("cycle") or []
        circle = f": {' → '.join(clean(name, 80) for name in [*cycle, cycle[0]])}" if cycle else ""
        return f"nothing is in flight and nothing can start{circle}"
    return None
