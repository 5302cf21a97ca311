"""Owns the commands by which a person moves a run that waits for one: answers, decisions, limits raised (SPEC 9).

Pure: reads the report alone. Must not decide whether a run waits; it says what to type for what the report lists.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from coordinator.wire.names import RunStatus

MORE_TIME = "+10m"
"""What is proposed for a limit of time."""


def remedies(report: Mapping[str, Any]) -> list[str]:
    """Gives one command for each thing that a person can do to let the run go on; for a run that has ended only the
    reviews that are still open.

    FILE stands for a file that the person writes; everything else is ready to be typed.
    """
    return list(_remedies(report))


def _remedies(report: Mapping[str, Any]) -> Iterator[str]:
    run = report["run"]
    for question in report["awaiting"]:
        if question["open"]:
            yield f"crewline answer {run} {shlex.quote(question['task'])} FILE"
    for review in report["reviews"]:
        if review["status"] == "open":
            yield f"crewline review show {shlex.quote(run + ':' + review['id'])}"
    if report["status"] != RunStatus.PAUSED:
        return
    stop = report["stop"] or {}
    if stop.get("limit"):
        yield f"crewline resume {run} --raise {stop['limit']}={_more(report, stop['limit'])}"
    elif stop.get("rule"):
        yield f"crewline resume {run}"


def _more(report: Mapping[str, Any], limit: str) -> str:
    """As much again as the run was given."""
    budget = report["budgets"].get(limit)
    return f"+{budget['limit']}" if budget and budget["limit"] is not None else MORE_TIME
