"""Owns the Redis of a chaos run: private, real, every write on disk before it is answered; it can be ended and killed.

Must not be reached by the processes but through the proxy: that is where they lose it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from redis import Redis

from coordinator.embedded import EmbeddedRedis
from coordinator.wire.connection import connect

OPTIONS = {
    "appendfsync": "always",
    "auto-aof-rewrite-percentage": "0",  # the file stays the whole journal of what was written
    "timeout": "0",
}


class Store:
    """The server, started in `folder`. moved: told the path of the socket each time there is a new server."""

    def __init__(self, folder: Path, moved: Callable[[str], None] | None = None) -> None:
        self.folder = folder
        self.moved = moved
        self._start()

    def client(self) -> Redis:
        """A client of the present server, past the proxy."""
        return connect(self._server.url)

    @property
    def socket(self) -> str:
        """Path of the present server's socket."""
        return unquote(urlsplit(self._server.url).path)

    def restart(self, *, killed: bool) -> None:
        """Ends the server (killed: as kill -9 does) and starts another one on its data."""
        if killed:
            with self.client() as client:
                pid = int(client.info("server")["process_id"])
            os.kill(pid, signal.SIGKILL)
        self._server.stop()
        self._start()

    def stop(self) -> None:
        """Ends it; its data stays."""
        self._server.stop()

    def _start(self) -> None:
        self._server = EmbeddedRedis(persist_dir=self.folder, options=OPTIONS)
        if self.moved is not None:
            self.moved(self.socket)
