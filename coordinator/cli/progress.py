"""Owns following a run while it goes on: reads what is new, and keeps the few facts that a screen shows.

Must not draw (live.py does) and must not decide anything: a task's state is what its last event says. Costs
one read of the run and of its new events a look, whatever the number of tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadEvents, ReadRun, ReadTasks
from coordinator.run_report.fields import count, flag, number
from coordinator.run_report.sections.attempts import RUN_EVENT
from coordinator.run_report.wording import clean, error_line
from coordinator.wire.names import FINAL, PARKED

PAGE = 1000
"""Tasks or events that one read asks for."""

OPEN_FIRST = ("running", "needs_review", "awaiting", "failed", "denied", "queued", "blocked", "pending")
"""Order in which tasks are shown when not all fit on the screen."""

_AT_REST = frozenset(str(status) for status in FINAL | PARKED)


@dataclass(slots=True)
class Row:
    """One task as it is shown. note: whatever is most worth knowing now."""

    name: str
    state: str
    role: str
    required: bool
    external: bool
    attempt: int = 0
    max_attempts: int = 1
    worker: str = ""
    since: int | None = None
    note: str = ""


@dataclass(slots=True)
class RunView:
    """What is known of a run so far."""

    run: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    external: dict[str, Row] = field(default_factory=dict)
    """Those that an outside system does."""

    @property
    def status(self) -> str:
        """The run's status; empty before the first look."""
        return self.run.get("status", "")

    @property
    def is_at_rest(self) -> bool:
        """The run ended or parked: nothing more will come by itself."""
        return self.status in _AT_REST

    def counts(self) -> dict[str, int]:
        """How many tasks are in each state."""
        found: dict[str, int] = {}
        for row in self.rows.values():
            found[row.state] = found.get(row.state, 0) + 1
        return found

    def most_interesting(self, most: int) -> list[Row]:
        """At most so many rows, in file order; those that are under way or went wrong before those that are
        done.
        """
        rows = list(self.rows.values())
        if len(rows) <= most:
            return rows
        rank = {state: place for place, state in enumerate(OPEN_FIRST)}
        places = sorted(range(len(rows)), key=lambda n: (rank.get(rows[n].state, len(rank)), n))[:most]
        return [rows[n] for n in sorted(places)]

    def set_task(self, task: Mapping[str, str]) -> None:
        """Takes a task as it stands in the store."""
        name = task["id"]
        row = self.rows.setdefault(name, Row(name, "", "", True, False))
        row.state, row.role, row.worker = task["state"], task.get("role", ""), task.get("worker", "")
        row.required, row.external = flag(task, "required"), flag(task, "external")
        if row.external:
            self.external[name] = row
        row.attempt, row.max_attempts = count(task, "attempt"), count(task, "max_attempts") or 1
        row.note = _note(task) if row.state not in ("succeeded", "running") else ""
        row.since = number(task, "started_at") if row.state == "running" else None

    def apply(self, event: Mapping[str, str]) -> None:
        """Takes an event that moved a task."""
        row = self.rows.get(event.get("task_id", ""))
        if row is None or not event.get("to") or is_of_run(event):
            return
        row.state, row.attempt = event["to"], count(event, "attempt") or row.attempt
        row.worker = event.get("worker", "") if row.state == "running" else row.worker
        row.since = number(event, "at")
        row.note = _note(event) if row.state not in ("succeeded", "running", "queued") else ""


def is_of_run(event: Mapping[str, str]) -> bool:
    """Whether it is the run that moved; such an event may name the task that decided it."""
    return event.get("kind", "").startswith(RUN_EVENT)


def _note(fields: Mapping[str, str]) -> str:
    """The error, else what blocks it, else the reason."""
    try:
        error: Any = json.loads(fields.get("error") or "null")
    except ValueError:
        error = fields.get("error")
    if error:
        return error_line(error)
    if fields.get("root"):
        return f"because of {clean(fields['root'], 80)}"
    return clean(fields.get("reason", ""))


class RunFeed:
    """Follows one run: every `look` reads what is new since the last one."""

    def __init__(self, machine: Machine, run: str) -> None:
        """Knows nothing until the first look."""
        self.view = RunView()
        self._machine = machine
        self._run = run
        self._seq = 0
        self._loaded = 0

    def look(self) -> list[dict[str, str]]:
        """Brings the view up to date and gives the new events. Raises Unreachable."""
        self.view.run = self._machine.read(ReadRun(run=self._run))
        if not self.view.run:
            return []
        if self._loaded < count(self.view.run, "tasks"):
            self._load_tasks()
        events = list(self._new_events())
        for event in events:
            self.view.apply(event)
            if event.get("task_id") and event["task_id"] not in self.view.rows:
                self._load_tasks()  # a child that was made meanwhile
        return events

    def settle(self) -> None:
        """Reads every task once more: what a stop did to unfinished tasks has no events of its own
        (SPEC 3).
        """
        self.view.run = self._machine.read(ReadRun(run=self._run))
        self._loaded = 0
        self._load_tasks()

    def _load_tasks(self) -> None:
        while tasks := self._machine.read(ReadTasks(run=self._run, offset=self._loaded, limit=PAGE)):
            for task in tasks:
                self.view.set_task(task)
            self._loaded += len(tasks)
            if len(tasks) < PAGE:
                break

    def _new_events(self) -> Iterator[dict[str, str]]:
        while events := self._machine.read(ReadEvents(run=self._run, after=self._seq, limit=PAGE)):
            self._seq = int(events[-1]["seq"])
            yield from events
            if len(events) < PAGE:
                break
