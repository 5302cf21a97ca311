"""Owns the Redis server of the benchmark: private, on TCP, without persistence, the same one for every system.

Must not be used for anything else: it is emptied between two measurements.
"""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from coordinator.embedded import find_server

START_SECONDS = 5.0
MONITOR_LINE = re.compile(rb'^\+[\d.]+ \[\d+ (\S+)\] "((?:[^"\\]|\\.)*)"')


class Server:
    """A running server; a context manager that ends it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="crewline-bench-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        command = [
            str(find_server()),
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        self._process = subprocess.Popen(
            [*command, "--dir", self._folder.name, "--logfile", str(Path(self._folder.name) / "log")]
        )
        self.redis = Redis(port=self.port)
        self._wait()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def version(self) -> str:
        info = self.redis.info("server")
        return str(info.get("valkey_version") or info["redis_version"])

    def empty(self) -> None:
        """Removes all data, libraries included."""
        self.redis.flushall()
        self.redis.execute_command("FUNCTION", "FLUSH")

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.redis.close()
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    def _wait(self) -> None:
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                self.redis.ping()
                return
            except RedisConnectionError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise
                time.sleep(0.01)


class ClientCommands:
    """Counts the commands that clients send while it is open, by MONITOR; what Lua calls inside is left out.

    `INFO commandstats` cannot tell the two apart. `ignored`: addresses of connections whose commands do not count.
    """

    def __init__(self, port: int, ignored: set[str]) -> None:
        self.counts: Counter[str] = Counter()
        self._ignored = {address.encode() for address in ignored}
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.sendall(b"MONITOR\r\n")
        self._reader = self._socket.makefile("rb")
        self._reader.readline()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> ClientCommands:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.sendall(b"QUIT\r\n")  # the server sends what it still has, then closes
        self._thread.join(timeout=30)
        self._reader.close()
        self._socket.close()

    def _read(self) -> None:
        for line in self._reader:
            match = MONITOR_LINE.match(line)
            if match and match[1] != b"lua" and match[1] not in self._ignored:
                self.counts[match[2].decode("ascii", "replace").lower()] += 1
