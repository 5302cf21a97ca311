"""Owns the time line of a run's attempts: which bar stands where, for the template that writes it as SVG. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.run_report.wording import clean, span

MOST_ROWS = 40
LABEL, WIDTH, ROW = 170, 900, 24
LEAST_BAR = 2.0
STEPS_MS = (10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000)
MOST_MARKS = 8
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Bar:
    """A span of one attempt. outcome: how it ended, `queued` while it waited, `running` while it lasts."""

    x: float
    width: float
    row: int
    outcome: str
    title: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """rows: task names; marks: (x, text) of the axis; more: tasks that did not fit."""

    rows: tuple[str, ...]
    bars: tuple[Bar, ...]
    marks: tuple[tuple[float, str], ...]
    more: int

    @property
    def height(self) -> int:
        """Of the whole drawing."""
        return (len(self.rows) + 1) * ROW + 6


def time_line(tasks: Mapping[str, Mapping[str, Any]], begin: int, end: int) -> Timeline:
    """The attempts of a report's tasks between two times (ms), in the order in which they were first queued."""
    active = sorted(
        (name for name, task in tasks.items() if task["attempts"]),
        key=lambda name: (_begun(tasks[name]["attempts"][0], begin), tasks[name]["index"]),
    )
    length = max(end - begin, 1)
    bars: list[Bar] = []
    for row, name in enumerate(active[:MOST_ROWS]):
        for attempt in tasks[name]["attempts"]:
            bars.extend(_bars(name, attempt, row, begin, length))
    rows = tuple(clean(name, 24) for name in active[:MOST_ROWS])
    return Timeline(rows, tuple(bars), tuple(_marks(length)), max(len(active) - MOST_ROWS, 0))


def _begun(attempt: Mapping[str, Any], default: int) -> int:
    found: int = attempt["queued_at"] or attempt["started_at"] or default
    return found


def _bars(name: str, attempt: Mapping[str, Any], row: int, begin: int, length: int) -> Iterator[Bar]:
    queued, started = attempt["queued_at"], attempt["started_at"]
    over = attempt["ended_at"] or begin + length
    outcome = attempt["outcome"] or ("running" if started else "queued")
    who = f", {clean(attempt['worker'], 60)}" if attempt["worker"] else ""
    said = f"{clean(name, 80)}, attempt {attempt['number']}{who}: {outcome.replace('_', ' ')}"
    if queued is not None:
        until = started if started is not None else over
        shown = "queued" if started is not None else outcome
        yield _bar(
            queued, until, row, "queued", f"{said}, {shown} after {span(until - queued)}", begin, length
        )
    if started is not None:
        yield _bar(started, over, row, outcome, f"{said}, {span(over - started)}", begin, length)


def _bar(start: int, end: int, row: int, outcome: str, title: str, begin: int, length: int) -> Bar:
    scale = (WIDTH - LABEL) / length
    x = LABEL + max(start - begin, 0) * scale
    width = min(max((end - start) * scale, LEAST_BAR), WIDTH - x) if x < WIDTH else LEAST_BAR
    return Bar(round(min(x, WIDTH - LEAST_BAR), 2), round(width, 2), row, outcome, title)


def _marks(length: int) -> Iterator[tuple[float, str]]:
    step = next((step for step in STEPS_MS if length / step <= MOST_MARKS), DAY_MS)
    step = max(step, length // MOST_MARKS // DAY_MS * DAY_MS)
    for at in range(0, length + 1, step):
        x = LABEL + at * (WIDTH - LABEL) / length
        if x <= WIDTH - 40:
            yield round(x, 2), span(at) if at else "0"
