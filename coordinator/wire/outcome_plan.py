"""Owns the reading of `outcome_plan`: what each attempt of a task does in a simulated or scripted run (SPEC
2).

A plan is a word, an object `{outcome, result, tokens, cost, duration}`, or a list of them: one for each
attempt, the last one repeats. Must not run anything and must not know teams: `team` checks plans with it,
`simulation` plays them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact, InvalidOperation
from enum import StrEnum
from functools import reduce
from typing import Any


class PlannedOutcome(StrEnum):
    """What a scripted attempt does."""

    SUCCESS = "success"
    """Ends with a result."""
    TRANSIENT_ERROR = "transient_error"
    """Fails, may be retried."""
    PERMANENT_ERROR = "permanent_error"
    """Fails for good."""
    PERMISSION_DENIED = "permission_denied"
    """Is refused permission."""
    MISSING_INPUT = "missing_input"
    """Asks a question that nobody answers."""
    INVALID_OUTPUT = "invalid_output"
    """Returns what breaks its contract."""
    TIMEOUT = "timeout"
    """Lives on past the task's timeout."""
    CRASH = "crash"
    """Says nothing after its start: the lease expires."""
    HANDBACK = "handback"
    """Is returned before the handler began."""
    DUPLICATE = "duplicate"
    """Sends its success twice."""
    DUPLICATE_REORDERED = "duplicate_reordered"
    """Sends its success twice, the second time with the keys in another order."""
    CONFLICT = "conflict"
    """Sends its success, then another payload under the same key."""
    LATE = "late"
    """Falls silent until its lease is lost; its success comes once another attempt began or the run stopped."""


UNSET: Any = object()
"""The plan names no result (`null` is one)."""

DEFAULT_DURATION_MS = 1000
"""How long an attempt works when its plan does not say."""

_MICROS = 1_000_000
_LARGEST = 2**53 - 1
_LONGEST = 100
"""Characters of an amount; none that fits is longer."""
_EXACT = Context(prec=2 * _LONGEST, traps=[InvalidOperation, Inexact])
_KEYS = ("outcome", "result", "tokens", "cost", "duration")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


@dataclass(frozen=True, slots=True)
class PlannedAttempt:
    """One attempt of a plan. duration_ms: None when the plan does not say. result: UNSET likewise."""

    outcome: PlannedOutcome = PlannedOutcome.SUCCESS
    result: Any = UNSET
    tokens: int = 0
    cost_micros: int = 0
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class OutcomePlan:
    """What the attempts of one task do, in order; the last one repeats."""

    attempts: tuple[PlannedAttempt, ...] = (PlannedAttempt(),)

    def attempt(self, number: int) -> PlannedAttempt:
        """What attempt `number` (from 1) does."""
        return self.attempts[min(number, len(self.attempts)) - 1]


class PlanFault(ValueError):
    """One thing wrong with a plan: where (a path below the value), what was expected, what was found."""

    def __init__(self, path: tuple[str | int, ...], expected: str, found: Any) -> None:
        super().__init__(f"expected {expected}, found {_shown(found)}")
        self.path = path
        self.expected = expected
        self.found = _shown(found)


def parse_outcome_plan(value: Any) -> OutcomePlan:
    """Reads the value of an `outcome_plan` key; raises the first PlanFault."""
    faults: list[PlanFault] = []
    plan = read_outcome_plan(value, faults)
    if faults:
        raise faults[0]
    return plan


def read_outcome_plan(value: Any, faults: list[PlanFault]) -> OutcomePlan:
    """Reads the value of an `outcome_plan` key; adds what is wrong to `faults` and reads it as if absent."""
    if not isinstance(value, list):
        return OutcomePlan((_read_attempt(value, (), faults),))
    if not value:
        faults.append(PlanFault((), "at least one attempt", value))
        return OutcomePlan()
    return OutcomePlan(tuple(_read_attempt(item, (index,), faults) for index, item in enumerate(value)))


def duration_ms(value: Any) -> int | None:
    """A span in ms: seconds as a number, or text such as `250ms`, `90s`, `1h30m`; None when it is neither."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        return None
    if isinstance(value, str):
        if len(value) > _LONGEST:
            return None
        parts = _SPAN.findall(value)
        if not parts or "".join(number + unit for number, unit in parts) != value:
            return None
        terms = [_EXACT.multiply(Decimal(number), _UNITS[unit]) for number, unit in parts]
    else:
        terms = [_EXACT.multiply(Decimal(str(value)), 1000)]
    return _whole(reduce(_EXACT.add, terms))


def cost_micros(value: Any) -> int | None:
    """Exact decimal money as micro-units; None when it is none, negative, or finer than a micro-unit."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        return None
    if isinstance(value, str) and len(value) > _LONGEST:
        return None
    try:
        return _whole(_EXACT.multiply(Decimal(str(value)), _MICROS))
    except (InvalidOperation, Inexact):
        return None


def _whole(number: Decimal) -> int | None:
    return int(number) if number.is_finite() and 0 <= number <= _LARGEST and number == int(number) else None


def _read_attempt(value: Any, path: tuple[str | int, ...], faults: list[PlanFault]) -> PlannedAttempt:
    if not isinstance(value, Mapping):
        return PlannedAttempt(outcome=_read_word(value, path, faults))
    unknown = [str(key) for key in value if key not in _KEYS]
    faults.extend(PlanFault((*path, key), "one of " + ", ".join(_KEYS), key) for key in unknown)
    attempt = PlannedAttempt(result=value.get("result", UNSET))
    if "outcome" in value:
        attempt = replace(attempt, outcome=_read_word(value["outcome"], (*path, "outcome"), faults))
    if "tokens" in value:
        attempt = replace(attempt, tokens=_read_tokens(value["tokens"], (*path, "tokens"), faults))
    if "cost" in value:
        micros = cost_micros(value["cost"])
        if micros is None:
            faults.append(
                PlanFault((*path, "cost"), "an amount of money with up to 6 decimals", value["cost"])
            )
        attempt = replace(attempt, cost_micros=micros or 0)
    if "duration" in value:
        span = duration_ms(value["duration"])
        if span is None:
            faults.append(
                PlanFault((*path, "duration"), "a duration such as 250ms, 90s or 10m", value["duration"])
            )
        attempt = replace(attempt, duration_ms=span)
    return attempt


def _read_word(value: Any, path: tuple[str | int, ...], faults: list[PlanFault]) -> PlannedOutcome:
    if isinstance(value, str) and value in set(PlannedOutcome):
        return PlannedOutcome(value)
    faults.append(PlanFault(path, "one of " + ", ".join(PlannedOutcome), value))
    return PlannedOutcome.SUCCESS


def _read_tokens(value: Any, path: tuple[str | int, ...], faults: list[PlanFault]) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST:
        return value
    faults.append(PlanFault(path, "a whole number from 0", value))
    return 0


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
