"""Owns how spans and money are written: `10m`, `1.5` seconds, exact decimals; read into ms and micro-units.

Money never passes through binary floats: a number of a file keeps its text (`builder.Number`). Must not set bounds
of its own beyond what Lua can hold.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from coordinator.team.builder import Number
from coordinator.wire.outcome_plan import duration_ms

EXPECTED_SPAN = "a duration such as 250ms, 90s, 10m or a number of seconds"
EXPECTED_MONEY = "an amount of money with at most 6 decimals, below 9007199254.740992"

MAX_NUMBER = 2**53 - 1
"""Largest number that passes through Lua unharmed."""

_SPAN = re.compile(r"(?:[0-9]{1,16}(?:\.[0-9]{1,6})?(?:ms|s|m|h|d)){1,5}", re.ASCII)
_MONEY = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_MAX_TEXT = 100
_EXACT = Context(prec=2 * _MAX_TEXT)


def span_ms(value: Any) -> int | None:
    """A span in ms; None when the value is none, or not a whole number of ms."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and not _SPAN.fullmatch(value):
        return None
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        return None
    return duration_ms(value)


def money_micros(value: Any) -> int | None:
    """Money in micro-units; None when the value is none, is finer than a micro-unit, or too large.

    A number whose digits binary64 cannot carry is refused too, as it would not survive the way through JSON; in quotes
    it may be that long.
    """
    if isinstance(value, str):
        return _micros(value) if _MONEY.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, int):
        return value * 1_000_000 if 0 <= value <= MAX_NUMBER // 1_000_000 else None
    micros = _micros(repr(float(value)))
    return micros if not isinstance(value, Number) or _micros(value.text) == micros else None


def _micros(text: str) -> int | None:
    if len(text) > _MAX_TEXT:
        return None
    try:
        micros = Decimal(text).scaleb(6, _EXACT)
    except InvalidOperation:
        return None
    if not micros.is_finite() or not 0 <= micros <= MAX_NUMBER or micros != int(micros):
        return None
    return int(micros)
