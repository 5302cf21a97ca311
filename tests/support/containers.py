"""Owns the Redis container of the system tests: persistent, on an address that survives its restart.

Must not be used without a Docker daemon (marker `container`). The image is the one that compose.yaml names; where no
registry can be reached, `ops/docker/build --local` makes it.
"""

from __future__ import annotations

import os
import socket
from types import TracebackType
from typing import Self

from redis.exceptions import ConnectionError
from testcontainers.community.redis import RedisContainer

from coordinator.wire.connection import connect
from tests.support.waiting import until

IMAGE = os.environ.get("CREWLINE_REDIS_IMAGE", "redis:7.0-bookworm")
COMMAND = "redis-server --appendonly yes --appendfsync always --protected-mode no"


class RedisInContainer:
    """A Redis with an append-only file in a container of its own; `stop` and `start` keep data and address."""

    def __init__(self) -> None:
        """Chooses a free port of the loopback: Docker would choose another one at each start."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        self.url = f"redis://127.0.0.1:{port}"
        self._container = RedisContainer(IMAGE).with_bind_ports(6379, port).with_command(COMMAND)

    def stop(self) -> None:
        """Ends the server as Docker does: SIGTERM, then SIGKILL."""
        self._container.get_wrapped_container().stop()

    def kill(self) -> None:
        """Ends the server at once, as a power cut would."""
        self._container.get_wrapped_container().kill()

    def start(self) -> None:
        """Starts it again and waits until it has loaded its data."""
        self._container.get_wrapped_container().start()
        client = connect(self.url)
        until(client.ping, "the Redis container answers", ignore=(ConnectionError,))
        client.close()

    def __enter__(self) -> Self:
        self._container.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._container.stop()
