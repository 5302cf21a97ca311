"""Owns reserving, settling and releasing (SPEC 5).

Must not know task states.
"""

from __future__ import annotations

from tests.support.oracle.state import AMOUNTS, LIMIT_KEYS, Run, Task


def missing(run: Run, task: Task) -> str:
    """The first limit that a new attempt does not fit into, or empty; a for_each parent starts no attempt."""
    for name in AMOUNTS:
        limit = None if task.for_each else run.limit(LIMIT_KEYS[name])
        if limit is not None and run.used[name] + run.reserved[name] + task.reserve[name] > limit:
            return name
    return ""


def reserve(run: Run, task: Task) -> None:
    task.held = dict(task.reserve)
    task.said = dict.fromkeys(AMOUNTS, 0)
    for name in AMOUNTS:
        run.reserved[name] += task.held[name]


def start_step(run: Run, task: Task) -> None:
    """The attempt starts: its step is used, the rest stays reserved."""
    run.reserved["step_budget"] -= task.held["step_budget"]
    run.used["step_budget"] += task.held["step_budget"]
    task.held["step_budget"] = 0


def release(run: Run, task: Task, started: bool) -> None:
    """The attempt never started; `started`: its lease had been granted, so its step was counted."""
    if started:
        run.used["step_budget"] -= 1
    for name in AMOUNTS:
        run.reserved[name] -= task.held.get(name, 0)
    task.held = {}


def settle(run: Run, task: Task, used: dict[str, int]) -> None:
    """Books what the attempt used, the larger of what it said before and says now."""
    for name in ("tokens", "cost"):
        held = task.held.get(name, 0)
        spent = max(used[name], task.said.get(name, 0))
        run.reserved[name] -= held
        run.used[name] += spent
        if spent > held and run.limit(LIMIT_KEYS[name]) is not None:
            run.overrun[name] = True
    task.held = {}


def settle_unknown(run: Run, task: Task) -> None:
    """Nobody said what the attempt used: its reservation is booked."""
    settle(run, task, {name: task.held.get(name, 0) for name in ("tokens", "cost")})


def use(run: Run, task: Task, said: dict[str, int]) -> bool:
    """A running attempt says what it used so far; its reservation grows to that, or False."""
    growth = dict.fromkeys(AMOUNTS, 0)
    task.said = {name: max(task.said.get(name, 0), said[name]) for name in said}
    for name in ("tokens", "cost"):
        growth[name] = max(0, said[name] - task.held.get(name, 0))
        limit = run.limit(LIMIT_KEYS[name])
        taken = run.used[name] + run.reserved[name]
        if growth[name] and limit is not None and taken + growth[name] > limit:
            return False
    for name in ("tokens", "cost"):
        task.held[name] = task.held.get(name, 0) + growth[name]
        run.reserved[name] += growth[name]
    return True
