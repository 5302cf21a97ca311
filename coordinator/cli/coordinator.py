"""Owns `crewline coordinator`: the process that holds the leases and applies every change (SPEC 9)."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli import options
from coordinator.cli.logs import configure_logs
from coordinator.runtime.leader import DEFAULT_TTL_MS
from coordinator.runtime.service import Service, Settings
from coordinator.wire.errors import InputFault

SHORTEST_TTL_SECONDS, LONGEST_TTL_SECONDS = 0.5, 3600.0


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("coordinator")(coordinator)


def coordinator(
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    lead_ttl: Annotated[
        float,
        typer.Option(
            "--lead-ttl",
            metavar="SECONDS",
            help="Length of the leader lease: so long after the leader's death a standby takes over.",
        ),
    ] = DEFAULT_TTL_MS / 1000,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve Prometheus metrics on this port.")
    ] = None,
    metrics_address: Annotated[str, typer.Option(help="Address on which metrics are served.")] = "127.0.0.1",
) -> None:
    """Leads the installation, or stands by until the leader is gone. Ends on SIGTERM."""
    if not SHORTEST_TTL_SECONDS <= lead_ttl <= LONGEST_TTL_SECONDS:
        raise InputFault(
            f"--lead-ttl {lead_ttl:g}: expected {SHORTEST_TTL_SECONDS:g} to {LONGEST_TTL_SECONDS:g} seconds"
        )
    configure_logs()
    settings = Settings(
        namespace=namespace,
        ttl_ms=round(lead_ttl * 1000),
        metrics_port=metrics_port,
        metrics_address=metrics_address,
    )
    Service(options.address_of(redis), settings).run()
