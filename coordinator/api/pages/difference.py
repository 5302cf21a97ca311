"""Owns how two payloads are shown side by side with their differences marked, and told in words. Pure.

Payloads are compared as values (`wire.digest` says what is the same), shown as every review shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from coordinator.run_report import reviews
from coordinator.run_report.wording import clean
from coordinator.wire.digest import canonical, same

MOST_LINES = 1_500
LONGEST_LINE = 600
"""Lines and characters of a payload that are shown; the whole of it stands in the report."""
AROUND = 3
"""Equal lines kept around a difference."""
MOST_CHANGES = 12
WORDS = re.compile(r"[\w.]+|\s+|.")

Span = tuple[str, bool]
"""A piece of a line, and whether it differs."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of both sides; an empty side has no line there. kind: same, changed, left, right or gap."""

    kind: str
    left: tuple[Span, ...]
    right: tuple[Span, ...]


def pretty(value: Any) -> list[str]:
    """A value as lines, cut where it is too long to show."""
    lines = reviews.pretty(value)
    shown = [line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…" for line in lines[:MOST_LINES]]
    return shown if len(lines) <= MOST_LINES else [*shown, f"… {len(lines) - MOST_LINES} more lines"]


def side_by_side(left: Any, right: Any) -> list[Row]:
    """Both values line by line; long equal stretches are folded."""
    one, other = pretty(left), pretty(right)
    rows: list[Row] = []
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    for number, (tag, a, b, c, d) in enumerate(blocks):
        if tag == "equal":
            rows.extend(_equal(one[a:b], first=number == 0, last=number == len(blocks) - 1))
            continue
        rows.extend(_replaced(one[a:b], other[c:d]))
    return rows


def _equal(lines: list[str], first: bool, last: bool) -> Iterator[Row]:
    head, tail = (0 if first else AROUND), (0 if last else AROUND)
    hidden = len(lines) - head - tail
    if hidden <= AROUND:
        head, hidden = len(lines), 0
    for number, line in enumerate(lines):
        if number < head or number >= head + hidden:
            yield Row("same", ((line, False),), ((line, False),))
        elif number == head:
            text = (f"… {hidden} equal lines", False)
            yield Row("gap", (text,), (text,))


def _replaced(ones: list[str], others: list[str]) -> Iterator[Row]:
    """Lines in place of others: those of one key stand beside each other."""
    keys, other_keys = (_keys(lines) for lines in (ones, others))
    for tag, a, b, c, d in SequenceMatcher(None, keys, other_keys, autojunk=False).get_opcodes():
        if tag == "equal" or b - a == d - c:
            yield from (_changed(one, other) for one, other in zip(ones[a:b], others[c:d], strict=True))
        else:
            yield from (Row("left", _marked(line), ()) for line in ones[a:b])
            yield from (Row("right", (), _marked(line)) for line in others[c:d])


def _keys(lines: list[str]) -> list[str]:
    return [line.partition('":')[0] for line in lines]


def _marked(line: str) -> tuple[Span, ...]:
    """A whole line, marked from its first character that is no space."""
    text = line.lstrip(" ")
    return (line[: len(line) - len(text)], False), (text, True)


def _changed(one: str, other: str) -> Row:
    """Two lines, compared word by word: half a number that differs says nothing."""
    words, others = WORDS.findall(one), WORDS.findall(other)
    left: list[Span] = []
    right: list[Span] = []
    for tag, a, b, c, d in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        if a != b:
            left.append(("".join(words[a:b]), tag != "equal"))
        if c != d:
            right.append(("".join(others[c:d]), tag != "equal"))
    return Row("changed", tuple(left), tuple(right))


def changes(left: Any, right: Any) -> list[str]:
    """The differences in words: `/amount: 120 → 130`; at most so many, and then how many more."""
    found = list(_changes(left, right, ""))
    if len(found) > MOST_CHANGES:
        return [*found[:MOST_CHANGES], f"and {len(found) - MOST_CHANGES} more"]
    return found


def _changes(left: Any, right: Any, at: str) -> Iterator[str]:
    if same(left, right):
        return
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys()):
            place = f"{at}/{key}"
            if key not in right:
                yield f"{clean(place, 80)}: only in the left one, {_short(left[key])}"
            elif key not in left:
                yield f"{clean(place, 80)}: only in the right one, {_short(right[key])}"
            else:
                yield from _changes(left[key], right[key], place)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from _changes(one, other, f"{at}/{number}")
    else:
        yield f"{clean(at, 80) or 'the value'}: {_short(left)} → {_short(right)}"


def _short(value: Any) -> str:
    return clean(canonical(value), 60)
