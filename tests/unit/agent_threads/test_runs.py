"""Crewline's own background work in the report, and results that are threads."""

from __future__ import annotations

from typing import Any

from coordinator.agent_threads import background_section, thread_section
from tests.support.threads import background, payload, step, thread, turn

Json = dict[str, Any]


def task(state: str = "succeeded", *, ended: int | None = None, **more: Any) -> Json:
    return {
        "state": state,
        "attempts": [{"number": 1, "ended_at": ended}],
        "parent": None,
        "children": [],
        **more,
    }


def test_each_child_stands_in_one_place_and_says_how_it_stands() -> None:
    """C-51: seven children, one of which died."""
    names = [f"p.c{number}" for number in range(7)]
    tasks = {"p": task(children=names)}
    tasks |= {
        name: task("canceled" if name == "p.c4" else "succeeded", ended=5, parent="p") for name in names
    }
    section = background_section(tasks)
    assert [entry["task"] for entry in section] == names
    assert {(entry["placement"], entry["parent"]) for entry in section} == {("anchored", "p")}
    assert [entry["kind"] for entry in section].count("completed") == 6
    assert section[4] == {
        "task": "p.c4",
        "placement": "anchored",
        "parent": "p",
        "state": "canceled",
        "kind": "canceled",
        "ended_at": 5,
    }


def test_children_of_children_and_what_is_no_background_work() -> None:
    tasks = {
        "p": task(children=["c", "w"]),
        "c": task("awaiting", parent="p", children=["d"]),
        "d": task("failed", parent="c", ended=3),
        "w": task(parent="p", background=False),
        "list": task(for_each=True, children=["list.0"]),
        "list.0": task(parent="list"),
        "alone": task(),
    }
    kinds = [(e["task"], e["parent"], e["kind"]) for e in background_section(tasks)]
    assert kinds == [("c", "p", "awaiting"), ("d", "c", "other")]


def test_a_child_that_no_task_names_is_matched_by_time_or_left() -> None:
    tasks = {"near": task(ended=20_000, parent="gone"), "far": task(ended=20_001, parent="gone"), "p": task()}
    events = [
        {"kind": "task_resumed", "task_id": "p", "seq": 4, "at": 10_000},
        {"kind": "signal", "task_id": "", "seq": 5, "at": 20_001},
    ]
    placed = {e["task"]: (e["placement"], e["parent"]) for e in background_section(tasks, events)}
    assert placed == {"near": ("matched", "p"), "far": ("unassigned", None)}


def test_a_run_without_children_has_no_background() -> None:
    assert background_section({"a": task()}) == []


def test_a_result_that_is_a_thread_is_shown_attributed() -> None:
    document = thread(
        [turn("e", 0, step(payload("a")))],
        [
            background(payload("a", status="WORKFLOW_CANCELED")),
            background(payload("b", status="WORKFLOW_ODD")),
        ],
    )
    section = thread_section(document)
    assert section is not None
    assert [(e["id"], e["placement"], e["location"], e["kind"]) for e in section["background"]] == [
        ("a", "anchored", "turn_0001/subagent", "canceled"),
        ("b", "unassigned", "background_unassigned", "other"),
    ]
    assert [e["location"] for e in section["interruptions"]] == ["turn_0001/subagent"]


def test_other_results_are_left_alone() -> None:
    assert thread_section({"entries": 5}) is None
    assert thread_section("text") is None
    assert thread_section({"entries": []}) == {"thread": "", "turns": 0, "background": []}
