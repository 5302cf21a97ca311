"""Owns the TCP proxy between the processes and Redis: one listener for each process, so that a fault may hit one alone.

It can delay, swallow without a word (as a cut cable does: no RST), cut, and lose one reply. A gate sees every single
command of a listener, for the kill sweep. Must not understand commands, and must not choose when a fault happens.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

CHUNK = 65_536


class Gate(Enum):
    """What becomes of a command. The call-back is called in the proxy's thread."""

    PASS = auto()
    """It goes through."""
    HOLD = auto()
    """It never reaches Redis; the connection is dead from here on."""
    LOSE_REPLY = auto()
    """It reaches Redis and is done; its answer and everything later are lost."""


Judge = Callable[[bytes], Gate]
"""Sees one whole command as it stands on the wire."""


@dataclass(eq=False)
class _Connection:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    silent: bool = False
    """Both directions are swallowed; nobody is told."""

    def abort(self) -> None:
        self.client.transport.abort()
        self.server.transport.abort()


@dataclass(eq=False)
class _Listener:
    name: str
    server: asyncio.Server
    delay_s: float = 0.0
    deaf: bool = False
    """New connections are silent from their beginning."""
    loses: int = 0
    """Replies that are still to be lost."""
    judge: Judge | None = None
    connections: set[_Connection] = field(default_factory=set)


class Proxy:
    """Runs from entering to leaving, in a thread of its own. target: path of Redis' Unix socket; it may be changed."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._listeners: dict[str, _Listener] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- listeners and faults ------------------------------------------------------------------------------

    def url(self, name: str) -> str:
        """The address for the process of that name; opens its listener the first time."""
        if name not in self._listeners:
            self._run(self._listen(name))
        port = self._listeners[name].server.sockets[0].getsockname()[1]
        return f"redis://127.0.0.1:{port}"

    def delay(self, name: str, seconds: float) -> None:
        """From now on every chunk of that process waits so long; 0: none."""
        self._listeners[name].delay_s = seconds

    def swallow(self, name: str, *, deaf: bool = False) -> None:
        """Its present connections hear and say nothing any more, without a word; with `deaf` new ones as well."""
        self._run(self._swallow(name, deaf))

    def cut(self, name: str) -> None:
        """Resets its present connections."""
        self._run(self._cut(name))

    def lose_reply(self, name: str) -> None:
        """The next thing that Redis says to that process is lost, and the connection with it."""
        self._listeners[name].loses += 1

    def heal(self, name: str) -> None:
        """No fault any more; connections that were silent are reset."""
        self._run(self._heal(name))

    def judge(self, name: str, judge: Judge | None) -> None:
        """Has every command of that process judged."""
        self.url(name)
        self._listeners[name].judge = judge

    # -- in the proxy's thread -----------------------------------------------------------------------------

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _listen(self, name: str) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(self._listeners[name], reader, writer)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._listeners[name] = _Listener(name, server)

    async def _serve(
        self, listener: _Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            answers, server = await asyncio.open_unix_connection(self.target)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(writer, server, silent=listener.deaf)
        listener.connections.add(connection)
        try:
            with suppress(OSError, asyncio.CancelledError):  # canceled when the proxy closes
                await asyncio.gather(
                    self._up(listener, connection, reader), self._down(listener, connection, answers)
                )
        finally:
            listener.connections.discard(connection)
            connection.abort()

    async def _up(self, listener: _Listener, connection: _Connection, reader: asyncio.StreamReader) -> None:
        commands = Commands()
        while chunk := await reader.read(CHUNK):
            if listener.delay_s:
                await asyncio.sleep(listener.delay_s)
            if connection.silent:
                continue
            if listener.judge is None:
                connection.server.write(chunk)
                await connection.server.drain()
                continue
            for command in commands.feed(chunk):
                verdict = Gate.HOLD if connection.silent else listener.judge(command)
                if verdict is not Gate.PASS:
                    connection.silent = True
                if verdict is not Gate.HOLD:
                    connection.server.write(command)
        if not connection.silent:
            connection.server.transport.abort()

    async def _down(
        self, listener: _Listener, connection: _Connection, answers: asyncio.StreamReader
    ) -> None:
        while chunk := await answers.read(CHUNK):
            if listener.delay_s:
                await asyncio.sleep(listener.delay_s)
            if connection.silent:
                continue
            if listener.loses:
                listener.loses -= 1
                connection.abort()
                return
            connection.client.write(chunk)
            await connection.client.drain()
        if not connection.silent:
            connection.client.transport.abort()

    async def _swallow(self, name: str, deaf: bool) -> None:
        listener = self._listeners[name]
        listener.deaf = deaf
        for connection in listener.connections:
            connection.silent = True

    async def _cut(self, name: str) -> None:
        for connection in list(self._listeners[name].connections):
            connection.abort()

    async def _heal(self, name: str) -> None:
        listener = self._listeners[name]
        listener.delay_s, listener.deaf, listener.loses = 0.0, False, 0
        for connection in list(listener.connections):
            if connection.silent:
                connection.abort()

    async def _close(self) -> None:
        for listener in self._listeners.values():
            listener.server.close()
            for connection in list(listener.connections):
                connection.abort()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class Commands:
    """Cuts what a client says into whole commands."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The commands that are complete now."""
        self._buffer += chunk
        found = []
        while end := _end_of_command(self._buffer):
            found.append(self._buffer[:end])
            self._buffer = self._buffer[end:]
        return found


def _end_of_command(data: bytes) -> int:
    """Where the first command of `data` ends; 0 while it is not complete."""
    line = data.find(b"\r\n")
    if line < 0:
        return 0
    at = line + 2
    for _ in range(int(data[1:line])):
        line = data.find(b"\r\n", at)
        if line < 0:
            return 0
        at = line + 2 + int(data[at + 1 : line]) + 2
    return at if at <= len(data) else 0


def words(command: bytes) -> list[bytes]:
    """The arguments of a command as it stands on the wire."""
    found, at = [], command.find(b"\r\n") + 2
    while at < len(command):
        line = command.find(b"\r\n", at)
        size = int(command[at + 1 : line])
        found.append(command[line + 2 : line + 2 + size])
        at = line + 2 + size + 2
    return found
