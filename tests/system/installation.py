"""Owns a real installation for a test: Redis in a container, a coordinator and workers as processes, their logs.

Must not look into Redis otherwise than users and operators do. What happens is waited for in a run's history.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from redis import Redis

from coordinator.client import Client
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadRun
from coordinator.machine.snapshot import snapshot
from coordinator.run_report import RunReport, build_report
from coordinator.wire.channels import DEFAULT_NAMESPACE
from coordinator.wire.connection import connect
from tests.support.command import arguments, environment
from tests.support.containers import RedisInContainer
from tests.support.waiting import until
from tests.system.handlers import FOLDER

HANDLERS = Path(__file__).with_name("handlers.py")
SLICE_MS = 1_000
WAIT_SECONDS = 60.0


class Installation:
    """Running from entering to leaving. folder: for logs and what handlers leave behind."""

    def __init__(self, folder: Path, roles: tuple[str, ...]) -> None:
        self.server = RedisInContainer()
        self.effects = folder / "effects"
        self._logs = folder / "logs"
        self._roles = roles
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *words: str) -> None:
        """Starts `crewline WORDS` on the installation's Redis."""
        with (self._logs / name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                arguments(*words, "--redis", self.server.url),
                env=environment({FOLDER: str(self.effects)}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_worker(self, name: str, *options: str) -> None:
        """Starts a worker for all roles."""
        roles = [word for role in self._roles for word in ("--role", role)]
        self.start(name, "worker", *roles, "--handlers", str(HANDLERS), *options)

    def log(self, name: str) -> str:
        """What a process has said so far."""
        return (self._logs / name).read_text()

    def await_log(self, words: str, *names: str, times: int = 1) -> None:
        """Waits until each of the processes has said the words so many times."""
        for name in names:
            until(lambda name=name: self.log(name).count(words) >= times, f"{name} says {words!r}")

    def submit(self, team: dict[str, Any], run: str, **inputs: Any) -> None:
        """Submits a run and has it accepted."""
        answer = Client(self.redis, answer_seconds=WAIT_SECONDS).submit(team, inputs, run)
        assert answer.status == "applied", answer

    def await_events(self, run: str, kind: str, count: int = 1) -> None:
        """Waits in a run's history for so many events of a kind, from its beginning on."""
        last, quiet_ms = "0", 0
        client: Any = self.redis
        while quiet_ms < WAIT_SECONDS * 1_000:
            read = client.xread({f"{DEFAULT_NAMESPACE}:history:{run}": last}, count=1_000, block=SLICE_MS)
            quiet_ms = 0 if read else quiet_ms + SLICE_MS
            for entry, event in read[0][1] if read else []:
                last = entry
                count -= event[b"kind"] == kind.encode()
                if count <= 0:
                    return
        raise AssertionError(f"{run} does not get on: {self.machine.read(ReadRun(run))}\n{self._tails()}")

    def report(self, run: str) -> RunReport:
        """A run's report."""
        found = snapshot(self.machine, run)
        assert found, run
        return build_report(found)

    def lines(self, run: str) -> list[tuple[str, int]]:
        """Task and attempt of every handler that ran, in order."""
        pairs = (line.split() for line in (self.effects / run).read_text().splitlines())
        return [(task, int(attempt)) for task, attempt in pairs]

    def stop(self) -> dict[str, int]:
        """Ends all processes as a supervisor would, workers first; gives their exit codes."""
        codes = {}
        for name in reversed(list(self._processes)):
            process = self._processes.pop(name)
            process.send_signal(signal.SIGTERM)
            codes[name] = process.wait(WAIT_SECONDS)
        return codes

    def _tails(self) -> str:
        return "\n".join(self._tail())

    def _tail(self) -> Iterator[str]:
        for path in sorted(self._logs.iterdir()):
            yield f"--- {path.name}"
            yield from path.read_text().splitlines()[-10:]

    def __enter__(self) -> Self:
        self.effects.mkdir(parents=True)
        self._logs.mkdir()
        self.server.__enter__()
        self.redis: Redis = connect(self.server.url)
        self.machine = Machine(self.redis)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.redis.close()
        self.server.__exit__(kind, error, trace)
