"""Owns what each page shows: the data that a template gets, made of reads and of the run's report. Decides nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from coordinator.api import shown
from coordinator.api.pages.difference import Row, changes, pretty, side_by_side
from coordinator.api.pages.graph import draw
from coordinator.api.pages.timeline import time_line
from coordinator.api.place import Place
from coordinator.api.reviews import actions_of, late_of, review_with_evidence
from coordinator.machine.reads import ListReviews
from coordinator.run_report import build_report, explain
from coordinator.run_report.reviews import review_view as review_of
from coordinator.run_report.wording import error_line
from coordinator.wire.names import FINAL, PARKED, TaskState

RUNS = 30
TASKS = 100
EVENTS = 40
REVIEWS = 100
LATE = 50
QUESTIONS = 10
LIMITS = {
    "step_budget": "attempts started",
    "max_steps": "task reports",
    "tokens": "tokens",
    "cost": "cost",
}
FIRST = ("failed", "denied", "needs_review", "awaiting", "running", "queued", "blocked", "pending")
"""States in the order in which tasks are shown when there are too many to show all; others come after them."""
CANCELABLE = (TaskState.PENDING, TaskState.QUEUED, TaskState.RUNNING, TaskState.AWAITING)
CHOICES = 300
"""Tasks that a form lists; the API takes any."""


def runs_view(place: Place, status: str, team: str, offset: int) -> dict[str, Any]:
    """A page of the list of runs."""
    found = list(islice(place.runs(offset, status, team), RUNS + 1))
    rows = [shown.run_line(row) for _, row in found[:RUNS]]
    return {
        "runs": rows,
        "status": status,
        "team": team,
        "offset": offset,
        "next_offset": found[RUNS][0] if len(found) > RUNS else None,
        "reviews_open": len(place.read(ListReviews(offset=0, limit=REVIEWS))),
    }


@dataclass(frozen=True, slots=True)
class BudgetBar:
    """used, reserved: hundredths of the limit."""

    name: str
    meaning: str
    text: str
    used: float
    reserved: float
    is_full: bool


def run_view(place: Place, run: str, state: str, events: int) -> dict[str, Any]:
    """One run. state: only tasks of this state are listed. events: so many of the last ones."""
    found = place.picture(run)
    now = int(time.time() * 1000)
    said = explain(found, now, place.workers(found.tasks))
    report = said.report
    tasks: Mapping[str, Mapping[str, Any]] = report["tasks"]
    record = found.run
    begin = int(record["created_at"])
    listed = [(name, task) for name, task in tasks.items() if state in ("", task["state"])]
    if len(listed) > TASKS:
        listed.sort(key=lambda entry: FIRST.index(entry[1]["state"]) if entry[1]["state"] in FIRST else 99)
    reviews = [review for review in found.reviews if review["status"] == "open"]
    return {
        "report": report,
        "summary": shown.run_summary(record),
        "why": said.why,
        "said": said,
        "is_final": record["status"] in FINAL,
        "is_parked": record["status"] in PARKED,
        "graph": draw(found.team, tasks),
        "timeline": time_line(tasks, begin, int(record.get("ended_at") or 0) or now),
        "budgets": budget_bars(report["budgets"]),
        "waits": {wait.task: wait.text for wait in said.waiting},
        "tasks": [(name, task, error_line(task["error"])) for name, task in listed[:TASKS]],
        "more_tasks": max(len(listed) - TASKS, 0),
        "state": state,
        "events": report["events"][-events:][::-1],
        "more_events": max(len(report["events"]) - events, 0),
        "all_events": events,
        "questions": [(name, task) for name, task in tasks.items() if is_question(task)][:QUESTIONS],
        "externals": [name for name, task in tasks.items() if is_reportable(task)][:CHOICES],
        "cancelable": [name for name, task in tasks.items() if task["state"] in CANCELABLE][:CHOICES],
        "reviews": reviews,
        "actions": found.actions,
        "late": len(found.late),
    }


def is_question(task: Mapping[str, Any]) -> bool:
    """Whether a person can answer something."""
    return bool(task["state"] == TaskState.AWAITING and task["waits_for"] != "children")


def is_reportable(task: Mapping[str, Any]) -> bool:
    """Whether an outside system is expected to report."""
    return bool(task["external"]) and task["state"] in (TaskState.QUEUED, TaskState.RUNNING)


def budget_bars(budgets: Mapping[str, Mapping[str, Any]]) -> list[BudgetBar]:
    """A bar for each limit that the Team sets."""
    bars = []
    for name, meaning in LIMITS.items():
        budget = budgets[name]
        if budget["limit"] is None:
            continue
        limit, used, reserved = (float(budget[part]) for part in ("limit", "used", "reserved"))
        part = min(100 * used / limit, 100.0) if limit else 100.0
        rest = min(100 * reserved / limit, 100.0 - part) if limit else 0.0
        text = f"{budget['used']} of {budget['limit']}"
        text += f", {budget['reserved']} reserved" if reserved else ""
        text += ", overrun" if budget["overrun"] else ""
        bars.append(BudgetBar(name, meaning, text, round(part, 2), round(rest, 2), used + reserved >= limit))
    return bars


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the results in question: all arrivals of one digest."""

    letter: str
    digest: str
    payload: Any
    lines: tuple[str, ...]
    arrivals: tuple[Mapping[str, Any], ...]


