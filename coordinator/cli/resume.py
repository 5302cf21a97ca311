"""Owns `crewline resume`: a parked run goes on, with limits raised (SPEC 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from coordinator.cli import options
from coordinator.cli.kept import Target, open_run
from coordinator.cli.people import client_of, settle
from coordinator.machine.reads import ReadRun
from coordinator.run_report.fields import money, number
from coordinator.run_report.wording import span
from coordinator.team.rules.raises import LIMITS, Raise, read_raises
from coordinator.wire.errors import InputFault


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("resume")(resume_run)


def resume_run(
    run: options.RunId,
    raises: Annotated[
        list[str] | None,
        typer.Option(
            "--raise",
            metavar="LIMIT=N",
            help=f"Raise a limit to N, or by +N: {', '.join(LIMITS)}. May be repeated.",
        ),
    ] = None,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Lets a parked run go on; prints its status after it. A run that still exceeds a limit parks again.

    A run that `crewline run` has kept is found in .crewline; go on with it by `crewline run --continue RUN`.
    """
    wanted = read_raises(_pairs(raises or ()))
    with open_run(run, redis, namespace) as target:
        _check(target, wanted)
        client = client_of(target)
        settle(client.resume(target.run, wanted, source=client.user()), json, run=target.run)


def _pairs(words: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, sign, amount = word.partition("=")
        if not sign or not name:
            raise InputFault(f"--raise {word}: expected LIMIT=N or LIMIT=+N, such as tokens=300000")
        if name in found:
            raise InputFault(f"--raise {name}: given twice")
        found[name] = amount
    return found


def _check(target: Target, wanted: Sequence[Raise]) -> None:
    """A limit that the run has not cannot be raised, and none is lowered. Raises InputFault."""
    record = target.place.machine.read(ReadRun(target.run))
    names = {field: name for name, field in LIMITS.items()}
    faults = []
    for field, value, is_added in wanted:
        stands = number(record, field)
        if stands is None:
            faults.append(f"--raise {names[field]}: the run has no such limit")
        elif not is_added and value < stands:
            faults.append(
                f"--raise {names[field]}: it is {_shown(field, stands)} already; it can only be raised"
            )
    if faults:
        raise InputFault(faults)


def _shown(field: str, value: int) -> str:
    if field == "limit_cost":
        return money(value) or ""
    return span(value) if field.endswith("_ms") else str(value)
