"""Owns gathering the evidence when nothing runs any more: histories by reads, `verify`, journal, effects, logs.

Must not judge, and must not repair: what it cannot read is a complaint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from redis import Redis

from coordinator.machine import commands
from coordinator.machine.commands import Command
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ListRoles, ListRuns, ReadCommands, ReadMetrics
from coordinator.machine.snapshot import snapshot
from coordinator.simulation.verify import verify
from coordinator.wire import channels
from ops.chaos.checker.evidence import Evidence, Execution, RunEvidence
from ops.chaos.checker.journal import read_journal

PAGE = 500
EXPECTED = ("handler_stuck", "reports_dropped")
"""Errors that a process may tell of: a handler that never looks up is part of the play, and a worker that must leave
while Redis is away gives its reports up, which the checker counts."""

_FIELDS: dict[str, tuple[str, ...]] = {
    kind.name(): kind.own_fields()
    for kind in vars(commands).values()
    if isinstance(kind, type) and issubclass(kind, Command)
}


def gather(
    machine: Machine, empty: Redis | None, data: Path | None = None, effects: Path | None = None
) -> Evidence:
    """All that stands in Redis and in files. empty: another server's database for `verify`. data: Redis' folder."""
    evidence = Evidence()
    for run in _runs(machine):
        evidence.runs[run] = _run(machine, run, empty)
    counters = machine.read(ReadMetrics())
    evidence.counters = {name: int(value) for name, value in counters.items()}
    evidence.malformed = len(_list(machine, "ledger"))
    evidence.left = list(_left(machine))
    if data is not None:
        evidence.letters = read_journal(data, machine.namespace)
    if effects is not None:
        evidence.executions = [e for path in sorted(effects.glob("*.jsonl")) for e in read_effects(path)]
    return evidence


def read_effects(path: Path) -> list[Execution]:
    """The executions that a run's file tells of, in the order in which they began."""
    found: list[Execution] = []
    for line in path.read_text().splitlines():
        said = json.loads(line)
        place = (said["run"], said["task"], said["attempt"], said["pid"])
        if said["what"] == "began":
            found.append(Execution(*place, said["ppid"], said["at"]))
            continue
        for execution in found:
            if (*execution.attempt_of, execution.pid) == place and not execution.ended:
                execution.ended, execution.how = said["at"], said["how"]
                break
    return found


def read_logs(folder: Path) -> tuple[list[str], int]:
    """What processes said that they never may, and how many reports workers gave up."""
    complaints, dropped = [], 0
    for path in sorted(folder.iterdir()):
        for line in path.read_text(errors="replace").splitlines():
            said = _said(line)
            is_error = said.get("level") in ("error", "critical") and said["event"] not in EXPECTED
            if is_error or "Traceback" in said["event"]:
                complaints.append(f"{path.name}: {line[:600]}")
            elif said["event"] == "reports_dropped":
                dropped += int(said["count"])
    return complaints, dropped


def _said(line: str) -> dict[str, Any]:
    """A line of a log; one that a kill cut short is its own event."""
    try:
        said = json.loads(line)
    except ValueError:
        return {"event": line}
    return said if isinstance(said, dict) else {"event": line}


def _runs(machine: Machine) -> Iterator[str]:
    offset = 0
    while page := machine.read(ListRuns(offset, PAGE)):
        yield from (row["run"] for row in page)
        offset += len(page)


def _run(machine: Machine, run: str, empty: Redis | None) -> RunEvidence:
    found = snapshot(machine, run)
    assert found is not None, run
    evidence = RunEvidence(
        found.run, found.tasks, found.events, list(_commands(machine, run)), found.cancellations
    )
    if empty is not None:
        verified = verify(machine, run, empty)
        evidence.verified = " ".join(word for word in (verified.verdict, verified.differs) if word)
    return evidence


def _commands(machine: Machine, run: str) -> Iterator[tuple[str, int, Mapping[str, str]]]:
    offset = 0
    while page := machine.read(ReadCommands(run, offset, PAGE)):
        for name, at, *own in page:
            yield name, int(at), dict(zip(_FIELDS[name], own, strict=False))
        offset += len(page)


def _left(machine: Machine) -> Iterator[str]:
    """Entries that nobody applied, attempts that nobody launched, graces that nobody settled."""
    redis: Any = machine.redis
    roles = [role for role in machine.read(ListRoles()) if not role.startswith("~")]
    inboxes = [channels.scope_inbox(machine.namespace, scope) for scope in channels.SCOPES]
    for inbox in [*inboxes, *(channels.inbox(machine.namespace, role) for role in roles)]:
        if count := redis.xlen(inbox):
            yield f"{count} entries in {inbox}"
    if count := redis.llen(f"{machine.namespace}:outbox"):
        yield f"{count} attempts in the outbox"
    if count := redis.zcard(f"{machine.namespace}:graces"):
        yield f"{count} cancels wait for their grace"


def _list(machine: Machine, kind: str) -> list[bytes]:
    redis: Any = machine.redis
    found: list[bytes] = redis.lrange(f"{machine.namespace}:{kind}", 0, -1)
    return found
