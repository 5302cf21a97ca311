"""Owns how a graph that is too large to draw is folded: tasks that stand alike become one node with a number. Pure.

Nothing is left out: every task is in exactly one node. A task that is in doubt or broke something keeps a node with
its own state, because only tasks of one state are folded together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import networkx as nx

MOST_NODES = 60
MOST_COLUMNS = 30


@dataclass(frozen=True, slots=True)
class Point:
    """One node to draw: the tasks in it, all of one state. column: from the left, 0 first."""

    tasks: tuple[str, ...]
    state: str
    column: int

    @property
    def name(self) -> str:
        """The first task's name."""
        return self.tasks[0]


def fold(graph: nx.DiGraph[str], states: Mapping[str, str], most: int = MOST_NODES) -> list[Point]:
    """The nodes to draw: one for each task, or fewer when there are more than `most`."""
    columns = columns_of(graph)
    alone = [Point((task,), states[task], columns[task]) for task in graph]
    if len(alone) <= most:
        return alone
    twins = _group(
        graph,
        states,
        columns,
        lambda task: (
            columns[task],
            frozenset(graph.predecessors(task)),
            frozenset(graph.successors(task)),
        ),
    )
    if len(twins) <= most:
        return twins
    last = max(columns.values(), default=0)
    bands = (
        {task: column * MOST_COLUMNS // (last + 1) for task, column in columns.items()}
        if last >= MOST_COLUMNS
        else columns
    )
    return _group(graph, states, bands, lambda task: bands[task])


def columns_of(graph: nx.DiGraph[str]) -> dict[str, int]:
    """How far from the left each task stands: after all that it depends on. Tasks of one cycle share a column."""
    if nx.is_directed_acyclic_graph(graph):
        return {
            task: column
            for column, generation in enumerate(nx.topological_generations(graph))
            for task in generation
        }
    knots = nx.condensation(graph)
    return {
        task: column
        for column, generation in enumerate(nx.topological_generations(knots))
        for knot in generation
        for task in knots.nodes[knot]["members"]
    }


def _group(
    graph: nx.DiGraph[str],
    states: Mapping[str, str],
    columns: Mapping[str, int],
    key: Callable[[str], Hashable],
) -> list[Point]:
    groups: dict[Hashable, list[str]] = {}
    for task in graph:
        groups.setdefault((states[task], key(task)), []).append(task)
    return [Point(tuple(tasks), states[tasks[0]], columns[tasks[0]]) for tasks in groups.values()]
