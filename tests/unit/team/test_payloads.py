"""Run inputs, results and the lists of for_each, judged against a Team."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.team.loader import make_team
from coordinator.team.models import Team
from coordinator.team.payloads import NotElements, check_inputs, elements_of, judge_result, source_task
from coordinator.wire.digest import digest_of_text
from coordinator.wire.errors import InputFault


def team(**task: Any) -> Team:
    return make_team(
        {
            "team": "t",
            "inputs": {
                "id": {"type": "string", "pattern": "^[A-Z]-[0-9]+$"},
                "n": {"type": "integer", "default": 3},
                "order": {
                    "default": {"lines": [1, 2]},
                    "properties": {"lines": {"type": "array", "maxItems": 3}},
                },
            },
            "roles": {"w": {"capabilities": ["go"]}},
            "tasks": {
                "first": {"capability": "go"},
                "a": {"capability": "go", "requires": ["first"], **task},
            },
        }
    )


def test_defaults_are_filled_in_in_the_order_of_the_file() -> None:
    values = check_inputs(team(), {"order": {"lines": []}, "id": "A-1"})
    assert list(values.items()) == [("id", "A-1"), ("n", 3), ("order", {"lines": []})]


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        ({}, ["inputs: inputs.id: expected this input to be given, found nothing"]),
        (
            {"id": "A-1", "x": 1},
            ['inputs: inputs.x: expected one of id, n, order, found the unknown input "x"'],
        ),
        ({"id": 5}, ["inputs.id: expected a value that its schema accepts, found 5"]),
        ({"id": "a-1"}, ["does not match"]),
        ({"id": "A-1", "n": True}, ["inputs.n: expected"]),
        ({"id": "A-1", "n": "3"}, ["inputs.n: expected"]),
        ({"id": "A-1", "order": {"lines": [1, 2, 3, 4]}}, ["inputs.order.lines: expected"]),
        ({"id": "A-1", "n": float("nan")}, ["inputs.n: expected a JSON value"]),
        ({"id": "A-1", "order": {1: 2}}, ["inputs.order: expected a JSON value"]),
        ({"x": 1, "n": "y"}, ["inputs.x", "inputs.id", "inputs.n"]),
    ],
)
def test_unknown_missing_and_wrong_inputs_are_all_told(given: dict[str, Any], faults: list[str]) -> None:
    with pytest.raises(InputFault) as caught:
        check_inputs(team(), given)
    assert len(caught.value.faults) == len(faults)
    assert all(said in str(fault) for said, fault in zip(faults, caught.value.faults, strict=True))


def test_a_team_without_inputs_takes_none() -> None:
    bare = make_team({"team": "t", "tasks": {"a": {"external": True}}})
    assert check_inputs(bare, {}) == {}
    with pytest.raises(InputFault, match="no input, as there is none"):
        check_inputs(bare, {"x": 1})


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        ('{"answer": "yes"}', ""),
        ("null", "null is not of type 'object'|None is not of type 'object'"),
        ("{}", "'answer' is a required property"),
        ('{"answer": ""}', "''"),
        ('{"answer": "x", "success": false}', "success"),
        ('{"answer": NaN}', "NaN"),
        ("", "not JSON"),
        ('{"answer": "x", "answer": "y"}', "twice"),
    ],
)
def test_C_20_the_contract_decides_whether_a_result_is_one(payload: str, fault: str) -> None:
    schema = {
        "type": "object",
        "required": ["answer"],
        "properties": {"answer": {"type": "string", "minLength": 1}, "success": {"const": True}},
    }
    judged = judge_result(team(output_schema=schema), "a", payload)
    assert judged.size == len(payload)
    if fault:
        assert any(part in judged.fault for part in fault.split("|"))
        assert judged.digest == ""
    else:
        assert (judged.fault, judged.digest) == ("", digest_of_text(payload))


@pytest.mark.parametrize(("size", "good"), [(99, True), (100, True), (101, False)])
def test_C_56_a_result_may_be_as_large_as_output_bytes(size: int, good: bool) -> None:
    judged = judge_result(team(output_bytes=100), "a", '"' + "x" * (size - 2) + '"')
    assert (judged.fault == "") is good
    two_bytes_each = '"' + "é" * ((size - 2) // 2) + '"'
    assert judge_result(team(output_bytes=100), "a", two_bytes_each).size == 2 + (size - 2) // 2 * 2


def test_C_56_a_million_tiny_keys_are_refused_by_size() -> None:
    payload = "{" + ",".join(f'"k{at}":0' for at in range(1_000_000)) + "}"
    assert "output_bytes" in judge_result(team(), "a", payload).fault


def test_facts_of_rules_come_with_the_judgement() -> None:
    judged = judge_result(
        team(when={"result": {"task": "first", "at": "/ok", "equals": 1}}), "first", '{"ok": 1}'
    )
    assert judged.facts == ("f1",)


def test_a_child_is_held_to_its_task_and_the_list_is_not() -> None:
    fan = team(
        for_each={"from": "inputs.order", "at": "/lines"}, output_schema={"type": "integer"}, output_bytes=4
    )
    assert judge_result(fan, "a[3]", "5").fault == ""
    assert "is not of type 'integer'" in judge_result(fan, "a[3]", '"x"').fault
    assert judge_result(fan, "a", "[1, 2, 3, 4]").fault == ""
    assert judge_result(fan, "unknown", "[1, 2, 3, 4]").digest == ""


def test_elements_of_a_for_each() -> None:
    by_input = team(for_each={"from": "inputs.order", "at": "/lines", "max": 2})
    assert elements_of(by_input, "a", {"order": {"lines": [5, 6]}}, {}) == [5, 6]
    assert source_task(by_input, "a") == ""
    by_result = team(for_each={"from": "tasks.first.result"})
    assert elements_of(by_result, "a", {}, {"first": []}) == []
    assert source_task(by_result, "a") == "first"
    for inputs, said in [
        ({"order": {"lines": [1, 2, 3]}}, "has 3 elements, more than max"),
        ({"order": {"lines": {"0": 1}}}, "is no list but an object"),
        ({"order": {}}, "nothing stands at /lines"),
        ({}, "no such value"),
    ]:
        with pytest.raises(NotElements, match=said):
            elements_of(by_input, "a", inputs, {})
    with pytest.raises(NotElements):
        elements_of(by_result, "a", {}, {"first": None})
