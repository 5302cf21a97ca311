"""Owns the reading of the flat string fields that a snapshot consists of: numbers, flags, money, JSON texts.

Must not know what a field means. An empty string means "none" everywhere (machine/README.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MICROS = 1_000_000


def number(fields: Mapping[str, Any], name: str) -> int | None:
    """The field as an integer; None when it is missing or empty."""
    text = fields.get(name, "")
    return None if text is None or text == "" else int(text)


def count(fields: Mapping[str, Any], name: str) -> int:
    """The field as an integer; 0 when it is missing or empty."""
    return number(fields, name) or 0


def flag(fields: Mapping[str, Any], name: str) -> bool:
    """True for a field that says 1."""
    return str(fields.get(name, "")) in ("1", "True", "true")


def word(fields: Mapping[str, Any], name: str) -> str | None:
    """The field as a text; None when it is missing or empty."""
    return str(fields[name]) if fields.get(name) not in (None, "") else None


def document(text: str | None) -> Any:
    """A JSON text as a value; None when there is none. Integers stay as long as they are."""
    return json.loads(text) if text else None


def money(micros: int | None) -> str | None:
    """Micro-units as an exact decimal text with at least two places: 250000 is `0.25`, 1 is `0.000001`."""
    if micros is None:
        return None
    sign = "-" if micros < 0 else ""
    whole, rest = divmod(abs(micros), MICROS)
    return f"{sign}{whole}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')}"
