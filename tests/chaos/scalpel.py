"""Owns a Redis client that ends its process, or loses an answer, at one chosen command of all that it sends.

Every command counts: those of a pipeline and of a transaction one by one, in the order in which Redis does them. Must
not know what the commands are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redis import ConnectionPool, Redis
from redis.connection import UnixDomainSocketConnection
from redis.exceptions import ConnectionError, ResponseError

from ops.chaos.proxy import Commands, words


class Killed(BaseException):
    """The process ended here; nothing of it may catch that."""


class Scalpel:
    """What one client has sent so far, and where it is cut.

    dies_after: it dies when Redis has done so many of its commands. loses: the answer to this one (from 0) never comes.
    """

    def __init__(self, *, dies_after: int | None = None, loses: int | None = None) -> None:
        self.dies_after, self.loses = dies_after, loses
        self.sent: list[str] = []
        self.batches: list[int] = []
        """With which command each thing that was sent at once began."""
        self.cut = False

    def client(self, socket: str) -> Redis:
        """A client of the server on that socket, under this scalpel."""
        scalpel = self

        class Connection(UnixDomainSocketConnection):
            def send_command(self, *args: Any, **_: Any) -> None:
                self.send_packed_command(self.pack_command(*args))  # type: ignore[no-untyped-call] # redis-py leaves it untyped

            def send_packed_command(self, command: Any, check_health: bool = True) -> None:
                frames = Commands().feed(b"".join(command))
                left = scalpel.take(frames)
                if left is None:
                    super().send_packed_command(command, check_health=False)  # type: ignore[no-untyped-call] # redis-py leaves it untyped
                    return
                super().send_packed_command(frames[:left], check_health=False)  # type: ignore[no-untyped-call] # redis-py leaves it untyped
                self._hear(left)
                self.disconnect()  # type: ignore[no-untyped-call] # redis-py leaves it untyped
                if scalpel.dies_after is not None:
                    raise Killed
                raise ConnectionError("the answer was lost")

            def _hear(self, answers: int) -> None:
                """Redis has surely done what it has answered."""
                for _ in range(answers):
                    try:
                        self.read_response()
                    except ResponseError:
                        continue

        pool = ConnectionPool(connection_class=Connection, path=socket, protocol=2)
        return Redis(connection_pool=pool)

    def take(self, frames: list[bytes]) -> int | None:
        """Counts commands; None to send them all, else how many are still sent before the cut."""
        before = len(self.sent)
        self.batches.append(before)
        self.sent += [_name(frame) for frame in frames]
        if self.cut:
            return None
        if self.dies_after is not None and len(self.sent) > self.dies_after:
            self.cut = True
            return self.dies_after - before
        if self.loses is not None and len(self.sent) > self.loses:
            self.cut = True
            return len(frames)
        return None


def _name(frame: bytes) -> str:
    """The command's name, and the function's."""
    name, *rest = words(frame)
    parts: Iterable[bytes] = (name, rest[0]) if name.upper().startswith(b"FCALL") else (name,)
    return " ".join(part.decode() for part in parts)
