"""Owns the drawing of a run's graph: where each node and edge stands, for the template that writes it as SVG. Pure.

Must not choose colours (the style sheet does, by state), and must not decide what blocks what: paths come from the
report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx

from coordinator.api.pages.folding import Point, fold
from coordinator.run_report.wording import clean

NODE_WIDTH, NODE_HEIGHT = 168, 44
GAP_X, GAP_Y = 56, 14
MARGIN = 10
LONGEST_LABEL = 21
SWEEPS = 4
"""Passes that move nodes towards the middle of their neighbours, so that fewer edges cross."""


@dataclass(frozen=True, slots=True)
class Node:
    """One box. title: what a pointer or a screen reader is told; anchor: the task's row on the page."""

    label: str
    note: str
    title: str
    state: str
    x: float
    y: float
    anchor: str


@dataclass(frozen=True, slots=True)
class Edge:
    """One line, as an SVG path. kind: requires, after or any_of."""

    path: str
    kind: str
    is_blocking: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """The whole picture. folded: tasks that have no node of their own."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float
    folded: int


def draw(team: Any, tasks: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """Draws the tasks of a report. team: the run's Team document, for the edges."""
    graph = _graph(team, tasks)
    points = fold(graph, {name: tasks[name]["state"] for name in graph})
    point_of = {task: number for number, point in enumerate(points) for task in point.tasks}
    kinds = {
        (point_of[a], point_of[b]): str(graph.edges[a, b]["kind"])
        for a, b in graph.edges
        if point_of[a] != point_of[b]
    }
    blocking = {
        (point_of[a], point_of[b]) for a, b in _blocking(tasks.values()) if a in point_of and b in point_of
    }
    places = _places(points, kinds)
    nodes = tuple(_node(point, places[number], tasks) for number, point in enumerate(points))
    edges = tuple(
        Edge(_path(places[a], places[b]), kind, (a, b) in blocking) for (a, b), kind in kinds.items()
    )
    width = max((x for x, _ in places), default=0) + NODE_WIDTH + MARGIN
    height = max((y for _, y in places), default=0) + NODE_HEIGHT + MARGIN
    return Drawing(nodes, edges, width, height, len(graph) - len(points))


def _graph(team: Any, tasks: Mapping[str, Mapping[str, Any]]) -> nx.DiGraph[str]:
    """Tasks of the Team with their edges; children are counted in their parent's node."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(name for name, task in tasks.items() if not task["parent"])
    written = team.get("tasks", {}) if isinstance(team, Mapping) else {}
    for name, task in written.items():
        for other, kind in _sources(task).items():
            if name in graph and other in graph:
                graph.add_edge(other, name, kind=kind)
    return graph


def _sources(task: Any) -> dict[str, str]:
    """What a task of a Team document waits for, and how. Read as it stands: the Team was checked when it came."""
    if not isinstance(task, Mapping):
        return {}
    any_of = task.get("any_of")
    sources = dict.fromkeys(any_of["tasks"] if any_of else (), "any_of")
    return (
        sources
        | dict.fromkeys(task.get("after") or (), "after")
        | dict.fromkeys(task.get("requires") or (), "requires")
    )


def _blocking(tasks: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Neighbours on the paths from a root cause to what it blocks."""
    found: set[tuple[str, str]] = set()
    for task in tasks:
        blocked = task["blocked_by"]
        if blocked:
            found.update(zip(blocked["path"], blocked["path"][1:], strict=False))
    return found


def _places(points: list[Point], edges: Iterable[tuple[int, int]]) -> list[tuple[float, float]]:
    """Left upper corners: columns from left to right, each ordered by the middle of its neighbours, and centred."""
    columns: dict[int, list[int]] = {}
    for number, point in enumerate(points):
        columns.setdefault(point.column, []).append(number)
    neighbours: dict[int, list[int]] = {}
    for a, b in edges:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    rank = {number: float(at) for column in columns.values() for at, number in enumerate(column)}
    for sweep in range(SWEEPS):
        for at in sorted(columns, reverse=bool(sweep % 2)):
            columns[at].sort(key=lambda number: _middle(number, neighbours, rank))
            middle = (len(columns[at]) - 1) / 2
            rank.update({number: place - middle for place, number in enumerate(columns[at])})
    tallest = max((len(column) for column in columns.values()), default=0)
    found = [(0.0, 0.0)] * len(points)
    for across, at in enumerate(sorted(columns)):
        shift = (tallest - len(columns[at])) * (NODE_HEIGHT + GAP_Y) / 2
        for down, number in enumerate(columns[at]):
            found[number] = (
                MARGIN + across * (NODE_WIDTH + GAP_X),
                MARGIN + shift + down * (NODE_HEIGHT + GAP_Y),
            )
    return found


def _middle(number: int, neighbours: Mapping[int, list[int]], rank: Mapping[int, float]) -> float:
    near = neighbours.get(number, [])
    return sum(rank[other] for other in near) / len(near) if near else rank[number]


def _node(point: Point, place: tuple[float, float], tasks: Mapping[str, Mapping[str, Any]]) -> Node:
    task, more = tasks[point.name], len(point.tasks) - 1
    label = clean(point.name, LONGEST_LABEL) if not more else f"{len(point.tasks)} tasks"
    note = point.state.replace("_", " ")
    if not more and task["children"]:
        done = Counter(tasks[child]["state"] for child in task["children"] if child in tasks)
        note += f" · {done['succeeded']}/{len(task['children'])} parts"
    elif not more and len(task["attempts"]) > 1:
        note += f" · attempt {len(task['attempts'])}"
    elif not more and not task["required"]:
        note += " · optional"
    some = ", ".join(clean(name, 80) for name in point.tasks[:8]) + (" …" if more > 7 else "")
    return Node(label, note, f"{some}: {note}", point.state, *place, anchor=f"t{task['index']}")


def _path(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = start[0] + NODE_WIDTH, start[1] + NODE_HEIGHT / 2
    to_x, to_y = end[0], end[1] + NODE_HEIGHT / 2
    bend = max((to_x - x) / 2, 18)
    return f"M{x:g} {y:g}C{x + bend:g} {y:g} {to_x - bend:g} {to_y:g} {to_x - 5:g} {to_y:g}"
