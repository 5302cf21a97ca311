"""Owns the Redis Functions library: joining the Lua files, hashing, loading, calling, and naming a failing line.

Must not know what a command means. The library's name and its functions' names carry 8 hex of the content hash, so
two versions stand side by side on one server (DESIGN 2).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from coordinator.machine.render import lua_table
from coordinator.wire.errors import MachineFault

LUA = Path(__file__).parent / "lua"


def sources() -> list[Path]:
    """The library's files in the order in which they are joined."""
    middle = [
        path for folder in ("rules", "commands", "reads") for path in sorted((LUA / folder).glob("*.lua"))
    ]
    return [LUA / "prelude.lua", *middle, LUA / "register.lua"]


@dataclass(frozen=True, slots=True)
class Library:
    """One version of the state machine. hash: 8 hex of its content. starts: first joined line of each file."""

    hash: str
    code: str
    starts: tuple[tuple[int, str], ...]

    @classmethod
    def build(cls) -> Library:
        """Joins the files that lie beside this module."""
        return _build()

    @property
    def prefix(self) -> str:
        """What stands before every function name."""
        return f"crewline_{self.hash}_"

    def load(self, redis: Redis) -> None:
        """Loads the library unless this very version is there. Raises MachineFault when it does not compile."""
        try:
            redis.function_load(self.code)
        except ResponseError as error:
            if "already exists" not in str(error):
                raise MachineFault(f"the library does not load: {self.locate(str(error))}") from error

    def locate(self, message: str) -> str:
        """Replaces the joined line of a Lua error by file and line."""

        def place(match: re.Match[str]) -> str:
            line = int(match[1])
            start, name = max(entry for entry in self.starts if entry[0] <= line)
            return f"{name}:{line - start + 1}:"

        return re.sub(r"@?user_function:(\d+)[:.]", place, message)

    def call(self, client: Any, ns: str, name: str, arguments: Sequence[Any]) -> Any:
        """One FCALL on a client or a pipeline."""
        return client.fcall(self.prefix + name, 1, ns, *arguments)

    def call_read(self, client: Any, ns: str, name: str, arguments: Sequence[Any]) -> Any:
        """One FCALL_RO: the server refuses any write."""
        return client.fcall_ro(self.prefix + name, 1, ns, *arguments)


@cache
def _build() -> Library:
    table = lua_table()
    parts: list[str] = []
    starts: list[tuple[int, str]] = []
    line = 2
    for path in sources():
        text = path.read_text() if path.name != "table.lua" else table
        starts.append((line, str(path.relative_to(LUA))))
        parts.append(text)
        line += text.count("\n") + (0 if text.endswith("\n") else 1)
    body = "".join(part if part.endswith("\n") else part + "\n" for part in parts)
    digest = hashlib.sha256(body.encode()).hexdigest()[:8]
    body = body.replace("@PREFIX@", f"crewline_{digest}_")
    return Library(digest, f"#!lua name=crewline_{digest}\n{body}", tuple(starts))
