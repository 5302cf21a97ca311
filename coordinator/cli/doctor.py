"""Owns `doctor` and `health`: how an installation stands, for people and for container health checks (SPEC 9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from redis import Redis

from coordinator.cli import options
from coordinator.cli.output import emit, emit_json, say
from coordinator.run_report.wording import clean
from coordinator.runtime.inspection import WARNING, Finding, inspect, living_workers, unhealthy
from coordinator.wire.connection import check_server, connect
from coordinator.wire.errors import InputFault

SHADOWS = ("coordinator", "workers")
"""Names of our packages; a file of that name in the folder of a user's handlers would be imported instead."""
SIGNS = {"ok": "ok     ", "warning": "WARNING", "fault": "FAULT  "}


class Process(StrEnum):
    """What kind of process asks for its health."""

    COORDINATOR = "coordinator"
    """Healthy when the state machine answers and somebody leads: this one, or the one that it stands by for."""
    WORKER = "worker"
    """Healthy when a worker of this host has said lately that it lives, and somebody leads."""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("doctor")(doctor)
    app.command("health")(health)


def doctor(
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Says how an installation stands: Redis, leader, roles and their workers, runs that are stuck, what lies about."""
    with connect(options.address_of(redis)) as client:
        found = inspect(client, namespace)
    found.findings += shadows(Path.cwd())
    if not Path("crewline.yaml").exists():
        found.findings.append(
            Finding(WARNING, "config", "there is no crewline.yaml here: what a Team says of its roles holds")
        )
    if json:
        emit_json({**found.facts, "findings": [asdict(finding) for finding in found.findings]}, output)
        return
    lines = [f"{SIGNS[one.level]}  {one.about:8}  {clean(one.text, 300)}" for one in found.findings]
    emit("\n".join(lines), output)


def shadows(folder: Path) -> Iterator[Finding]:
    """Warns of files whose names hide our packages from Python when it is started in their folder."""
    for name in SHADOWS:
        path = folder / f"{name}.py"
        if path.is_file():
            yield Finding(WARNING, "imports", f"{path} hides Crewline's package {name}: give it another name")


def health(
    process: Annotated[
        Process, typer.Argument(help="Which kind of process is asked about.")
    ] = Process.COORDINATOR,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
) -> None:
    """For health checks: exits with 0 when all is well, with 1 when not, with 3 when Redis cannot be reached."""
    with connect(options.address_of(redis), socket_timeout=5) as client:
        why = _why_not(client, namespace, process)
    if why:
        say(f"unhealthy: {why}")
        raise typer.Exit(1)
    emit("healthy")


def _why_not(client: Redis, namespace: str, process: Process) -> str:
    try:
        check_server(client)
    except InputFault as fault:
        return str(fault)
    if why := unhealthy(client, namespace):
        return why
    return _no_worker_here(client, namespace) if process is Process.WORKER else ""


def _no_worker_here(client: Redis, namespace: str) -> str:
    from workers.worker import worker_name

    host = worker_name().split(".")[0]
    names = living_workers(client, namespace)
    return (
        "" if any(name.split(".")[0] == host for name in names) else f"no worker of this host ({host}) lives"
    )
