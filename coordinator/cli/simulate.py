"""Owns `crewline simulate` (one deterministic run, or the exploration of many) and `crewline verify`.

Must not judge anything: the simulation plays, the report says why the run stopped, the verification compares.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer

from coordinator.cli.inputs import gather_inputs
from coordinator.cli.options import (
    DEFAULT,
    AsJson,
    InputFile,
    Inputs,
    Namespace,
    Output,
    RedisUrl,
    RunId,
    TeamFile,
    open_installation,
)
from coordinator.cli.output import emit, emit_json, say
from coordinator.run_report.build import build_report
from coordinator.run_report.encode import canonical_bytes
from coordinator.run_report.markdown import render_markdown
from coordinator.simulation.explore import Exploration, Finding, explore
from coordinator.simulation.playground import playground
from coordinator.simulation.scene import Scene, read_scene
from coordinator.simulation.simulate import simulate
from coordinator.simulation.verify import Verdict, verify
from coordinator.wire.errors import InputFault
from coordinator.wire.names import RunStatus

TOLD_EVERY = 100
"""Seeds between two lines of progress."""

Plan = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="Outcome plans by task, laid over those of the Team file."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides lease tokens, jitter and the run's id.")]
Explore = Annotated[
    int,
    typer.Option(
        "--explore",
        metavar="N",
        min=0,
        help="Try N seeds of interleavings and faults instead, and check the invariants.",
    ),
]
ExploreSeed = Annotated[
    int | None,
    typer.Option(
        "--explore-seed", metavar="S", min=0, help="Play one seed of an exploration again, with its trace."
    ),
]
AsMarkdown = Annotated[bool, typer.Option("--markdown", help="Write the report as Markdown.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command("simulate")(_simulate)
    app.command("verify")(_verify)


def _simulate(
    team: TeamFile,
    input: Inputs = None,
    input_file: InputFile = None,
    plan: Plan = None,
    seed: Seed = 0,
    explore: Explore = 0,
    explore_seed: ExploreSeed = None,
    output: Output = None,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
) -> None:
    """Play a team offline by its outcome plans: virtual clock, the same state machine, the same report each time."""
    exploring = explore > 0 or explore_seed is not None
    if as_markdown and (as_json or exploring):
        raise InputFault("--markdown is for the report of one simulated run, and not together with --json")
    _silence()
    scene = read_scene(team, gather_inputs(input, input_file), plan, seed)
    if exploring:
        seeds = range(explore) if explore_seed is None else range(explore_seed, explore_seed + 1)
        command = _command(team, input, input_file, plan, seed)
        raise typer.Exit(_explore(scene, seeds, command, output, as_json))
    with playground() as ground:
        report = build_report(simulate(ground.redis, scene))
    emit(render_markdown(report) if as_markdown else canonical_bytes(report), output)
    raise typer.Exit(0 if report["status"] == RunStatus.COMPLETED else 1)


def _silence() -> None:
    """What a simulated coordinator logs carries the time of this machine, and nobody watches it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _command(team: Path, pairs: Sequence[str] | None, file: Path | None, plan: Path | None, seed: int) -> str:
    """This command again, without what the exploration adds."""
    words = ["crewline", "simulate", str(team)]
    words += [word for pair in pairs or () for word in ("--input", pair)]
    words += ["--input-file", str(file)] if file else []
    words += ["--plan", str(plan)] if plan else []
    words += ["--seed", str(seed)] if seed else []
    return shlex.join(words)


def _explore(scene: Scene, seeds: range, command: str, output: Path | None, as_json: bool) -> int:
    def tell(played: int) -> None:
        if played % TOLD_EVERY == 0:
            say(f"{played} of {len(seeds)} seeds")

    with playground() as ground:
        outcome = explore(ground, scene, seeds, tell=tell)
    if as_json or output:
        emit_json(_exploration(outcome, command), output)
    else:
        emit(_summary(outcome))
    if outcome.finding:
        _say_finding(outcome.finding, command)
    return 1 if outcome.finding else 0


def _exploration(outcome: Exploration, command: str) -> dict[str, Any]:
    finding = outcome.finding
    return {
        "seeds": outcome.seeds,
        "choices": outcome.choices,
        "faults": dict(sorted(outcome.faults.items())),
        "statuses": dict(sorted(outcome.statuses.items())),
        "finding": finding
        and {
            "seed": finding.seed,
            "violations": [str(violation) for violation in finding.violations],
            "trace": list(finding.trace),
            "replay": _replay(finding, command),
        },
    }


def _summary(outcome: Exploration) -> str:
    lines = [f"{outcome.seeds} seeds, {outcome.choices} choices, {sum(outcome.faults.values())} faults"]
    lines += [f"  {name}: {count}" for name, count in sorted(outcome.faults.items())]
    lines += [f"  ended {name}: {count}" for name, count in sorted(outcome.statuses.items())]
    lines.append("an invariant was violated" if outcome.finding else "no violated invariant")
    return "\n".join(lines)


def _say_finding(finding: Finding, command: str) -> None:
    for line in finding.trace:
        say(f"  {line}")
    for violation in finding.violations:
        say(f"violated: {violation}")
    say(f"replay: {_replay(finding, command)}")


def _replay(finding: Finding, command: str) -> str:
    return f"{command} --explore-seed {finding.seed}"


def _verify(
    run: RunId, redis: RedisUrl = None, namespace: Namespace = DEFAULT, as_json: AsJson = False
) -> None:
    """Apply a run's recorded commands to an empty store, by the library that made them, and compare the end state."""
    installation = open_installation(redis, namespace)
    found = installation.find(run)
    with playground() as ground:
        result = verify(installation.machine, found, ground.empty)
    if as_json:
        emit_json(
            {"run": found, "verdict": result.verdict, "commands": result.commands, "differs": result.differs}
        )
    else:
        emit(f"{result.verdict}{f': {result.differs}' if result.differs else ''}")
    raise typer.Exit(0 if result.verdict is Verdict.EQUAL else 1)
