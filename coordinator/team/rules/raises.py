"""Owns how raised limits are written: `300000`, `+10`, `+1.50`, `+10m`; read into the fields of a run (SPEC 5).

Spans become ms and money micro-units, as in a Team file. Must not know what a run's limits are now.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.team.rules.amounts import EXPECTED_MONEY, EXPECTED_SPAN, MAX_NUMBER, money_micros, span_ms
from coordinator.wire.errors import InputFault

LIMITS = {
    "step_budget": "limit_step_budget",
    "max_steps": "limit_max_steps",
    "tokens": "limit_tokens",
    "cost": "limit_cost",
    "deadline": "limit_deadline_ms",
    "no_progress": "limit_no_progress_ms",
    "no_progress_steps": "limit_no_progress_steps",
}
"""The limits of a Team by name, and the fields of a run that hold them."""

Raise = tuple[str, int, bool]
"""The field of a limit, a value (ms, micro-units), and whether it is added to what stands."""


def read_raises(given: Mapping[str, int | str]) -> list[Raise]:
    """Reads limits to raise as people write them: `{"tokens": 300000, "cost": "+1.50", "deadline": "+10m"}`.

    Raises InputFault with every one that cannot be read.
    """
    faults: list[str] = []
    found: list[Raise] = []
    for name, written in ((name, str(value)) for name, value in given.items()):
        value, expected = _amount(name, written.removeprefix("+"))
        if name not in LIMITS:
            faults.append(f"{name[:80]}: no such limit; there are {', '.join(LIMITS)}")
        elif value is None:
            faults.append(f"{name}: expected {expected}, perhaps with a + in front, found {written[:80]!r}")
        else:
            found.append((LIMITS[name], value, written.startswith("+")))
    if faults:
        raise InputFault(faults)
    return found


def _amount(name: str, written: str) -> tuple[int | None, str]:
    if name == "cost":
        return money_micros(written), EXPECTED_MONEY
    whole = int(written) if written.isascii() and written.isdecimal() and len(written) < 17 else None
    if name in ("deadline", "no_progress"):
        return span_ms(written if whole is None else whole), EXPECTED_SPAN
    return (whole if whole is not None and whole <= MAX_NUMBER else None), "a whole number"
