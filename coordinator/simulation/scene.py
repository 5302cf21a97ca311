"""Owns what a simulation is played from: a Team, its inputs, the plan of every task, the seed.

Must not play anything. The seed decides the run's id, and with it lease tokens and jitter; the plan of a task is that
of the Team file, or of the overlay that `simulate --plan` names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from coordinator.simulation.actors.script import Script, TaskScript
from coordinator.simulation.exploration.graph_view import GraphView, Needs
from coordinator.team.compile import document_text
from coordinator.team.loader import load_plans, load_team
from coordinator.team.models import Team
from coordinator.team.payloads import check_inputs
from coordinator.wire.bindings import BadReference, Reference, SourceKind, parse_reference, references
from coordinator.wire.channels import DEFAULT_NAMESPACE
from coordinator.wire.outcome_plan import OutcomePlan


@dataclass(frozen=True, slots=True)
class Scene:
    """One simulation before it is played. inputs: as the user gave them, without defaults."""

    team: Team
    inputs: Mapping[str, Any]
    script: Script
    graph: GraphView
    seed: int = 0
    namespace: str = DEFAULT_NAMESPACE

    @property
    def run(self) -> str:
        """The run's id."""
        return f"sim-{self.seed}"

    @property
    def documents(self) -> tuple[str, str]:
        """Team and inputs as a submit carries them; the order of the file is kept, because it decides."""
        inputs = json.dumps(self.inputs, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return document_text(self.team), inputs

    def tokens(self) -> Callable[[], str]:
        """A source of lease tokens; the same for the same seed."""
        numbers = count(1)
        return lambda: hashlib.sha256(f"{self.seed}/{next(numbers)}".encode()).hexdigest()[:32]


def read_scene(team: Path, inputs: Mapping[str, Any], plan: Path | None = None, seed: int = 0) -> Scene:
    """Reads the Team file, which may have a cycle, and the overlay. Raises InputFault with every fault."""
    loaded = load_team(team, allow_cycle=True)
    check_inputs(loaded, inputs)
    return make_scene(loaded, inputs, load_plans(plan, loaded) if plan else {}, seed)


def make_scene(
    team: Team, inputs: Mapping[str, Any], plans: Mapping[str, OutcomePlan] | None = None, seed: int = 0
) -> Scene:
    """A scene from a checked Team. plans: laid over those of the Team."""
    return Scene(team, inputs, _script(team, plans or {}), _graph(team), seed)


def _script(team: Team, plans: Mapping[str, OutcomePlan]) -> Script:
    tasks = {
        name: TaskScript(
            plan=plans.get(name, task.outcome_plan),
            external=task.external,
            key=task.idempotency_key or "",
            output_schema=task.output_schema,
        )
        for name, task in team.tasks.items()
    }
    for reference, is_list in _reads(team):
        if reference.kind is SourceKind.RESULT and reference.name in tasks:
            places = tasks[reference.name].listed if is_list else tasks[reference.name].read
            places.add(reference.at)
    return Script(tasks)


def _reads(team: Team) -> Iterator[tuple[Reference, bool]]:
    """Every place of a result that the Team reads, and whether it must be a list."""
    for task in team.tasks.values():
        for _, reference in references(task.input):
            if not isinstance(reference, BadReference):
                yield reference, False
        if task.for_each:
            yield parse_reference({"from": task.for_each.source, "at": task.for_each.at}), True


def _graph(team: Team) -> GraphView:
    return GraphView(
        {
            name: Needs(
                requires=tuple(task.requires),
                after=tuple(task.after),
                any_of=tuple(task.any_of.tasks) if task.any_of else (),
                any_count=task.any_of.count if task.any_of else 0,
                skipped_ok=task.skipped_ok,
            )
            for name, task in team.tasks.items()
        }
    )
