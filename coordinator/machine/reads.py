"""Owns the questions that can be asked of the machine: one dataclass per Lua file of the same name in `lua/reads/`.

Must not change anything: every function is registered `no-writes`. Each class says in `decode` how the raw answer
becomes Python values; times are milliseconds, everything else is text as stored.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from coordinator.machine.documents import unpack


def text(value: Any) -> str:
    """Redis gives bytes; documents and names are UTF-8."""
    return value.decode() if isinstance(value, bytes) else str(value)


def flat(values: Any) -> dict[str, str]:
    """[field, value, field, value, ...] as a dict."""
    return {text(values[i]): text(values[i + 1]) for i in range(0, len(values), 2)}


@dataclass(frozen=True, slots=True)
class Query:
    """What every read has: a name, its fields in wire order, and a decoder."""

    @classmethod
    @cache
    def name(cls) -> str:
        """The read's name: that of its Lua file and function."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    @cache
    def own_fields(cls) -> tuple[str, ...]:
        """Names of the fields, in wire order."""
        return tuple(f.name for f in fields(cls))

    def arguments(self) -> list[Any]:
        """The fields as they go over the wire."""
        return [getattr(self, name) for name in self.own_fields()]

    def decode(self, raw: Any) -> Any:
        """Rows of text, unless a read says otherwise."""
        return [tuple(text(cell) for cell in row) for row in raw]


class Flat(Query):
    """A read that answers with one flat record."""

    def decode(self, raw: Any) -> dict[str, str]:
        """The record as a dict; empty if there is none."""
        return flat(raw)


class Records(Query):
    """A read that answers with flat records."""

    def decode(self, raw: Any) -> list[dict[str, str]]:
        """Each record as a dict."""
        return [flat(record) for record in raw]


class Texts(Query):
    """A read that answers with texts."""

    def decode(self, raw: Any) -> list[str]:
        """The texts."""
        return [text(value) for value in raw]


@dataclass(frozen=True, slots=True)
class ReadRun(Flat):
    """The run's own record; empty for an unknown run."""

    run: str


@dataclass(frozen=True, slots=True)
class ReadTasks(Records):
    """A page of tasks in file order; `state` as people see it, `was` as stored."""

    run: str
    offset: int
    limit: int


@dataclass(frozen=True, slots=True)
class ReadTask(Flat):
    """One task's record as stored; empty for an unknown task."""

    run: str
    task: str


@dataclass(frozen=True, slots=True)
class ReadEvents(Records):
    """Events after a sequence number, oldest first, each with its `seq`."""

    run: str
    after: int
    limit: int


@dataclass(frozen=True, slots=True)
class ReadDocuments(Flat):
    """{"team": JSON text, "inputs": JSON text}."""

    run: str

    def decode(self, raw: Any) -> dict[str, str]:
        """The documents, unpacked."""
        return {name: unpack(stored) for name, stored in flat(raw).items()}


@dataclass(frozen=True, slots=True)
class ReadPayloads(Query):
    """Payload texts by digest, in the order asked for; None where there is none."""

    run: str
    digests: tuple[str, ...]

    def arguments(self) -> list[Any]:
        """The digests travel as one JSON array."""
        return [self.run, json.dumps(list(self.digests))]

    def decode(self, raw: Any) -> list[str | None]:
        """The texts."""
        return [None if value is None else text(value) for value in raw]


@dataclass(frozen=True, slots=True)
class ReadResults(Query):
    """A page of a parent's children in element order: (id, state, digest of the accepted result)."""

    run: str
    task: str
    offset: int
    limit: int


@dataclass(frozen=True, slots=True)
class ReadLedger(Query):
    """A page of the `conflicts` or `late` ledger of a run, oldest first."""

    run: str
    ledger: str
    offset: int
    limit: int

    def decode(self, raw: Any) -> list[dict[str, Any]]:
        """Each entry as an object."""
        return [json.loads(entry) for entry in raw]


@dataclass(frozen=True, slots=True)
class ReadCommands(Query):
    """A page of the commands applied to a run, oldest first: [name, now, arguments ...]."""

    run: str
    offset: int
    limit: int

    def decode(self, raw: Any) -> list[list[str]]:
        """Each command as a list of texts."""
        return [json.loads(entry) for entry in raw]


@dataclass(frozen=True, slots=True)
class ListRuns(Records):
    """A page of runs, newest first: run, status, team, created_at, state_version."""

    offset: int
    limit: int


@dataclass(frozen=True, slots=True)
class FindRuns(Texts):
    """Ids that begin with a prefix, newest first, at most eleven; "-" is the newest run."""

    prefix: str


@dataclass(frozen=True, slots=True)
class ListRoles(Texts):
    """Every role that a run has named; the coordinator's own rows begin with `~`."""


@dataclass(frozen=True, slots=True)
class DueTimers(Query):
    """(run, task) that may be due at `now`, earliest first; an empty task is the run's own timer."""

    now: int
    limit: int


@dataclass(frozen=True, slots=True)
class DueGraces(Query):
    """(run, task, attempt) that were told to end and whose grace has passed at `now`."""

    now: int
    limit: int


@dataclass(frozen=True, slots=True)
class ReadRecords(Query):
    """All records of one kind of a run, sorted: `cancellations`, `actions`, `reviews`, `artifacts`."""

    run: str
    kind: str

    def decode(self, raw: Any) -> list[dict[str, Any]]:
        """Each record as an object."""
        return [json.loads(record) for record in raw]


@dataclass(frozen=True, slots=True)
class ListReviews(Query):
    """A page of open reviews of all runs, oldest first: (run, record)."""

    offset: int
    limit: int

    def decode(self, raw: Any) -> list[tuple[str, dict[str, Any]]]:
        """Each review with its run."""
        return [(text(row[0]), json.loads(row[1])) for row in raw]


@dataclass(frozen=True, slots=True)
class NextTimer(Query):
    """When the earliest timer is due, in ms; None without timers."""

    def decode(self, raw: Any) -> int | None:
        """The time."""
        return None if raw is None else int(float(raw))


@dataclass(frozen=True, slots=True)
class OpenBatches(Query):
    """(run, "add" or "continue", items added so far) of runs with an open batch, longest open first."""

    limit: int


@dataclass(frozen=True, slots=True)
class ReadOutbox(Texts):
    """Dispatched attempts that are not yet RQ jobs, oldest first, each a JSON object."""

    limit: int


@dataclass(frozen=True, slots=True)
class ReadInternal(Query):
    """(run, task, "expand" or "collect", children made, verdict) of for_each parents to work on."""

    limit: int


@dataclass(frozen=True, slots=True)
class QueuedAttempts(Query):
    """(run, task, attempt) of a role, dispatched before a time (ms) and not granted yet."""

    role: str
    before: int
    limit: int


@dataclass(frozen=True, slots=True)
class ReadMetrics(Flat):
    """Counters, and the gauges that are read from what stands."""


@dataclass(frozen=True, slots=True)
class ReadLeader(Flat):
    """holder, until (ms, Redis' clock), epoch."""
