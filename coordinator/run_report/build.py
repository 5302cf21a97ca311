"""Owns the run report as data: everything that is known of a run, under the names of SPEC 10.

Pure: gets a snapshot, gives a dict, touches nothing. Must not take the time, the machine or the environment
into the report: the same run gives the same bytes. Sections without entries are empty lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from coordinator.agent_threads import background_section
from coordinator.run_report.encode import content_digest
from coordinator.run_report.fields import count, document, flag, money, number, word
from coordinator.run_report.sections.ledgers import (
    action_entries,
    cancellation_entries,
    conflict_entries,
    late_entries,
    review_entries,
)
from coordinator.run_report.sections.pauses import awaiting_entries, interruption_entries
from coordinator.run_report.sections.tasks import TaskEntry, task_entries
from coordinator.team.graph import stuck
from coordinator.team.loader import make_team
from coordinator.wire.bindings import Unresolved, resolve
from coordinator.wire.errors import InputFault

if TYPE_CHECKING:
    from coordinator.machine.snapshot import RunSnapshot

RunReport = dict[str, Any]
"""The document of SPEC 10; `encode.canonical_bytes` gives its bytes."""

SCHEMA = "crewline-report/1"

EVENT_FIELDS = ("kind", "task_id", "from", "to", "reason")
"""Texts that every event has; empty ones are kept, so that all events look alike."""

_EVENT_NUMBERS = ("seq", "at", "attempt", "state_version")


def build_report(snapshot: RunSnapshot) -> RunReport:
    """Makes the report of a run, live, parked or stopped."""
    run = snapshot.run
    tasks = task_entries(snapshot)
    events = [event_entry(event) for event in snapshot.events]
    report: RunReport = {
        "schema": SCHEMA,
        "run": run["run"],
        "team": run.get("team", ""),
        "inputs": snapshot.inputs,
        "status": run["status"],
        "state_version": count(run, "state_version"),
        "stop": _stop(snapshot),
        "first_failure": _first_failure(run, events),
        "steps_used": count(run, "used_step_budget"),
        "budgets": budget_entries(run),
        "tasks": tasks,
        "events": events,
        "awaiting": awaiting_entries(tasks),
        "result_conflicts": conflict_entries(snapshot.conflicts, snapshot.payloads),
        "late_results": late_entries(snapshot.late, snapshot.payloads),
        "reviews": review_entries(snapshot.reviews),
        "actions": action_entries(snapshot.actions, snapshot.payloads, tasks),
        "artifacts": sorted(
            snapshot.artifacts, key=lambda entry: (entry["at"], entry["task"], entry["name"])
        ),
        "cancellations": cancellation_entries(snapshot.cancellations, tasks, events),
        "background": background_section(tasks, events),
        "output": _output(snapshot, tasks),
    }
    interruptions = interruption_entries(run, tasks)
    if interruptions:
        report["interruptions"] = interruptions
    report["digest"] = content_digest(report)
    return report


def event_entry(event: Mapping[str, str]) -> dict[str, Any]:
    """One event as the report shows it: numbers as numbers, and whatever else the event carries."""
    shown: dict[str, Any] = {name: number(event, name) for name in _EVENT_NUMBERS}
    shown.update({name: event.get(name, "") for name in EVENT_FIELDS})
    for name in sorted(set(event) - set(shown)):
        if event[name] != "":
            shown[name] = document(event[name]) if name == "error" else event[name]
    return shown


def _stop(snapshot: RunSnapshot) -> dict[str, Any] | None:
    run = snapshot.run
    if not run.get("stop_reason"):
        return None
    stop: dict[str, Any] = {
        "reason": run["stop_reason"],
        "rule": word(run, "stop_rule"),
        "task": word(run, "stop_task"),
        "seq": number(run, "stop_seq"),
        "at": number(run, "stop_at"),
        "cause": _cause(snapshot),
        "also_true": document(run.get("also_true")) or [],
        "limit": word(run, "stop_limit"),
    }
    if stop["reason"] == "deadlock":
        stop.update(_deadlock(snapshot.team))
    return stop


def _cause(snapshot: RunSnapshot) -> dict[str, Any] | None:
    """What the task that decided a failing stop came to; null where no task's failure decided."""
    name = snapshot.run.get("stop_task")
    if snapshot.run["stop_reason"] not in ("critical_failure", "failed"):
        return None
    task = next((task for task in snapshot.tasks if task["id"] == name), None)
    if task is None:
        return None
    return {"state": task["state"], "reason": word(task, "reason"), "error": document(task.get("error"))}


def _deadlock(document: Any) -> dict[str, Any]:
    """The tasks that wait for each other, and apart from them those that merely wait for these (SPEC 2).

    `cycle` is the first one, for the usual case that there is no other.
    """
    try:
        found = stuck(make_team(document, allow_cycle=True))
    except InputFault:  # a Team of another version; its run is told without its cycles
        return {"cycle": [], "cycles": [], "waiting": []}
    cycles = [list(cycle) for cycle in found.cycles]
    return {"cycle": cycles[0] if cycles else [], "cycles": cycles, "waiting": list(found.waiting)}


def _first_failure(run: Mapping[str, str], events: list[dict[str, Any]]) -> dict[str, Any] | None:
    seq = number(run, "failure_seq")
    return next((event for event in events if event["seq"] == seq), None) if seq else None


def budget_entries(run: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The report's `budgets`: limit (null: none), used, reserved, overrun. Money is exact decimal text."""
    return {
        "step_budget": {
            "limit": number(run, "limit_step_budget"),
            "used": count(run, "used_step_budget"),
            "reserved": count(run, "reserved_step_budget"),
            "overrun": False,
        },
        "max_steps": {
            "limit": number(run, "limit_max_steps"),
            "used": count(run, "reports"),
            "reserved": 0,
            "overrun": False,
        },
        "tokens": {
            "limit": number(run, "limit_tokens"),
            "used": count(run, "used_tokens"),
            "reserved": count(run, "reserved_tokens"),
            "overrun": flag(run, "overrun_tokens"),
        },
        "cost": {
            "limit": money(number(run, "limit_cost")),
            "used": money(count(run, "used_cost")),
            "reserved": money(count(run, "reserved_cost")),
            "overrun": flag(run, "overrun_cost"),
        },
    }


def _output(snapshot: RunSnapshot, tasks: Mapping[str, TaskEntry]) -> Any:
    """The Team's `output`, resolved from the results that were accepted; null while any of them is
    missing.
    """
    template = snapshot.team.get("output") if isinstance(snapshot.team, Mapping) else None
    results = {name: task["result"] for name, task in tasks.items() if task["result_digest"]}
    try:
        return resolve(template, snapshot.inputs or {}, results)
    except Unresolved:
        return None
