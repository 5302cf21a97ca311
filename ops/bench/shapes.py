"""Owns what is measured: three shapes of no-op work and their sizes. Must not know how any system does them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """name: as the drivers know it. count: what its size is given in. warm_up: the size of the round before."""

    name: str
    count: int
    warm_up: int
    label: str


def shapes(*, quick: bool) -> list[Shape]:
    """The shapes in the order of the table; `quick` ones are a tenth of the size."""
    scale = 10 if quick else 1
    sizes = [("independent", 2000, 100), ("diamonds", 200, 10), ("fan", 1000, 50)]
    labels = {
        "independent": "{} independent tasks",
        "diamonds": "{} diamonds of six",
        "fan": "fan-out and fan-in of {}",
    }
    return [Shape(name, n // scale, warm, labels[name].format(n // scale)) for name, n, warm in sizes]
