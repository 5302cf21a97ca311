"""Owns how the server listens: one process, no banner, no access log (paths hold run ids), streams that end in time."""

from __future__ import annotations

from socket import socket

import uvicorn
from fastapi import FastAPI

GRACE_SECONDS = 3
"""How long open requests, event streams among them, may take when the server is told to end."""


class Listener:
    """The server of an application. proxies: addresses whose X-Forwarded headers count."""

    def __init__(self, app: FastAPI, proxies: str | None = None) -> None:
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                lifespan="off",
                access_log=False,
                log_level="warning",
                server_header=False,
                proxy_headers=proxies is not None,
                forwarded_allow_ips=proxies or "",
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )

    def run(self, at: socket) -> None:
        """Serves on a bound socket until `stop` or, in the main thread, SIGTERM or SIGINT."""
        self._server.run(sockets=[at])

    def stop(self) -> None:
        """Ends it, soon."""
        self._server.should_exit = True
