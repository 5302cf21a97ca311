"""JSON Schemas: that of the Team file agrees with the loader, and those of a Team are safe to check values with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer import Typer
from typer.testing import CliRunner

from coordinator.cli.check import register
from coordinator.team.loader import examine
from coordinator.team.schema import MAX_VIOLATIONS, schema_fault, team_schema, violations
from coordinator.team.source import Source
from tests.unit.team.test_faults import ONE_FAULT, team_text
from tests.unit.team.test_loader import FULL

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted([*(ROOT / "examples").rglob("team*.yaml"), *(ROOT / "examples").glob("*.json")])
SEMANTIC = (
    "one of a",
    "one of w",
    "another task",
    "as many as",
    "input",
    "requires",
    "role",
    "for_each",
    "external",
)


def app() -> Typer:
    made = Typer()
    register(made)
    return made


def test_the_schema_is_one_and_accepts_what_the_loader_accepts() -> None:
    schema = team_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(Source(FULL, False).value)] == []
    for path in EXAMPLES:
        value = Source(path.read_text(), path.suffix == ".json").value
        assert [error.message for error in validator.iter_errors(value)] == [], path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_sound(path: Path) -> None:
    assert examine(path)[1] == []


STRUCTURAL = [
    entry
    for entry in ONE_FAULT
    if entry[3].startswith(
        ("a whole number", "at least", "true or false", "a list", "text", "stop, pause", "stopped")
    )
    or "the unknown key" in entry[4]
    or "not yet supported" in entry[4]
]


@pytest.mark.parametrize(("task", "top"), [entry[:2] for entry in STRUCTURAL if "secret" not in entry[0]])
def test_the_schema_refuses_what_is_wrong_by_structure(task: str, top: str) -> None:
    value = Source(team_text(task, top), False).value
    if (
        "for_each: {from: inputs.i}" in task
        or "1.0" in task
        or "first: 2m" in task
        or "required: false" in task
    ):
        return  # JSON Schema cannot say these: an integer may be spelled 1.0 there, and parts are not compared
    assert list(Draft202012Validator(team_schema()).iter_errors(value))


def test_every_key_is_described() -> None:
    schema = team_schema()
    bare = [
        f"{name}.{key}"
        for name, model in [
            ("Team", schema),
            *((n, schema["$defs"][n]) for n in ("Task", "Limits", "ForEach", "Role")),
        ]
        for key, item in model["properties"].items()
        if "description" not in item
    ]
    assert bare == []
    assert schema["$defs"]["Task"]["properties"]["timeout"]["default"] == "60m"
    assert "requires" not in schema["$defs"]["Defaults"]["properties"]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer"}, True, "not of type 'integer'"),
        ({"pattern": "^a+$"}, "aab", "does not match"),
        ({"patternProperties": {"^x": {"type": "string"}}}, {"x1": 5}, "x1: 5 is not of type 'string'"),
        (
            {"patternProperties": {"^x": {}}, "additionalProperties": False},
            {"y": 5},
            'the key "y" is not expected',
        ),
        ({"additionalProperties": {"type": "string"}}, {"y": 5}, "y: 5 is not of type 'string'"),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1}], "not all different"),
        ({"$ref": "#/$defs/t", "$defs": {"t": {"type": "string"}}}, 5, "not of type 'string'"),
        ({"items": {"$ref": "#"}, "type": "array"}, [[5]], "[0][0]: 5 is not of type 'array'"),
        (False, 1, "False schema"),
    ],
)
def test_violations_name_their_place(schema: Any, value: Any, said: str) -> None:
    assert schema_fault(schema) is None
    assert said in violations(schema, value)[0]


def test_no_more_than_five_violations_are_told() -> None:
    assert len(violations({"items": {"type": "string"}}, list(range(100)))) == MAX_VIOLATIONS


def test_values_that_pass() -> None:
    assert violations({"uniqueItems": True}, [1, True, 1.0, "1"]) == []
    assert (
        violations({"additionalProperties": {"type": "integer"}, "properties": {"a": {}}}, {"a": "x", "b": 1})
        == []
    )
    assert violations(True, {"anything": [None]}) == []


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "nonsense"}, ("type",)),
        ({"properties": {"a": {"minimum": "x"}}}, ("properties", "a", "minimum")),
        ({"$ref": "https://example.org/schema.json"}, ("$ref",)),
        ({"items": {"$ref": "#/$defs/nothing"}}, ("items", "$ref")),
        ({"$ref": "other.json#/x"}, ("$ref",)),
        ({"pattern": "(a)\\1"}, ("pattern",)),
        ({"patternProperties": {"(?!x)": {}}}, ("pattern",)),
        ({"patternProperties": {"(": {}}}, None),
        ([], ()),
        ("string", ()),
    ],
)
def test_schemas_that_cannot_be_used_are_refused(schema: Any, path: Any) -> None:
    fault = schema_fault(schema)
    assert fault is not None
    assert path is None or fault[0] == path


def test_words_that_only_look_like_keywords_are_left_alone() -> None:
    assert schema_fault({"enum": [{"$ref": "x"}], "default": {"pattern": "("}, "const": {"$ref": 5}}) is None
    assert schema_fault({"properties": {"pattern": {"type": "string"}, "$ref": {"type": "string"}}}) is None


DOUBLING: dict[str, Any] = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(30)} | {
    "d30": {}
}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": DOUBLING, "$ref": "#/$defs/d0"},
        {"oneOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]},
    ],
)  # fmt: skip
def test_schemas_that_grow_without_end_are_cut_short(schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinator.team.schema.MAX_STEPS", 20_000)
    nested: Any = [1, 2]
    for _ in range(60):
        nested = [nested]
    assert "takes too many steps" in " ".join(violations(schema, nested))


def test_the_command_prints_the_schema() -> None:
    result = CliRunner().invoke(app(), ["schema"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == team_schema()


def test_check_says_ok_or_lists_every_fault(tmp_path: Path) -> None:
    path = tmp_path / "team.yaml"
    path.write_text(FULL)
    good = CliRunner().invoke(app(), ["check", str(path)])
    assert (good.exit_code, good.stdout) == (0, "ok: refund-review, 5 tasks (1 optional), 2 roles\n")
    path.write_text(team_text("{max_attempts: true, requires: [x], owner: y, foo: 1}", "on_limit: z\n"))
    bad = CliRunner().invoke(app(), ["check", str(path)])
    assert bad.exit_code == 2
    assert len(bad.stdout.splitlines()) == 5
    assert all(line.startswith(f"{path}:") for line in bad.stdout.splitlines())
    as_json = CliRunner().invoke(app(), ["check", str(path), "--json"])
    assert as_json.exit_code == 2
    faults = json.loads(as_json.stdout)["faults"]
    assert len(faults) == 5
    assert faults[0].keys() == {"file", "line", "path", "expected", "found"}


def test_check_of_a_broken_file_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{\n")
    result = CliRunner().invoke(app(), ["check", str(path)])
    assert result.exit_code == 2
    assert result.stdout == f"{path}:2: expected a key in double quotes or }}, found the end of the file\n"
