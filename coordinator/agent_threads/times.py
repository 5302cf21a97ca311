"""Owns how a time in an exported thread is read: whole microseconds since 1970, UTC, so that differences are
exact.

Must not fail: what cannot be read is no time, and the caller goes on to its next fallback.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

SECOND_US = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST = 10**17
"""No time lies beyond the year 5138; larger numbers are something else."""


def instant(value: Any, *, unit_us: int = 0) -> int | None:
    """Reads an ISO 8601 text (without an offset: UTC) or a number, in microseconds; None for anything else.

    `unit_us`: microseconds in the number's unit; 0 when the unit is not known: a number below 1e11 counts
    seconds, one below 1e14 milliseconds, a larger one microseconds.
    """
    if isinstance(value, str):
        return _of_text(value.strip(), unit_us)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if not unit_us:
        unit_us = SECOND_US if abs(value) < 10**11 else 1000 if abs(value) < 10**14 else 1
    at = round(value * unit_us)
    return at if abs(at) <= _LARGEST else None


def first_instant(source: Mapping[str, Any], *names: str) -> int | None:
    """The first of the named fields that holds a time; a name that ends in `_us` counts microseconds."""
    for name in names:
        at = instant(source.get(name), unit_us=1 if name.endswith("_us") else 0)
        if at is not None:
            return at
    return None


def shown_instant(at: int | None) -> str:
    """A time as UTC to the second, for a heading; empty for none."""
    if at is None:
        return ""
    try:
        return f"{_EPOCH + at * _MICROSECOND:%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return ""


def _of_text(text: str, unit_us: int) -> int | None:
    if text.isascii() and text.lstrip("-").isdigit() and len(text) <= 20 and len(text) != 8:
        return instant(int(text), unit_us=unit_us)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND
