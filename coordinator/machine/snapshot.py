"""Owns the picture of one run at one time, from which reports and explanations are made.

Must not interpret: it only gathers what the reads give. Large runs are read page by page; a run that still moves may
be seen at neighbouring versions in different pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from coordinator.machine.machine import Machine
from coordinator.machine.reads import (
    Query,
    ReadDocuments,
    ReadEvents,
    ReadLedger,
    ReadPayloads,
    ReadRecords,
    ReadRun,
    ReadTasks,
)

PAGE = 200
"""Records a read: keeps each call on the server within a few milliseconds."""


@dataclass(slots=True)
class RunSnapshot:
    """Everything recorded of a run. payloads: JSON texts by digest (results, questions, evidence)."""

    run: dict[str, str]
    tasks: list[dict[str, str]]
    events: list[dict[str, str]]
    team: Any
    inputs: Any
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    payloads: dict[str, str] = field(default_factory=dict)
    cancellations: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)
    reviews: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)


def snapshot(machine: Machine, run: str) -> RunSnapshot | None:
    """Gathers a run; None if there is no such run."""
    record = machine.read(ReadRun(run))
    if not record:
        return None
    documents = machine.read(ReadDocuments(run))
    tasks = list(_pages(machine, lambda offset: ReadTasks(run, offset, PAGE)))
    conflicts = list(_pages(machine, lambda offset: ReadLedger(run, "conflicts", offset, PAGE)))
    late = list(_pages(machine, lambda offset: ReadLedger(run, "late", offset, PAGE)))
    digests = [task.get("digest", "") for task in tasks] + [task.get("question_digest", "") for task in tasks]
    actions = machine.read(ReadRecords(run, "actions"))
    digests += [entry.get("digest", "") for entry in [*conflicts, *late]]
    digests += [action[name] for action in actions for name in ("details", "receipt")]
    return RunSnapshot(
        run=record,
        tasks=tasks,
        events=list(events_after(machine, run, 0)),
        team=json.loads(documents["team"]),
        inputs=json.loads(documents["inputs"]),
        conflicts=conflicts,
        late=late,
        cancellations=machine.read(ReadRecords(run, "cancellations")),
        actions=actions,
        reviews=machine.read(ReadRecords(run, "reviews")),
        artifacts=machine.read(ReadRecords(run, "artifacts")),
        payloads=_payloads(machine, run, sorted({digest for digest in digests if digest})),
    )


def events_after(machine: Machine, run: str, seq: int) -> Iterator[dict[str, str]]:
    """The run's events after a sequence number, oldest first."""
    while page := machine.read(ReadEvents(run, seq, PAGE)):
        yield from page
        seq = int(page[-1]["seq"])


def _pages(machine: Machine, query: Any) -> Iterator[Any]:
    offset = 0
    while page := _read(machine, query(offset)):
        yield from page
        offset += len(page)


def _read(machine: Machine, query: Query) -> list[Any]:
    rows: list[Any] = machine.read(query)
    return rows


def _payloads(machine: Machine, run: str, digests: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for start in range(0, len(digests), PAGE):
        part = tuple(digests[start : start + PAGE])
        texts = machine.read(ReadPayloads(run, part))
        found.update((digest, text) for digest, text in zip(part, texts, strict=True) if text is not None)
    return found
