"""Owns `crewline coordinator`: the process that holds the leases and applies every change (SPEC 9)."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import structlog
import typer

from coordinator.cli import options
from coordinator.runtime.leader import DEFAULT_TTL_MS
from coordinator.runtime.service import Service, Settings
from coordinator.wire.errors import InputFault

SHORTEST_TTL_MS = 1_000


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("coordinator")(coordinator)


def coordinator(
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    lead: Annotated[
        int,
        typer.Option(
            "--lead", metavar="MS", help="Length of the leader lease; a standby takes over after it."
        ),
    ] = DEFAULT_TTL_MS,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve Prometheus metrics on this port.")
    ] = None,
    metrics_address: Annotated[str, typer.Option(help="Address on which metrics are served.")] = "127.0.0.1",
) -> None:
    """Leads the installation, or stands by until the leader is gone. Ends on SIGTERM."""
    if lead < SHORTEST_TTL_MS:
        raise InputFault(f"--lead {lead}: expected at least {SHORTEST_TTL_MS} ms")
    configure_logs()
    settings = Settings(
        namespace=namespace, ttl_ms=lead, metrics_port=metrics_port, metrics_address=metrics_address
    )
    Service(options.address_of(redis), settings).run()


def configure_logs() -> None:
    """Structured logs, one JSON object a line, on the standard error."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
