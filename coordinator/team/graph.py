"""Owns the graph of a Team: its cycles, and what waits for them (SPEC 2). Iterative, so that size never matters.

An edge leads from a task to one that it waits for: requires, after and any_of alike. Must not know states: which
task may start when is the machine's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.team.models import Team

Edges = Mapping[str, Sequence[str]]
"""By task, in the order of the file: the tasks that it waits for, all of them known."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """What can never start. cycles: each in the order of waiting; waiting: who merely waits for one."""

    cycles: tuple[tuple[str, ...], ...]
    waiting: tuple[str, ...]


def edges_of(team: Team) -> dict[str, list[str]]:
    """The edges of a Team, without those to unknown tasks and to itself (which are faults of their own)."""
    return {
        name: [other for other in task.upstream if other in team.tasks and other != name]
        for name, task in team.tasks.items()
    }


def find_cycle(edges: Edges) -> list[str] | None:
    """One cycle, or None: each task waits for the next one, and the last for the first."""
    left = _left_over(edges)
    if not left:
        return None
    name = next(name for name in edges if name in left)
    seen: dict[str, int] = {}
    walk: list[str] = []
    while name not in seen:
        seen[name] = len(walk)
        walk.append(name)
        name = next(other for other in edges[name] if other in left)
    return _from_first(walk[seen[name] :], edges)


def cycle_text(cycle: Sequence[str]) -> str:
    """A cycle as a person reads it: `a -> b -> a`, shortened when it is long."""
    names = list(cycle) if len(cycle) <= 12 else [*cycle[:10], f"... {len(cycle) - 11} more ...", cycle[-1]]
    return " -> ".join([*names, cycle[0]])


def stuck(team: Team) -> Stuck:
    """The cycles of a Team, and the tasks that can never start because they wait for one."""
    edges = edges_of(team)
    unreachable = _never_free(team)
    inside = {
        name: [other for other in edges[name] if other in unreachable]
        for name in edges
        if name in unreachable
    }
    cycles = [
        tuple(
            _from_first(
                find_cycle({name: [o for o in inside[name] if o in group] for name in group}) or [], edges
            )
        )
        for group in _knots(inside)
    ]
    on_cycle = {name for group in _knots(inside) for name in group}
    return Stuck(tuple(cycles), tuple(name for name in edges if name in unreachable and name not in on_cycle))


def _left_over(edges: Edges) -> set[str]:
    """The tasks on cycles, and those that wait for one: what remains when free tasks are taken away one by one."""
    open_count = {name: len(upstream) for name, upstream in edges.items()}
    dependants: dict[str, list[str]] = {name: [] for name in edges}
    for name, upstream in edges.items():
        for other in upstream:
            dependants[other].append(name)
    free = deque(name for name, count in open_count.items() if not count)
    while free:
        name = free.popleft()
        del open_count[name]
        for other in dependants[name]:
            open_count[other] -= 1
            if not open_count[other]:
                free.append(other)
    return set(open_count)


def _never_free(team: Team) -> set[str]:
    """Like `_left_over`, but `any_of` is met as soon as enough of its tasks are free."""
    missing: dict[str, int] = {}
    any_missing: dict[str, int] = {}
    dependants: dict[str, list[tuple[str, bool]]] = {name: [] for name in team.tasks}
    for name, task in team.tasks.items():
        missing[name] = len(task.requires) + len(task.after)
        any_missing[name] = task.any_of.count if task.any_of else 0
        for other in [*task.requires, *task.after]:
            dependants[other].append((name, False))
        for other in task.any_of.tasks if task.any_of else ():
            dependants[other].append((name, True))
    left = set(team.tasks)
    free = deque(name for name in team.tasks if missing[name] <= 0 and any_missing[name] <= 0)
    left.difference_update(free)
    while free:
        for other, is_any in dependants[free.popleft()]:
            counts = any_missing if is_any else missing
            counts[other] -= 1
            if other in left and missing[other] <= 0 and any_missing[other] <= 0:
                left.discard(other)
                free.append(other)
    return left


def _knots(edges: Edges) -> list[list[str]]:
    """Groups of tasks that wait for each other (strongly connected, more than one), in the order of the file."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    groups: list[set[str]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while work:
            name, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    path.append(other)
                    on_path.add(other)
                    work.append((other, iter(edges[other])))
                    break
                if other in on_path:
                    low[name] = min(low[name], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    cut = path.index(name) if path[-1] != name else len(path) - 1
                    group = set(path[cut:])
                    del path[cut:]
                    on_path -= group
                    if len(group) > 1:
                        groups.append(group)
    order = {name: at for at, name in enumerate(edges)}
    ordered = [sorted(group, key=order.__getitem__) for group in groups]
    return sorted(ordered, key=lambda group: order[group[0]])


def _from_first(cycle: list[str], edges: Edges) -> list[str]:
    """The same cycle, beginning with the task that stands first in the file."""
    if not cycle:
        return cycle
    members = set(cycle)
    start = cycle.index(next(name for name in edges if name in members))
    return cycle[start:] + cycle[:start]