def reviews_view(place: Place) -> dict[str, Any]:
    """The open reviews of all runs, oldest first."""
    rows = place.read(ListReviews(offset=0, limit=REVIEWS))
    return {"reviews": [{"run": run, **record} for run, record in rows]}


def review_view(place: Place, run: str, review: str, left: str, right: str) -> dict[str, Any]:
    """One review. left, right: letters of the candidates that are compared; the first two by default."""
    record, arrivals = review_with_evidence(place, run, review)
    whole = review_of(build_report(place.picture(run)), review) or {}
    candidates = _candidates(arrivals)
    by_letter = {candidate.letter: candidate for candidate in candidates}
    one = by_letter.get(left) or (candidates[0] if candidates else None)
    other = by_letter.get(right) or next((c for c in candidates if c is not one), None)
    action = next(
        (
            entry
            for entry in actions_of(place, run)
            if entry["task"] == record["task"] and entry["key"] == record.get("action")
        ),
        None,
    )
    rows: list[Row] = side_by_side(one.payload, other.payload) if one and other else []
    return {
        "run": run,
        "summary": shown.run_summary(place.run(run)),
        "review": record,
        "first": record.get("first"),
        "tainted": whole.get("tainted", []),
        "blocked": whole.get("blocked", []),
        "candidates": candidates,
        "left": one,
        "right": other,
        "rows": rows,
        "changes": changes(one.payload, other.payload) if one and other else [],
        "action": action,
        "starting_text": json.dumps(one.payload, ensure_ascii=False, indent=2) if one else "null",
    }


def _candidates(arrivals: list[dict[str, Any]]) -> list[Candidate]:
    by_digest: dict[str, list[dict[str, Any]]] = {}
    for arrival in arrivals:
        by_digest.setdefault(arrival["digest"] or "", []).append(arrival)
    return [
        Candidate(
            _letter(number), digest, found[0]["payload"], tuple(pretty(found[0]["payload"])), tuple(found)
        )
        for number, (digest, found) in enumerate(by_digest.items())
    ]


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else f"A{number}"


def actions_view(place: Place, run: str) -> dict[str, Any]:
    """The actions of a run."""
    return {"run": run, "summary": shown.run_summary(place.run(run)), "actions": actions_of(place, run)}


def late_view(place: Place, run: str, offset: int) -> dict[str, Any]:
    """A page of a run's late ledger."""
    rows, more = late_of(place, run, offset, LATE)
    return {
        "run": run,
        "summary": shown.run_summary(place.run(run)),
        "late": rows,
        "next_offset": offset + LATE if more else None,
    }
