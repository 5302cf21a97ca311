"""Owns what a fault in a Team file looks like, and the book in which all of them are collected (SPEC 2).

Every fault says file, line, path, expected and found. Must not find faults itself, and must not stop at the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
"""Where something stands in the file: keys and indexes from the top."""

MAX_FAULTS = 10_000
"""More are not written down."""
_SHOWN = 80
_LISTED = 20
_COMPARED = 2000
NOTHING: Any = object()
"""Found: the key is not there."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input. line: from 1, 0 when there is none. path: `tasks.a.requires[0]`."""

    file: str
    line: int
    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        place = f" {self.path}:" if self.path else ""
        return f"{where}:{place} expected {self.expected}, found {self.found}"

    def as_dict(self) -> dict[str, Any]:
        """The fault as JSON, for `check --json`."""
        return {
            "file": self.file,
            "line": self.line,
            "path": self.path,
            "expected": self.expected,
            "found": self.found,
        }


class FaultBook:
    """Collects the faults of one input. line_of: the line on which the thing at a path stands."""

    def __init__(self, file: str, line_of: Callable[[Path], int]) -> None:
        self._file = file
        self._line_of = line_of
        self._entries: list[tuple[Path, str, str, int | None]] = []
        self._known: set[tuple[Path, str, str]] = set()
        self._suggestions = 100
        self.broken: set[Path] = set()
        """Paths whose value was refused and is read as if it were absent; checks that need it are left out."""

        self.refused: set[Path] = set()
        """Paths at which the reader itself refused a value: what stands there instead is no second fault."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, path: Path, expected: str, found: Any, line: int | None = None) -> None:
        """Writes a fault down. found: the value, shown as JSON; NOTHING when the key is missing."""
        self.say(path, expected, shown(found), line)

    def say(self, path: Path, expected: str, found: str, line: int | None = None) -> None:
        """Writes a fault down whose `found` is a description, not a value."""
        if line is None and self.is_refused(path):
            return
        if (path, expected, found) not in self._known and len(self._entries) < MAX_FAULTS:
            self._known.add((path, expected, found))
            self._entries.append((path, expected, found, line))

    def unknown(self, path: Path, names: Collection[str], found: Any, what: str, said: str = "") -> None:
        """Writes down that a word is none of `names`, with the closest one. said: found, when not the word itself."""
        expected = listed(names, what)
        if len(names) > 3 and isinstance(found, str) and len(names) <= _COMPARED and self._suggestions:
            self._suggestions -= 1
            if close := get_close_matches(found, names, n=1):
                expected = f"a known {what} (did you mean {close[0]}?)"
        self.say(path, expected, said or shown(found))

    def is_broken(self, *path: str | int) -> bool:
        """Whether the thing at a path, or what it stands in, was refused."""
        return bool(self.broken) and any(path[:end] in self.broken for end in range(1, len(path) + 1))

    def is_refused(self, path: Path) -> bool:
        """Whether the reader refused the value at a path, or around it."""
        return bool(self.refused) and any(path[:end] in self.refused for end in range(len(path) + 1))

    def faults(self) -> list[Fault]:
        """All faults, in the order of their lines."""
        found = [
            Fault(self._file, self._line_of(path) if line is None else line, path_text(path), expected, found)
            for path, expected, found, line in self._entries
        ]
        return sorted(found, key=lambda fault: fault.line)


def path_text(path: Path) -> str:
    """A path as a person writes it; keys with a dot or a bracket in them are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = part and not set(part) & set('.[]" \n\t')
            text += ("." if text else "") + (part if plain else json.dumps(part, ensure_ascii=False))
    return text if len(text) <= 200 else text[:197] + "..."


def shown(value: Any) -> str:
    """A value as JSON, cut to 80 characters."""
    if value is NOTHING:
        return "nothing"
    if isinstance(value, dict):
        return (
            "an empty object" if not value else "an object with " + _cut(", ".join(map(str, list(value)[:8])))
        )
    if isinstance(value, list):
        return "an empty list" if not value else f"a list of {len(value)}"
    try:
        if isinstance(value, float) and hasattr(value, "text"):
            return _cut(str(value.text))
        return _cut(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):
        return _cut(f"an object of type {type(value).__name__}")


def listed(names: Collection[str], what: str = "one") -> str:
    """`one of a, b`; `a known WHAT` when there are too many to list."""
    if not names:
        return f"no {what}, as there is none"
    return f"one of {', '.join(names)}" if len(names) <= _LISTED else f"a known {what}"


_EXPECTED: dict[str, str] = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "missing": "this key to be given",
    "string_too_short": "text that is not empty",
}


def expectation(error: ErrorDetails) -> str:
    """What a pydantic error says was expected."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "literal_error":
        words = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        return f"one of {words}" if ", " in words else words
    if "expected" in context:
        return str(context["expected"])
    if kind in ("greater_than_equal", "greater_than"):
        return f"a whole number of at least {context.get('ge', context.get('gt'))}"
    if kind in ("less_than_equal", "less_than"):
        return f"a whole number of at most {context.get('le', context.get('lt'))}"
    if kind == "string_too_long":
        return f"text of at most {context.get('max_length')} characters"
    if kind == "too_short":
        return f"a list of at least {context.get('min_length')}"
    return _EXPECTED.get(kind, error["msg"])


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
