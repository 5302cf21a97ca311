"""Owns the work as Crewline does it: Teams, submitted without waiting for the answers. Usage: crewline_driver.py URL.

Must not touch state: it writes to the submit inbox as any client does, and reads the runs' statuses.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable
from typing import Any

from line_loop import serve

from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadRun
from coordinator.wire import channels
from coordinator.wire.connection import connect
from coordinator.wire.names import RunStatus
from coordinator.wire.reports import Submit

DIAMOND_ARMS = 4
NAMESPACE = channels.DEFAULT_NAMESPACE


def main() -> None:
    """Serves orders until the input ends."""
    sender, waiter = connect(sys.argv[1]), connect(sys.argv[1])
    machine = Machine(waiter, NAMESPACE)
    machine.load()

    def submit(shape: str, count: int) -> tuple[int, Callable[[], bool]]:
        runs, tasks = SHAPES[shape](count)
        pipeline = sender.pipeline(transaction=False)
        names = []
        for run in runs:
            entry = Submit(run=f"bench-{secrets.token_hex(6)}", team=json.dumps(_team(run)))
            names.append(entry.run)
            pipeline.xadd(channels.scope_inbox(NAMESPACE, "submit"), entry.fields())
        pipeline.execute()
        return tasks, lambda: _completed(machine, names[-1:]) and _completed(machine, names)

    serve(waiter, submit)


def independent(count: int) -> tuple[list[dict[str, Any]], int]:
    """One run of `count` tasks that need nothing."""
    return [{f"t{n}": {} for n in range(count)}], count


def diamonds(count: int) -> tuple[list[dict[str, Any]], int]:
    """`count` runs of a task, four that need it, and one that needs the four."""
    return [_join(DIAMOND_ARMS) for _ in range(count)], count * (DIAMOND_ARMS + 2)


def fan(count: int) -> tuple[list[dict[str, Any]], int]:
    """One run of a task, `count` that need it, and one that needs them all."""
    return [_join(count)], count + 2


def _join(arms: int) -> dict[str, Any]:
    names = [f"arm{n}" for n in range(arms)]
    return {"top": {}, **{name: {"requires": ["top"]} for name in names}, "end": {"requires": names}}


def _team(tasks: dict[str, Any]) -> dict[str, Any]:
    roles = {"bench": {"capabilities": ["noop"]}}
    return {"team": "bench", "roles": roles, "defaults": {"capability": "noop"}, "tasks": tasks}


def _completed(machine: Machine, runs: list[str]) -> bool:
    for run in runs:
        status = machine.read(ReadRun(run=run)).get("status", RunStatus.RUNNING)
        if status not in (RunStatus.RUNNING, RunStatus.COMPLETED):
            raise SystemExit(f"run {run} ended as {status}")
        if status == RunStatus.RUNNING:
            return False
    return True


SHAPES = {"independent": independent, "diamonds": diamonds, "fan": fan}

if __name__ == "__main__":
    main()
