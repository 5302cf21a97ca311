"""Owns `crewline worker`: the processes that run handlers for one or several roles.

Must not run a handler or talk to Redis beyond asking whether it is there: that is `workers`.
"""

from __future__ import annotations

import os
import re
import signal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli import options
from coordinator.cli.logs import configure_logs
from coordinator.wire.channels import ROLE_PATTERN
from coordinator.wire.connection import check_server, connect
from coordinator.wire.errors import InputFault

if TYPE_CHECKING:
    from workers.handlers import Handler


class Mode(StrEnum):
    """Where handlers run."""

    FORK = "fork"
    """In a child process for each attempt: it can be stopped hard, and a silent death is seen."""
    INLINE = "inline"
    """In the worker's own process, several at a time: for short or I/O-bound handlers."""


Artifacts = Annotated[
    str,
    typer.Option(
        envvar=options.ARTIFACTS_VARIABLE,
        metavar="URL",
        help="Where handlers keep artifacts: any fsspec URL.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("worker")(run_workers)


def run_workers(
    role: Annotated[list[str], typer.Option("--role", help="Role to work for. May be repeated.")],
    handlers: Annotated[
        str, typer.Option("--handlers", metavar="FILE_OR_MODULE", help="Where the @handler functions are.")
    ],
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, max=1000, help="Number of processes.")
    ] = 1,
    mode: Annotated[
        Mode, typer.Option(help="A child process for each attempt, or all in one process.")
    ] = Mode.FORK,
    prefetch: Annotated[
        int, typer.Option(min=1, max=1000, help="Attempts at a time in one process (inline mode).")
    ] = 16,
    drain_timeout: Annotated[
        float, typer.Option(min=0, help="Seconds that running handlers may go on after a signal to stop.")
    ] = 20.0,
    cancel_grace: Annotated[
        float, typer.Option(min=0, help="Seconds that a handler may go on after a cancel or a timeout.")
    ] = 5.0,
    artifacts: Artifacts = "",
    die_with_parent: Annotated[
        bool,
        typer.Option("--die-with-parent", help="End at once when the starting process is killed (Linux)."),
    ] = False,
) -> None:
    """Runs workers: they pop their roles' queues, ask for leases, run handlers and report.

    SIGTERM or Ctrl-C drains: nothing new is begun, running handlers may finish; a second one stops them.
    """
    from workers.modes.processes import die_with_parent as bind_to_parent
    from workers.supervisor import Supervisor
    from workers.worker import WorkerOptions, serve

    configure_logs()
    if die_with_parent:
        bind_to_parent(os.getppid(), signal.SIGKILL)
    url = options.address_of(redis)
    found = check(role, handlers, url)
    settings = WorkerOptions(
        tuple(dict.fromkeys(role)), namespace, mode.value, prefetch, drain_timeout, cancel_grace, artifacts
    )
    supervisor = Supervisor(lambda: serve(connect(url), found, settings), concurrency, hard=die_with_parent)
    raise typer.Exit(supervisor.run())


def check(roles: list[str], source: str, url: str) -> dict[str, Handler]:
    """All that can be checked before a worker starts; gives the handlers. Raises InputFault, Unreachable."""
    from workers.handlers import load_handlers

    for role in roles:
        if not re.fullmatch(ROLE_PATTERN, role):
            raise InputFault(f"--role {role}: not a role name (letters, digits, _ and single -)")
    found = load_handlers(source)
    if not found:
        raise InputFault(f"handlers: {source} has no @handler function")
    with connect(url) as client:
        check_server(client)
    return found
