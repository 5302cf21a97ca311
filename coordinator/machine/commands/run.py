"""Owns the commands that the coordinator itself asks for: making runs, batches, dispatch, children, timers.

Must not decide anything; what each one means stands in the Lua file of its name (`lua/commands/`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coordinator.machine.commands.base import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRun(Command):
    """Creates a run with (the first part of) its tasks. Same id and digest: `repeated`; other digest: `run_exists`."""

    DOCUMENTS: ClassVar[tuple[str, ...]] = ("team", "inputs")

    run: str
    digest: str
    library: str
    header: str
    """Plan: JSON object of `team.compile.Plan.header`."""
    items: str
    """Plan: JSON array of tasks and edges."""
    more: int
    """1 when AddTasks follows."""
    team: str
    """Document: the checked Team file, as JSON."""
    inputs: str
    """Document: the run's inputs, defaults filled in, as a JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddTasks(Command):
    """Adds the next part of a large run; `cursor` is the number of items already added (else `stale_version`)."""

    run: str
    cursor: int
    items: str
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueBatch(Command):
    """Does the next bounded piece of a run's open batch (opening, blocking, tainting, canceling)."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch(Command):
    """Dispatches up to `limit` ready tasks over all runs: priority, then round robin, then file order (SPEC 3)."""

    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchTask(Command):
    """What Dispatch does for one task; logged with the run, so that `verify` can apply it alone."""

    run: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnTasks(Command):
    """Adds children below a parent in bounded parts; the parent waits for them (SPEC 2 for_each, 8)."""

    run: str
    task: str
    cursor: int
    """Number of children already made."""
    children: str
    """Plan: JSON array of child tasks, as in `items`."""
    more: int
    """1 when another part follows; 0 closes the list and parks the parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectTask(Command):
    """Ends a for_each parent with the list of its children's results, or with a failure."""

    run: str
    task: str
    outcome: str
    """`succeeded`, or a FailureClass."""
    payload: str
    digest: str
    facts: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverRun(Command):
    """Redis was restored from an older copy: what was in flight is lost and the run is parked for a look (SPEC 7)."""

    run: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FireTimer(Command):
    """Something of the task (or, with an empty task, of the run) may be due; Lua judges what, by `now`."""

    run: str
    task: str
    led_since: int = 0
    """When the present leader took the lead: each lease has one full heartbeat from then on (SPEC 7)."""
