"""Owns the numbers of a benchmark run: medians, ratios, the table and the JSON. Must not start or measure anything."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from ops.bench.coordinator_rate import Rate
from ops.bench.shapes import Shape

BASE = "rq"
"""The peer that the ratios are against."""


@dataclass(slots=True)
class Results:
    """rates: peer -> shape -> tasks per second of each round. commands: peer -> shape -> client commands per task."""

    machine: dict[str, Any]
    rounds: int
    shapes: list[Shape]
    labels: dict[str, str]
    rates: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    commands: dict[str, dict[str, float]] = field(default_factory=dict)
    most_sent: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    coordinator: list[Rate] = field(default_factory=list)

    def rate(self, peer: str, shape: str) -> float:
        """Median tasks per second; 0 when nothing was measured."""
        return median(self.rates.get(peer, {}).get(shape) or [0.0])

    def write(self, path: Path) -> None:
        """Writes everything as JSON, medians and ratios included."""
        medians = {
            peer: {shape: round(self.rate(peer, shape), 1) for shape in by} for peer, by in self.rates.items()
        }
        document = {"schema": 1, "medians": medians, "ratios_to_rq": self._ratios(), **asdict(self)}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def print(self, console: Console) -> None:
        """Prints one table of rates and one line for each other figure."""
        table = Table(title=f"no-op tasks per second, median of {self.rounds} rounds")
        table.add_column("")
        for shape in self.shapes:
            table.add_column(shape.label, justify="right")
        ratios = self._ratios()
        for peer, label in self.labels.items():
            cells = []
            for shape in self.shapes:
                ratio = ratios.get(peer, {}).get(shape.name)
                text = f"{self.rate(peer, shape.name):,.0f}"
                cells.append(f"{text}  ({ratio:.1f}x RQ)" if ratio and peer != BASE else text)
            table.add_row(label, *cells)
        console.print(table)
        if self.commands:
            console.print(self._command_table())
        if self.coordinator:
            rate = median(each.rate for each in self.coordinator)
            ceiling = median(each.ceiling for each in self.coordinator)
            console.print(
                f"coordinator over a full inbox: {rate:,.0f} reports/s, "
                f"{rate / ceiling:.0%} of the pipelined ceiling of {ceiling:,.0f}/s"
            )

    def _command_table(self) -> Table:
        table = Table(title="Redis commands sent by clients per task")
        table.add_column("")
        for shape in self.shapes:
            table.add_column(shape.label, justify="right")
        for peer, label in self.labels.items():
            by = self.commands.get(peer, {})
            table.add_row(
                label, *(f"{by[shape.name]:.1f}" if shape.name in by else "-" for shape in self.shapes)
            )
        return table

    def _ratios(self) -> dict[str, dict[str, float]]:
        base = {shape.name: self.rate(BASE, shape.name) for shape in self.shapes}
        return {
            peer: {shape: round(self.rate(peer, shape) / base[shape], 2) for shape in by if base[shape]}
            for peer, by in self.rates.items()
        }
