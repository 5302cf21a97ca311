"""Owns what counts as the same JSON: strict reading, the canonical form and its digest (SPEC 6).

A digest is SHA-256 over canonical JSON (scheme `json-sorted/1`): keys sorted by code point, compact, UTF-8, integers as
they stand, other numbers as binary64 the way Python prints them. Must not decide what follows from two digests, and
must not know teams. Values are compared by this form everywhere, never by Python's `==` (which takes 1, 1.0 and true
for one value). This is the hot path of every result: both directions run in the C encoder and decoder.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

SCHEME = "json-sorted/1"
"""Name of the scheme, stored beside digests."""

MAX_DEPTH = 64
"""Deepest nesting of arrays and objects."""

MAX_DIGITS = 4300
"""Longest integer; the bound that Python itself sets, so that no reader of it is slowed down."""

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|([\[{])|[\]}]', re.DOTALL)
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)


class InvalidPayload(ValueError):
    """This is not JSON that Crewline accepts; the message is the reason (SPEC 6: `invalid_output`)."""


def parse_json(text: str | bytes) -> Any:
    """Reads JSON strictly and gives the value.

    Raises InvalidPayload on what is no JSON, and on duplicate keys, NaN, Infinity, numbers beyond binary64 (`1e999`),
    lone surrogates, integers of more than 4,300 digits and nesting over 64 (SPEC 6).
    """
    if isinstance(text, bytes):
        text = _decode(text)
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth_of_text(text)
    try:
        value = _DECODER.decode(text)
    except InvalidPayload:
        raise
    except json.JSONDecodeError as error:
        raise InvalidPayload(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except ValueError:
        raise InvalidPayload(f"an integer of more than {MAX_DIGITS} digits") from None
    except RecursionError:
        raise InvalidPayload(f"nested deeper than {MAX_DEPTH}") from None
    if not text.isascii() or _SURROGATE_ESCAPE.search(text):
        _check_surrogates(value)
    return value


def canonical(value: Any) -> str:
    """The canonical form of a value that `parse_json` gave (or one built of the same types).

    Raises InvalidPayload for NaN, Infinity and for what is no JSON value. Keys are taken as strings: values from
    elsewhere go through `encode`.
    """
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise InvalidPayload(f"nested deeper than {MAX_DEPTH}") from None
    except (TypeError, ValueError) as error:
        raise InvalidPayload(str(error)) from None


def digest(value: Any) -> str:
    """The digest of a value: `sha256:` and 64 hex digits, over its canonical form."""
    return digest_of_canonical(canonical(value))


def digest_of_canonical(text: str) -> str:
    """The digest of a text that is canonical already."""
    try:
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        raise InvalidPayload("a lone surrogate") from None


def digest_of_text(text: str | bytes) -> str:
    """The digest of JSON text from outside; raises InvalidPayload."""
    return digest(parse_json(text))


def encode(value: Any) -> str:
    """Canonical JSON text of any Python object, for the worker's edge.

    Raises InvalidPayload, naming the place, on non-string keys (never merged or spelled silently), NaN, Infinity, lone
    surrogates, objects that are no JSON, and nesting over 64, which also ends reference cycles (SPEC 6). Tuples are
    arrays; dataclasses and pydantic models are for the caller to convert.
    """
    _check_object(value)
    text = canonical(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidPayload("a lone surrogate") from None
    return text


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same value: their canonical forms are equal."""
    return canonical(one) == canonical(other)


def depth(value: Any) -> int:
    """How deep arrays and objects nest: 0 for a scalar, 1 for `[]`. Stops counting beyond 64."""
    level = 0
    layer = [value]
    while layer := [item for item in layer if isinstance(item, (dict, list, tuple))]:
        level += 1
        if level > MAX_DEPTH:
            return level
        layer = [inner for item in layer for inner in (item.values() if isinstance(item, dict) else item)]
    return level


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidPayload("not UTF-8") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = counts.most_common(1)[0][0]
        raise InvalidPayload(f"the key {json.dumps(twice)[:80]} stands twice in one object")
    return members


def _constant(name: str) -> NoReturn:
    raise InvalidPayload(f"{name} is no JSON number")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InvalidPayload(f"the number {text[:40]} is beyond binary64")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)


def _check_depth_of_text(text: str) -> None:
    """Counts brackets outside strings, so that deep text is refused before any recursive reader sees it."""
    level = 0
    for match in _BRACKETS.finditer(text):
        if match.lastindex:
            level += 1
            if level > MAX_DEPTH:
                raise InvalidPayload(f"nested deeper than {MAX_DEPTH}")
        elif match[0] in "]}":
            level -= 1


def _check_surrogates(value: Any) -> None:
    try:
        _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        raise InvalidPayload("a lone surrogate") from None


def _check_object(value: Any) -> None:
    """Walks a Python object without recursion; raises InvalidPayload at the first thing that is no JSON."""
    stack: list[tuple[Any, str, int]] = [(value, "", 1)]
    while stack:
        item, where, level = stack.pop()
        if isinstance(item, dict):
            _check_keys(item, where)
            stack.extend((inner, f"{where}/{key}", level + 1) for key, inner in reversed(item.items()))
        elif isinstance(item, (list, tuple)):
            stack.extend((inner, f"{where}/{index}", level + 1) for index, inner in enumerate(item))
        else:
            _check_scalar(item, where)
            continue
        if level > MAX_DEPTH:
            raise InvalidPayload(f"nested deeper than {MAX_DEPTH}")


def _check_keys(item: dict[Any, Any], where: str) -> None:
    for key in item:
        if not isinstance(key, str):
            raise InvalidPayload(f"{_place(where)}: a key of type {type(key).__name__} is no string")


def _check_scalar(item: Any, where: str) -> None:
    if item is None or isinstance(item, (str, bool)):
        return
    if isinstance(item, int):
        if item.bit_length() > MAX_DIGITS * 3.4 or abs(item) >= _TOO_LONG:
            raise InvalidPayload(f"{_place(where)}: an integer of more than {MAX_DIGITS} digits")
    elif isinstance(item, float):
        if not math.isfinite(item):
            raise InvalidPayload(f"{_place(where)}: {item} is no JSON number")
    else:
        hint = " (convert it first)" if dataclasses.is_dataclass(item) else ""
        raise InvalidPayload(f"{_place(where)}: an object of type {type(item).__name__} is no JSON{hint}")


_TOO_LONG = 10**MAX_DIGITS


def _place(where: str) -> str:
    return (where or "the value")[:200]
