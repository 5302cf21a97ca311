"""Owns reading everything that is stored of a run, for `invariants`, in as few round trips as can be.

Must not change anything and must not judge.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.machine.machine import Machine
from coordinator.machine.reads import DueTimers, ReadRun, ReadTasks
from coordinator.simulation.invariants import Fields, Stored

_FOR_EVER = 2**52
_PAGE = 500


def read_stored(machine: Machine, run: str, events: Sequence[Fields]) -> Stored | None:
    """The run as it stands, with the events that came since the last look; None when there is no such run."""
    asked = [ReadRun(run), ReadTasks(run, 0, _PAGE), DueTimers(_FOR_EVER, _PAGE)]
    record, page, due = machine.read_many(asked)
    if not record:
        return None
    tasks: dict[str, Fields] = {task["id"]: task for task in page}
    while len(page) == _PAGE:
        page = machine.read(ReadTasks(run, len(tasks), _PAGE))
        tasks.update((task["id"], task) for task in page)
    return Stored(record, tasks, events, frozenset(task for owner, task in due if owner == run))
