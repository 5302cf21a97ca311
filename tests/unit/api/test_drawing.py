"""Where things stand in the pages' drawings: the folded graph, the time line, the differences, the budget bars."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from coordinator.api.pages.difference import changes, side_by_side
from coordinator.api.pages.folding import MOST_COLUMNS, columns_of, fold
from coordinator.api.pages.graph import NODE_HEIGHT, NODE_WIDTH, draw
from coordinator.api.pages.timeline import LABEL, WIDTH, time_line
from coordinator.api.pages.views import budget_bars


def task(state: str = "pending", **more: Any) -> dict[str, Any]:
    return {
        "state": state,
        "index": 0,
        "parent": None,
        "children": [],
        "attempts": [],
        "required": True,
        "blocked_by": None,
        **more,
    }


def team(**requires: list[str]) -> dict[str, Any]:
    return {"team": "t", "tasks": {n: {"external": True, "requires": r} for n, r in requires.items()}}


def test_each_task_stands_right_of_what_it_requires_and_no_two_overlap() -> None:
    document = team(a=[], b=["a"], c=["a"], d=["b", "c"], e=[], f=["e", "a"])
    drawing = draw(document, {name: task() for name in document["tasks"]})
    place = {node.label: (node.x, node.y) for node in drawing.nodes}
    for name, entry in document["tasks"].items():
        for other in entry["requires"]:
            assert place[other][0] < place[name][0]
    for x, y in place.values():
        assert 0 <= x <= drawing.width - NODE_WIDTH
        assert 0 <= y <= drawing.height - NODE_HEIGHT
    assert len(set(place.values())) == 6
    assert (len(drawing.edges), drawing.folded) == (6, 0)


def test_the_path_of_a_block_is_marked() -> None:
    blocked = {"root": "a", "path": ["a", "b", "c"]}
    tasks = {"a": task("failed"), "b": task("blocked"), "c": task("blocked", blocked_by=blocked), "d": task()}
    drawing = draw(team(a=[], b=["a"], c=["b"], d=["a"]), tasks)
    assert [edge.is_blocking for edge in drawing.edges] == [True, False, True]


def test_a_cycle_and_a_team_of_another_version_are_drawn_all_the_same() -> None:
    tasks = {"a": task(), "b": task()}
    assert len(draw(team(a=["b"], b=["a"]), tasks).nodes) == 2
    assert draw({"crewline": 99}, tasks).edges == ()
    assert draw(team(), {}).nodes == ()


@pytest.mark.parametrize("shape", ["fan", "chain", "layers"])
def test_a_large_graph_is_folded_and_loses_no_task(shape: str) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    if shape == "fan":
        graph.add_edges_from(("begin", f"t{n}") for n in range(5_000))
    elif shape == "chain":
        nx.add_path(graph, [f"t{n}" for n in range(5_000)])
    else:
        graph.add_edges_from((f"a{n}", f"b{m}") for n in range(70) for m in range(n % 7, 70))
    states = dict.fromkeys(graph, "succeeded")
    odd = sorted(graph)[17]
    states[odd] = "failed"
    points = fold(graph, states)
    assert sorted(name for point in points for name in point.tasks) == sorted(graph)
    assert len(points) <= 2 * MOST_COLUMNS + 2
    assert [point.tasks for point in points if point.state == "failed"] == [(odd,)]


def test_columns_come_after_what_they_depend_on() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "c")])
    assert columns_of(graph) == {"a": 0, "b": 1, "c": 2, "d": 2}


def attempt(number: int = 1, **more: Any) -> dict[str, Any]:
    empty = {"worker": None, "queued_at": None, "started_at": None, "ended_at": None, "outcome": None}
    return {"number": number, **empty, **more}


def test_bars_stand_where_the_time_was() -> None:
    first = attempt(queued_at=1_000, started_at=1_500, ended_at=2_000, outcome="failed")
    second = attempt(2, queued_at=3_000, started_at=4_000)
    tasks = {"a": task(attempts=[first, second]), "b": task()}
    line = time_line(tasks, begin=1_000, end=5_000)
    scale = (WIDTH - LABEL) / 4_000
    assert line.rows == ("a",)
    assert [bar.outcome for bar in line.bars] == ["queued", "failed", "queued", "running"]
    assert line.bars[1].x == pytest.approx(LABEL + 500 * scale, abs=0.01)
    assert line.bars[3].x + line.bars[3].width == pytest.approx(WIDTH, abs=0.02)
    assert line.marks[0] == (LABEL, "0")


@pytest.mark.parametrize("length", [0, 1, 999, 61_000, 86_400_000, 40 * 86_400_000])
def test_the_axis_has_few_marks(length: int) -> None:
    tasks = {"a": task(attempts=[attempt(queued_at=5, started_at=5, ended_at=5 + length)])}
    line = time_line(tasks, begin=5, end=5 + length)
    assert 1 <= len(line.marks) <= 9
    assert all(LABEL <= bar.x <= WIDTH and bar.width > 0 for bar in line.bars)


def test_differences_are_marked_and_told() -> None:
    left = {"paid": "59.50", "items": [1, 2], "same": {str(n): n for n in range(30)}, "gone": None}
    right = {"paid": "38.00", "items": [1, 3], "same": {str(n): n for n in range(30)}, "new": True}
    assert changes(left, right) == [
        "/gone: only in the left one, null",
        "/items/1: 2 → 3",
        "/new: only in the right one, true",
        '/paid: "59.50" → "38.00"',
    ]
    rows = side_by_side(left, right)
    marked = [text for row in rows for text, differs in row.left if differs]
    assert "59.50" in marked
    assert any(row.kind == "gap" for row in rows)
    assert "".join(text for row in rows for text, _ in row.left).count("equal lines") == 1
    assert all(row.left or row.right for row in rows)


def test_values_that_python_takes_for_equal_differ() -> None:
    assert changes({"n": 1}, {"n": 1.0}) == ["/n: 1 → 1.0"]
    assert changes(True, 1) == ["the value: true → 1"]
    assert changes([1], [1, 2]) == ["the value: [1] → [1,2]"]
    assert changes(1, 1) == []
    assert changes(list(range(50)), list(range(1, 51)))[-1] == "and 38 more"


def test_a_huge_payload_is_cut() -> None:
    rows = side_by_side({str(n): "x" * 2_000 for n in range(5_000)}, {})
    assert len(rows) < 1_600
    assert max(len(text) for row in rows for text, _ in row.left) <= 601


def test_budget_bars() -> None:
    none = {"limit": None, "used": 0, "reserved": 0, "overrun": False}
    budgets = {
        "step_budget": {"limit": 10, "used": 4, "reserved": 1, "overrun": False},
        "max_steps": none,
        "tokens": {"limit": 0, "used": 0, "reserved": 0, "overrun": False},
        "cost": {"limit": "1.00", "used": "1.50", "reserved": "0.00", "overrun": True},
    }
    steps, tokens, cost = budget_bars(budgets)
    assert (steps.used, steps.reserved, steps.is_full) == (40.0, 10.0, False)
    assert steps.text == "4 of 10, 1 reserved"
    assert tokens.is_full
    assert (cost.used, cost.reserved, cost.is_full) == (100.0, 0.0, True)
    assert cost.text == "1.50 of 1.00, overrun"
