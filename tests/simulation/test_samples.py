"""Results of scripted attempts whose plan names none."""

import jsonschema
import pytest

from coordinator.simulation.actors.samples import other_than, sample, sample_result


def test_the_default_names_the_task() -> None:
    assert sample_result("a", None, (), ()) == {"task": "a", "ok": True}


def test_values_stand_where_other_tasks_read_them() -> None:
    result = sample_result("a", None, ["/order/id", "/task", "", "/a~1b"], ["/order/lines"])
    assert result["order"]["id"] == "a/order/id"
    assert result["order"]["lines"] == [{"task": "a", "element": 0}, {"task": "a", "element": 1}]
    assert result["task"] == "a"
    assert result["a/b"] == "a/a~1b"


def test_a_whole_result_that_is_gone_over_is_a_list() -> None:
    assert [element["element"] for element in sample_result("a", None, (), [""])] == [0, 1]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer", "minimum": 3}}},
        {"type": "object", "required": ["x", "y"]},
        {"type": "array", "minItems": 2, "items": {"enum": ["u", "v"]}},
        {"type": "string", "minLength": 5},
        {"type": "string", "maxLength": 1},
        {"type": ["null", "string"]},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "maximum": -2},
        {"type": "boolean"},
        {"const": {"k": 1}},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"properties": {"deep": {"properties": {"n": {"type": "null"}}}}},
    ],
)
def test_a_sample_satisfies_its_schema(schema: dict[str, object]) -> None:
    jsonschema.validate(sample(schema, "task"), schema)


@pytest.mark.parametrize(
    "value", [{"task": "a", "ok": True}, [1, 2], "x", 0, False, None, {}, [[], {"k": 1.5}]]
)
def test_what_contradicts_a_result_differs_from_it(value: object) -> None:
    other = other_than(value)
    assert other != value or type(other) is not type(value)
