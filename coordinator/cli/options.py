"""Owns what the commands share: their options, the connection to an installation, and finding a run by its
prefix.

Must not print, and must not decide what a command does with what it gets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

import typer
from redis import Redis

from coordinator.client import LONGEST_RUN_ID, new_run_id
from coordinator.machine.machine import Machine
from coordinator.machine.reads import FindRuns
from coordinator.run_report.fields import MICROS
from coordinator.wire.channels import DEFAULT_NAMESPACE, ROLE_PATTERN
from coordinator.wire.connection import connect, guard
from coordinator.wire.errors import InputFault
from coordinator.wire.names import RunStatus
from coordinator.wire.reports import MAX_NUMBER

REDIS_VARIABLE = "CREWLINE_REDIS_URL"
NAMESPACE_VARIABLE = "CREWLINE_NAMESPACE"
ARTIFACTS_VARIABLE = "CREWLINE_ARTIFACTS"

RedisUrl = Annotated[
    str | None,
    typer.Option(
        "--redis",
        envvar=REDIS_VARIABLE,
        metavar="URL",
        help="Redis of the installation: redis://, rediss:// or unix://.",
    ),
]
Namespace = Annotated[
    str,
    typer.Option("--namespace", envvar=NAMESPACE_VARIABLE, help="Prefix of the installation's keys."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write to this file instead of the standard output."),
]
RunId = Annotated[
    str, typer.Argument(metavar="RUN", help="A run id, a unique prefix of one, or - for the latest.")
]
TeamFile = Annotated[Path, typer.Argument(metavar="TEAM", help="The Team file, YAML or JSON.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="k=v", help="An input of the run: k=text, or k:=JSON. May be repeated."),
]
InputFile = Annotated[
    Path | None,
    typer.Option("--input-file", metavar="FILE", help="The run's inputs as one JSON or YAML file."),
]
DEFAULT = DEFAULT_NAMESPACE


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation as a command sees it: its Redis, its namespace, its state machine."""

    redis: Redis
    namespace: str
    machine: Machine

    def find(self, prefix: str) -> str:
        """The id of the run that `prefix` means; raises InputFault when there is none, or more than one."""
        found: list[str] = self.machine.read(FindRuns(prefix=prefix))
        if len(found) == 1:
            return found[0]
        if prefix in found:
            return prefix
        if found:
            some = ", ".join(found[:5])
            raise InputFault(f"{prefix}: several runs begin so: {some}{' ...' if len(found) > 5 else ''}")
        raise InputFault("there is no run yet" if prefix == "-" else f"{prefix}: no such run")


def address_of(url: str | None) -> str:
    """The URL that was given; raises InputFault with what is missing when there is none."""
    url = url or os.environ.get(REDIS_VARIABLE)
    if not url:
        raise InputFault(f"which Redis? Give --redis URL, or set {REDIS_VARIABLE}")
    return url


def open_installation(url: str | None, namespace: str) -> Installation:
    """Connects, and makes sure that the state machine can be asked. Raises InputFault, Unreachable."""
    redis = connect(address_of(url))
    with guard(redis):
        redis.ping()
    machine = Machine(redis, namespace)
    machine.load()
    return Installation(redis, namespace, machine)


@contextmanager
def find_run(run: str, url: str | None, namespace: str) -> Iterator[tuple[Installation, str]]:
    """The run that is meant, to read of it: in the Redis that is named, else one that plays or was kept here.

    Raises InputFault when there is none, Unreachable.
    """
    if url or os.environ.get(REDIS_VARIABLE):
        place = open_installation(url, namespace)
        yield place, place.find(run)
        return
    from coordinator.cli.kept import open_run  # it stands on this module, and is slow to import

    with open_run(run, None, namespace, reads=True) as target:
        yield target.place, target.run


def run_id(given: str | None, team: str) -> str:
    """The id that was given, or a new one. Raises InputFault when it can be none."""
    if given is None:
        return new_run_id(team)
    if not re.fullmatch(ROLE_PATTERN, given) or len(given) > LONGEST_RUN_ID:
        raise InputFault(
            f"--id {given[:80]!r}: expected at most {LONGEST_RUN_ID} letters, digits, `_` and single `-`"
        )
    return given


def exit_code(status: str) -> int:
    """0 for a completed run, 1 for any other end and for a parked one (SPEC 9)."""
    return 0 if status == RunStatus.COMPLETED else 1


def micros(amount: str) -> int:
    """Exact decimal money in micro-units. Raises InputFault."""
    try:
        exact = Decimal(amount) * MICROS
    except InvalidOperation:
        raise InputFault(f"--cost {amount}: expected a decimal number such as 0.25") from None
    if not exact.is_finite() or exact < 0 or exact != exact.to_integral_value() or exact > MAX_NUMBER:
        raise InputFault(f"--cost {amount}: expected a decimal number such as 0.25, with at most six places")
    return int(exact)
