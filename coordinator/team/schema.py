"""Owns JSON Schemas: that of the Team file, and the checking of values against those that a Team brings (SPEC 2).

A Team is untrusted: its schemas refer to nothing outside themselves, patterns run in linear time (`rules/patterns.py`),
and what a check may cost is bounded. Must not know runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from coordinator.team.faults import path_text, shown
from coordinator.team.models import NOT_IN_DEFAULTS, REFERS_TO, Backoff, Task, Team
from coordinator.team.rules.patterns import BadPattern, compile_pattern
from coordinator.wire import digest
from coordinator.wire.bindings import Path
from coordinator.wire.names import TaskState
from coordinator.wire.outcome_plan import PlannedOutcome

MAX_STEPS = 300_000
"""How many keywords may be applied to one value: a schema of references to references grows without bound."""
MAX_VIOLATIONS = 5

DIALECT = "https://json-schema.org/draft/2020-12/schema"


_steps = threading.local()


class _TooCostly(Exception):
    """Checking a value takes too many steps."""


def violations(schema: Any, value: Any) -> list[str]:
    """What is wrong with a value by a schema that was checked; the first five, each with its place. Empty: nothing."""
    return [f"{place or 'the value'}: {said}" for place, said in violations_at(schema, value)]


def violations_at(schema: Any, value: Any) -> list[tuple[str, str]]:
    """Like `violations`, as pairs of place and sentence."""
    validator = _validator(digest.canonical(schema))
    _steps.taken = 0
    try:
        found: list[tuple[str, str]] = []
        for error in validator.iter_errors(value):
            found.append((path_text(tuple(error.absolute_path)), _sentence(error)))
            if len(found) == MAX_VIOLATIONS:
                break
        return found
    except (RecursionError, _TooCostly):
        return [("", "its schema refers to itself without end, or takes too many steps to check")]


def schema_fault(schema: Any) -> tuple[Path, str, str] | None:
    """What keeps a schema from being used: where, what was expected, what was found. None: it is a good one."""
    if not isinstance(schema, (dict, bool)):
        return (), "a JSON Schema", shown(schema)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return tuple(error.absolute_path), "a JSON Schema (draft 2020-12)", error.message[:160]
    except RecursionError:
        return (), "a JSON Schema", "one that is nested too deep"
    return next(_inner_faults(schema), None)


def team_schema() -> dict[str, Any]:
    """The JSON Schema of a Team file, made from the models; `crewline schema` prints it."""
    schema = Team.model_json_schema(by_alias=True)
    definitions: dict[str, Any] = schema["$defs"]
    for model in (*definitions.values(), schema):
        model.setdefault("additionalProperties", False)
    definitions["Backoff"] = Backoff.model_json_schema() | {"additionalProperties": False}
    for model in definitions.values():
        _spell_defaults(model.get("properties", {}))
    task = definitions["Task"]
    definitions["Defaults"] = {
        **task,
        "title": "Defaults",
        "description": "Values for tasks that do not give the key.",
        "properties": {key: item for key, item in task["properties"].items() if key not in NOT_IN_DEFAULTS},
    }
    definitions |= {"Rule": _rule_schema(), "OutcomePlan": _plan_schema(), "Reference": _reference_schema()}
    schema["required"] = ["team", "tasks"]
    schema["properties"]["tasks"]["minProperties"] = 1
    return {"$schema": DIALECT, **_with_references(schema), "title": "Crewline Team"}


def _spell_defaults(properties: dict[str, Any]) -> None:
    """Defaults as they are written in a file: spans are ms in the models."""
    for key, item in properties.items():
        if key in ("timeout", "heartbeat", "first", "max") and any(
            "pattern" in one for one in item.get("anyOf", [])
        ):
            seconds = item["default"] // 1000
            item["default"] = f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"
        elif key == "min_success":
            item["default"] = "all"


def _with_references(item: Any) -> Any:
    if isinstance(item, dict):
        made = {key: _with_references(inner) for key, inner in item.items() if key != REFERS_TO}
        return made | ({"$ref": f"#/$defs/{item[REFERS_TO]}"} if REFERS_TO in item else {})
    return [_with_references(inner) for inner in item] if isinstance(item, list) else item


def _inner_faults(schema: Any) -> Iterator[tuple[Path, str, str]]:
    """References that lead outside or nowhere, and patterns that cannot run in linear time."""
    stack: list[tuple[Path, Any]] = [((), schema)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, list):
            stack.extend(((*path, at), inner) for at, inner in enumerate(item))
        if not isinstance(item, dict):
            continue
        for key in ("$ref", "$dynamicRef"):
            if isinstance(item.get(key), str) and not _leads_somewhere(schema, item[key]):
                yield (*path, key), "a reference inside this schema, such as #/$defs/NAME", shown(item[key])
        patterns = [item["pattern"]] if isinstance(item.get("pattern"), str) else []
        if isinstance(item.get("patternProperties"), dict):
            patterns += list(item["patternProperties"])
        for pattern in patterns:
            try:
                compile_pattern(pattern, True)
            except BadPattern as fault:
                yield (*path, "pattern"), str(fault), shown(pattern)
        # `enum`, `const`, `default` and `examples` hold values, not schemas
        values = ("enum", "const", "default", "examples")
        stack.extend(((*path, key), inner) for key, inner in item.items() if key not in values)


def _leads_somewhere(schema: Any, reference: str) -> bool:
    if not reference.startswith("#"):
        return False
    try:
        Registry().with_resource("", _resource(schema)).resolver().lookup(reference)
    except (Unresolvable, ValueError, KeyError, TypeError):
        return False
    return True


def _resource(schema: Any) -> Any:
    return DRAFT202012.create_resource(schema)


@lru_cache(maxsize=512)
def _validator(canonical_schema: str) -> Validator:
    schema = digest.parse_json(canonical_schema)
    # An empty registry: nothing is ever fetched.
    validator: Validator = _Checker(schema, registry=Registry())
    return validator


def _sentence(error: ValidationError) -> str:
    return error.message if len(error.message) <= 200 else error.message[:197] + "..."


# -- keywords that are safer here than in the library ---------------------------------------------------


def _pattern(_: Validator, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not compile_pattern(pattern, True).matches(value):
        yield ValidationError(f"{shown(value)} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], value: Any, __: Any
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, schema in patterns.items():
            for key, item in value.items():
                if compile_pattern(pattern, True).matches(key):
                    yield from validator.descend(item, schema, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, value: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    patterns = [compile_pattern(pattern, True) for pattern in schema.get("patternProperties", {})]
    for key, item in value.items():
        if key in schema.get("properties", {}) or any(pattern.matches(key) for pattern in patterns):
            continue
        if allowed is False:
            yield ValidationError(f"the key {shown(key)} is not expected")
        elif allowed is not True:
            yield from validator.descend(item, allowed, path=key)


def _unique_items(_: Validator, wanted: bool, value: Any, __: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(value, list) and len({digest.canonical(item) for item in value}) != len(value):
        yield ValidationError("the elements are not all different")


def _counted(keyword: Any) -> Any:
    """The keyword, refused when checking one value takes too many steps."""

    def check(validator: Any, operand: Any, value: Any, schema: Any) -> Any:
        _steps.taken += 1
        if _steps.taken > MAX_STEPS:
            raise _TooCostly
        return keyword(validator, operand, value, schema)

    return check


_KEYWORDS = {
    **Draft202012Validator.VALIDATORS,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
_extend: Any = extend
_Checker = _extend(Draft202012Validator, {name: _counted(keyword) for name, keyword in _KEYWORDS.items()})


# -- parts of the Team file's schema that no model makes ------------------------------------------------


def _rule_schema() -> dict[str, Any]:
    rule: dict[str, Any] = {"$ref": "#/$defs/Rule"}
    count = {"type": "integer", "minimum": 0}
    rules = {"type": "array", "items": rule, "minItems": 1}
    span = Task.model_json_schema()["properties"]["timeout"]
    span = {"anyOf": span["anyOf"]}
    facts: dict[str, Any] = {
        "all": rules,
        "any": rules,
        "not": rule,
        "attempts_started": count,
        "reports_accepted": count,
        "tokens": count,
        "cost": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]},
        "elapsed": span,
        "idle": span,
        "succeeded": {
            "anyOf": [_count_or_all(), _closed({"count": _count_or_all(), "of": _names()}, ["of"])]
        },
        "state": _closed({"task": {"type": "string"}, "is": {"enum": list(TaskState)}}, ["task", "is"]),
        "reporter_role": {"type": "string"},
        "signal": {"type": "string", "minLength": 1, "maxLength": 128},
        "input": _tested("name"),
        "result": _tested("task"),
    }
    return {
        "title": "Rule",
        "anyOf": [
            {"type": "boolean"},
            *(_closed({word: operand}, [word]) for word, operand in facts.items()),
        ],
    }


def _count_or_all() -> dict[str, Any]:
    return {"anyOf": [{"const": "all"}, {"type": "integer", "minimum": 0}]}


def _names() -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _tested(subject: str) -> dict[str, Any]:
    name, at = {"type": "string"}, {"type": "string", "pattern": r"^(/([^~/]|~[01])*)*$"}
    return {
        "oneOf": [
            _closed({subject: name, "at": at, "equals": {}}, [subject, "equals"]),
            _closed(
                {subject: name, "at": at, "matches": {"type": "string", "maxLength": 200}},
                [subject, "matches"],
            ),
        ]
    }


def _plan_schema() -> dict[str, Any]:
    word: dict[str, Any] = {"enum": list(PlannedOutcome)}
    money = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}
    entry = {
        "anyOf": [
            word,
            _closed(
                {
                    "outcome": word,
                    "result": {},
                    "tokens": {"type": "integer", "minimum": 0},
                    "cost": money,
                    "duration": money,
                },
                [],
            ),
        ]
    }
    return {
        "title": "OutcomePlan",
        "anyOf": [*entry["anyOf"], {"type": "array", "items": entry, "minItems": 1}],
    }


def _reference_schema() -> dict[str, Any]:
    return _closed({"from": {"type": "string"}, "at": {"type": "string"}}, ["from"]) | {"title": "Reference"}
