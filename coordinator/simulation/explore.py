"""Owns the exploration of interleavings and faults: one driven seed after another until an invariant breaks.

Must not know the rules of the machine: what must hold stands in `invariants`, what can go wrong in `faults`, who
chooses in `driver`. A failing seed is played again with `--explore-seed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from coordinator.simulation.exploration.driver import Driver
from coordinator.simulation.faults import FaultyMachine
from coordinator.simulation.invariants import Violation
from coordinator.simulation.playground import Playground
from coordinator.simulation.scene import Scene


@dataclass(frozen=True, slots=True)
class Finding:
    """A seed under which something did not hold. trace: what was chosen, one line for each choice."""

    seed: int
    violations: tuple[Violation, ...]
    trace: tuple[str, ...]


@dataclass(slots=True)
class Exploration:
    """What came of exploring some seeds. statuses: how the runs ended; finding: the first that failed, if any."""

    seeds: int = 0
    choices: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    finding: Finding | None = None


def explore(
    ground: Playground,
    scene: Scene,
    seeds: range,
    *,
    tell: Callable[[int], None] | None = None,
    machine_type: type[FaultyMachine] = FaultyMachine,
) -> Exploration:
    """Plays the scene under each seed until one fails.

    ground: emptied before each seed. tell: called with the number of seeds played. machine_type: for the tests of the
    exploration itself, one that is broken.
    """
    outcome = Exploration()
    for seed in seeds:
        ground.redis.flushdb()
        driver = Driver(ground, scene, seed, machine_type)
        violations = driver.play()
        outcome.seeds += 1
        outcome.choices += len(driver.trace)
        outcome.faults.update(driver.faults)
        outcome.statuses[driver.status] += 1
        if violations:
            outcome.finding = Finding(seed, tuple(violations), tuple(driver.trace))
            break
        if tell:
            tell(outcome.seeds)
    return outcome
