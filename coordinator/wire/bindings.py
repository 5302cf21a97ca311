"""Owns input templates: what a reference looks like, and how the values are put in its place (SPEC 2).

A template is JSON in which these objects stand for values: `{from: inputs.NAME}` or `{from: inputs.NAME.KEY}`,
`{from: tasks.TASK.result}`, and below a `for_each` `{from: item}` and `{from: index}`; each (but index) may add `at`, a
JSON pointer (RFC 6901). `{from: literal, value: X}` stands for X as it is, whatever X holds. Values that were put in
are never searched for references again: data cannot refer to anything. Must not know teams or where values come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Path = tuple[str | int, ...]
"""Where something stands in a JSON value: keys and indexes from the top."""

_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_TASK_SOURCE = re.compile(r"tasks\.(.+)\.result", re.DOTALL)
_INPUT_SOURCE = re.compile(r"inputs\.([^.]+)((?:\.[^.]+)*)", re.DOTALL)


class Unresolved(Exception):
    """A reference has no value here; the message says which and why (`InputUnresolved`, class permanent)."""


class BadReference(ValueError):
    """This object looks like a reference and is none; the message says what was expected."""


class SourceKind(StrEnum):
    """What a reference refers to."""

    INPUT = "input"
    """A run input; `name` is its name."""
    RESULT = "result"
    """A task's result; `name` is the task."""
    ITEM = "item"
    """The element of a `for_each`."""
    INDEX = "index"
    """The position of that element, from 0."""
    LITERAL = "literal"
    """The value that stands in the reference itself."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference. at: the JSON pointer below the source; value: that of a literal."""

    kind: SourceKind
    name: str = ""
    at: str = ""
    value: Any = None

    def __str__(self) -> str:
        source = {
            SourceKind.INPUT: f"inputs.{self.name}",
            SourceKind.RESULT: f"tasks.{self.name}.result",
        }.get(self.kind, self.kind.value)
        return f"{source} at {self.at}" if self.at else source


def is_reference(value: Any) -> bool:
    """Whether a value must be read as a reference: an object with `from` and nothing but `at` or `value` beside it."""
    return isinstance(value, dict) and "from" in value and value.keys() <= {"from", "at", "value"}


def parse_reference(value: Mapping[str, Any]) -> Reference:
    """Reads an object for which `is_reference` holds; raises BadReference."""
    source, at = value["from"], value.get("at", "")
    if not isinstance(source, str):
        raise BadReference(EXPECTED_SOURCE)
    if source == "literal" or "value" in value:
        if source != "literal" or set(value) != {"from", "value"}:
            raise BadReference("`value` together with `from: literal`, and with nothing else")
        return Reference(SourceKind.LITERAL, value=value["value"])
    if not isinstance(at, str) or not is_pointer(at):
        raise BadReference("`at` to be a JSON pointer such as /lines/0")
    if source == "index":
        if at:
            raise BadReference("no `at` with `from: index`")
        return Reference(SourceKind.INDEX)
    if source == "item":
        return Reference(SourceKind.ITEM, at=at)
    if match := _TASK_SOURCE.fullmatch(source):
        return Reference(SourceKind.RESULT, match[1], at)
    if match := _INPUT_SOURCE.fullmatch(source):
        keys = match[2].split(".")[1:]
        return Reference(SourceKind.INPUT, match[1], "".join(f"/{escape_key(key)}" for key in keys) + at)
    raise BadReference(EXPECTED_SOURCE)


EXPECTED_SOURCE = "`from` to be inputs.NAME or tasks.TASK.result"


def references(template: Any) -> Iterator[tuple[Path, Reference | BadReference]]:
    """All references of a template with their places, in its order; what is a bad one is given as its fault."""
    stack: list[tuple[Path, Any]] = [((), template)]
    while stack:
        path, item = stack.pop()
        if is_reference(item):
            try:
                yield path, parse_reference(item)
            except BadReference as fault:
                yield path, fault
        elif isinstance(item, dict):
            stack.extend(((*path, key), inner) for key, inner in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend(((*path, index), inner) for index, inner in reversed(list(enumerate(item))))


def resolve(template: Any, inputs: Mapping[str, Any] | None, results: Mapping[str, Any] | None) -> Any:
    """The template with every reference replaced by its value (SPEC 2); the template itself is left as it is.

    inputs: the run's inputs by name. results: the requirements' results by task. Raises Unresolved when a value is not
    there. Nesting is bounded by whoever read the template (64).
    """
    if isinstance(template, dict):
        if is_reference(template):
            return _value_of(template, inputs or {}, results or {})
        return {key: resolve(item, inputs, results) for key, item in template.items()}
    if isinstance(template, list):
        return [resolve(item, inputs, results) for item in template]
    return template


def bind_item(template: Any, element: Any, index: int) -> Any:
    """The template of one `for_each` child: item and index are replaced by literals, the rest stays to be resolved.

    Raises Unresolved when the element has nothing at a reference's pointer.
    """
    if isinstance(template, dict):
        if not is_reference(template):
            return {key: bind_item(item, element, index) for key, item in template.items()}
        reference = parse_reference(template)
        if reference.kind is SourceKind.INDEX:
            return index
        if reference.kind is SourceKind.ITEM:
            return as_literal(at_pointer(element, reference.at, str(reference)))
        return template
    if isinstance(template, list):
        return [bind_item(item, element, index) for item in template]
    return template


def as_literal(value: Any) -> Any:
    """A template that stands for exactly this value; wrapped only when something in it looks like a reference."""
    stack = [value]
    while stack:
        item = stack.pop()
        if is_reference(item):
            return {"from": "literal", "value": value}
        if isinstance(item, (dict, list)):
            stack.extend(item.values() if isinstance(item, dict) else item)
    return value


def is_pointer(text: str) -> bool:
    """Whether the text is a JSON pointer (RFC 6901); the empty one means the whole value."""
    return _POINTER.fullmatch(text) is not None


def escape_key(key: str) -> str:
    """A key as it stands in a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def at_pointer(value: Any, pointer: str, source: str = "the value") -> Any:
    """What stands at a JSON pointer; raises Unresolved, naming `source` and the part that is missing."""
    if not pointer:
        return value
    for part in pointer[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and _INDEX.fullmatch(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            raise Unresolved(f"{source}: nothing stands at {pointer} (no {key!r:.80})")
    return value


def _value_of(item: Mapping[str, Any], inputs: Mapping[str, Any], results: Mapping[str, Any]) -> Any:
    try:
        reference = parse_reference(item)
    except BadReference as fault:
        raise Unresolved(f"expected {fault}") from None
    return value_of(reference, inputs, results)


def value_of(reference: Reference, inputs: Mapping[str, Any], results: Mapping[str, Any]) -> Any:
    """The value of one reference; raises Unresolved. Items have no value here: `bind_item` puts them in before."""
    if reference.kind is SourceKind.LITERAL:
        return reference.value
    if reference.kind is SourceKind.INPUT and reference.name in inputs:
        return at_pointer(inputs[reference.name], reference.at, f"inputs.{reference.name}")
    if reference.kind is SourceKind.RESULT and reference.name in results:
        return at_pointer(results[reference.name], reference.at, f"tasks.{reference.name}.result")
    raise Unresolved(f"{reference}: there is no such value")
