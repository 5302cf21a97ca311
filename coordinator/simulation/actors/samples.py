"""Owns the results that scripted attempts give when their plan names none: small, deterministic, and fit to
be used.

A result satisfies the task's `output_schema` where there is one, and has a value at every pointer that the
Team reads from it. Must not be random, and must not judge: whether a result is valid is decided where every
result is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

ELEMENTS = 2
"""How many elements a list has that a `for_each` goes over."""

_SIMPLE: dict[str, Any] = {"boolean": True, "null": None}
_DEPTH = 16


def sample_result(task: str, schema: Any, read: Iterable[str], listed: Iterable[str]) -> Any:
    """A result of `task`.

    read: JSON pointers at which other tasks read it; listed: those at which it must be a list.
    """
    lists = set(listed)
    if "" in lists:
        return _elements(task)
    value = {"task": task, "ok": True} if schema is None else sample(schema, task)
    for pointer in sorted(lists):
        value = _with(value, _parts(pointer), _elements(task))
    for pointer in sorted(set(read) - lists - {""}):
        value = _with(value, _parts(pointer), f"{task}{pointer}")
    return value


def sample(schema: Any, text: str, depth: int = 0) -> Any:
    """A small value that satisfies the usual parts of a JSON Schema; `text` stands where any string does."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return text
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return sample(
                {**schema[key][0], **{k: v for k, v in schema.items() if k != key}}, text, depth + 1
            )
    return _sample_type(schema, text, depth)


def _sample_type(schema: Mapping[str, Any], text: str, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        properties = schema.get("properties", {})
        names = list(properties) + [name for name in schema.get("required", ()) if name not in properties]
        return {name: sample(properties.get(name, {}), text, depth + 1) for name in names}
    if kind == "array":
        count = max(1, int(schema.get("minItems", 1)))
        return [sample(schema.get("items", {}), text, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        return _sample_number(schema)
    if kind == "string":
        return _sample_text(schema, text)
    return _SIMPLE.get(str(kind), text)


def _sample_number(schema: Mapping[str, Any]) -> Any:
    if "exclusiveMinimum" in schema:
        return schema["exclusiveMinimum"] + 1
    if "minimum" in schema:
        return schema["minimum"]
    return min(1, schema.get("maximum", 1))


def _sample_text(schema: Mapping[str, Any], text: str) -> str:
    padded = text.ljust(int(schema.get("minLength", 0)), "-")
    return padded[: int(schema["maxLength"])] if "maxLength" in schema else padded


def _elements(task: str) -> list[Any]:
    return [{"task": task, "element": index} for index in range(ELEMENTS)]


def _parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _with(value: Any, parts: list[str], leaf: Any) -> Any:
    """`value` with `leaf` at the pointer, unless something stands there already."""
    if not parts:
        return leaf if value is None else value
    base = dict(value) if isinstance(value, Mapping) else {}
    inner = base.get(parts[0])
    base[parts[0]] = (
        _with(inner, parts[1:], leaf) if len(parts) > 1 else (leaf if parts[0] not in base else inner)
    )
    return base


def other_than(value: Any) -> Any:
    """A value of the same shape that differs in its first leaf: what contradicts a result."""
    changed, result = _changed(value)
    return result if changed else {"other": True}


def _changed(value: Any) -> tuple[bool, Any]:
    if isinstance(value, bool):
        return True, not value
    if isinstance(value, str):
        return True, f"{value} (other)"
    if isinstance(value, (int, float)):
        return True, value + 1
    if isinstance(value, Mapping):
        for key, inner in value.items():
            changed, other = _changed(inner)
            if changed:
                return True, {**value, key: other}
    if isinstance(value, list):
        for index, inner in enumerate(value):
            changed, other = _changed(inner)
            if changed:
                return True, [*value[:index], other, *value[index + 1 :]]
    return False, value
