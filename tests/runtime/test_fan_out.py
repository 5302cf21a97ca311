"""`for_each`: children from a list, in bounded parts, and the list of their results in element order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coordinator.runtime.upkeep import fan_out
from tests.runtime.harness import Stepped, team


def fan(source: str = "inputs.items", **more: Any) -> dict[str, Any]:
    """A Team with one parent over an input."""
    parent = {
        "for_each": {"from": source, **more},
        "input": {"item": {"from": "item"}, "at": {"from": "index"}},
    }
    return team({"each": parent, "sum": {"requires": ["each"]}}, inputs={"items": {}})


def test_children_run_and_their_results_are_collected_in_order(stepped: Stepped) -> None:
    stepped.submit(fan(), inputs={"items": ["x", "y", "z"]})
    assert [job.task for job in stepped.jobs()] == ["each[0]", "each[1]", "each[2]"]
    assert stepped.start("each[1]")["input"] == {"item": "y", "at": 1}
    stepped.end("each[1]", {"n": 1})
    stepped.work("each[2]", 2)
    stepped.work("each[0]", [0])
    grant = stepped.start("sum")
    assert grant["results"] == {"each": [[0], {"n": 1}, 2]}


def test_an_empty_list_has_an_empty_result(stepped: Stepped) -> None:
    stepped.submit(fan(), inputs={"items": []})
    assert stepped.state("each") == "succeeded"
    assert stepped.start("sum")["results"] == {"each": []}


def test_the_list_may_be_a_result(stepped: Stepped) -> None:
    tasks = {"a": {}, "each": {"requires": ["a"], "for_each": {"from": "tasks.a.result", "at": "/list"}}}
    stepped.submit(team(tasks))
    stepped.work("a", {"list": [5, 6]})
    assert stepped.start("each[0]")["input"] == 5
    stepped.end("each[0]", 1)
    stepped.work("each[1]", 2)
    assert stepped.run()["status"] == "completed"


def test_children_are_made_in_parts(stepped: Stepped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "CHILDREN_AT_ONCE", 3)
    stepped.submit(fan(max_parallel=2), inputs={"items": list(range(8))})
    assert stepped.task("each")["children"] == "8"
    assert [job.task for job in stepped.jobs()] == ["each[0]", "each[1]"]
    for index in range(8):
        stepped.work(f"each[{index}]", index * 10)
    assert stepped.start("sum")["results"] == {"each": [index * 10 for index in range(8)]}


def test_a_crash_between_two_parts_makes_no_child_twice(
    stepped: Stepped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "CHILDREN_AT_ONCE", 3)
    entry = json.dumps(fan())
    from coordinator.wire import channels
    from coordinator.wire.reports import Submit

    stepped.put(
        channels.scope_inbox("crewline", "submit"),
        Submit(run="r1", team=entry, inputs=json.dumps({"items": list(range(8))})).fields(),
    )
    while stepped.step().more:
        stepped.restart()
    assert stepped.task("each")["children"] == "8"


@pytest.mark.parametrize(
    ("items", "said"),
    [({"no": "list"}, "list"), ("text", "list"), ([1, 2, 3, 4], "more than max"), (None, "list")],
)
def test_what_cannot_be_run_over_fails_the_parent(stepped: Stepped, items: Any, said: str) -> None:
    stepped.submit(fan(max=3), inputs={"items": items})
    assert stepped.state("each") == "failed"
    assert said in json.loads(stepped.task("each")["error"])["message"]


def test_an_element_without_what_the_template_asks_for_fails_the_parent(stepped: Stepped) -> None:
    parent = {"for_each": {"from": "inputs.items"}, "input": {"from": "item", "at": "/name"}}
    stepped.submit(team({"each": parent}, inputs={"items": {}}), inputs={"items": [{"name": 1}, {}]})
    assert json.loads(stepped.task("each")["error"])["type"] == "InputUnresolved"


def test_a_failed_child_fails_the_parent(stepped: Stepped) -> None:
    stepped.submit(fan(), inputs={"items": [1, 2]})
    stepped.start("each[0]")
    stepped.end("each[0]", outcome="permanent")
    assert stepped.state("each") == "failed"
    assert json.loads(stepped.task("each")["error"])["type"] == "ChildrenFailed"
    assert stepped.run()["status"] == "critical_failure"


def test_with_min_success_failed_children_leave_null(stepped: Stepped) -> None:
    stepped.submit(fan(min_success=1), inputs={"items": [1, 2]})
    stepped.start("each[0]")
    stepped.end("each[0]", outcome="permanent")
    stepped.work("each[1]", 7)
    assert stepped.start("sum")["results"] == {"each": [None, 7]}


def test_a_list_of_results_that_grows_too_long_fails_the_parent(
    stepped: Stepped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "LONGEST_LIST", 20)
    stepped.submit(fan(), inputs={"items": [1, 2]})
    stepped.work("each[0]", "x" * 10)
    stepped.work("each[1]", "x" * 10)
    assert json.loads(stepped.task("each")["error"])["class"] == "invalid_output"


def test_a_child_is_held_to_its_parents_contract(stepped: Stepped) -> None:
    parent = {"for_each": {"from": "inputs.items"}, "output_schema": {"type": "integer"}}
    stepped.submit(team({"each": parent}, inputs={"items": {}}), inputs={"items": [1]})
    stepped.start("each[0]")
    stepped.end("each[0]", "text")
    assert json.loads(stepped.task("each[0]")["error"])["class"] == "invalid_output"
