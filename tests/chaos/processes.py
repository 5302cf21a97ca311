"""Owns real processes for one test: coordinators and workers on a given Redis, their logs, and handlers' own words.

Must not look into Redis otherwise than reads do. What happens is waited for in a run's history or in effects.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from redis import Redis

from coordinator.client import Client
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadEvents, ReadLeader, ReadMetrics, ReadRun, ReadTask
from coordinator.wire.channels import DEFAULT_NAMESPACE
from coordinator.wire.errors import MachineFault
from ops.chaos import handlers
from ops.chaos.checker import Execution
from ops.chaos.fleet import family
from ops.chaos.gather import read_effects
from tests.support.command import arguments, environment
from tests.support.waiting import until

ROLE = "clerk"
WAIT_S = 40.0
LEAD_TTL_S = 1.0


def team(tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A Team of one role whose tasks `play` unless they say otherwise; short leases, no backoff."""
    return {
        "team": "t",
        "roles": {ROLE: {"capabilities": ["play", "nap"]}},
        "defaults": {"heartbeat": "1s", "backoff": 0, "max_attempts": 2},
        "tasks": {
            name: task if task.get("external") else {"capability": "play", **task}
            for name, task in tasks.items()
        },
        **more,
    }


class Crew:
    """The processes of a test, in `folder`. url: where they find Redis, unless they are told otherwise."""

    def __init__(self, redis: Redis, url: str, folder: Path) -> None:
        self.redis, self.url = redis, url
        self.machine = Machine(redis, DEFAULT_NAMESPACE)
        self.machine.load()
        self._effects, self._logs = folder / "effects", folder / "logs"
        self._effects.mkdir()
        self._logs.mkdir()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    # -- processes -----------------------------------------------------------------------------------------

    def start(self, name: str, *words: str, url: str = "") -> subprocess.Popen[bytes]:
        """Starts `crewline WORDS`."""
        with (self._logs / name).open("ab") as log:
            process = subprocess.Popen(
                arguments(*words, "--redis", url or self.url),
                env=environment({handlers.FOLDER: str(self._effects)}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes[name] = process
        return process

    def coordinator(self, name: str = "coordinator", *options: str, url: str = "") -> subprocess.Popen[bytes]:
        """Starts a coordinator."""
        return self.start(name, "coordinator", "--lead-ttl", str(LEAD_TTL_S), *options, url=url)

    def worker(self, name: str, mode: str, *options: str, url: str = "") -> subprocess.Popen[bytes]:
        """Starts a worker; what it is to do may be submitted before it is there."""
        words = ("worker", "--role", ROLE, "--handlers", handlers.__file__, "--mode", mode, *options)
        return self.start(name, *words, url=url)

    def pids(self, name: str) -> list[int]:
        """A process and all below it."""
        return family(self.processes[name].pid)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends a signal to all of a process, as to a host."""
        for pid in self.pids(name):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def named(self, pid: int) -> str:
        """The name under which a process, or one above it, was started."""
        return next(name for name in self.processes if pid in self.pids(name))

    def log(self, name: str) -> str:
        """What a process has said so far."""
        return (self._logs / name).read_text()

    def close(self) -> None:
        """Kills everything."""
        for name, process in self.processes.items():
            self.signal(name, signal.SIGCONT)
            self.signal(name, signal.SIGKILL)
            process.wait()

    # -- runs ----------------------------------------------------------------------------------------------

    def submit(self, document: dict[str, Any], run: str = "r1", **inputs: Any) -> None:
        """Submits a run and has it accepted."""
        answer = Client(self.redis, answer_seconds=WAIT_S).submit(document, inputs, run)
        assert answer.status == "applied", answer

    def await_end(self, run: str = "r1", seconds: float = WAIT_S) -> str:
        """Waits until a run has ended; gives its status."""
        until(
            lambda: self.status(run) not in ("", "running"),
            f"{run} ends",
            seconds=seconds,
            ignore=(MachineFault,),
        )
        return self.status(run)

    def status(self, run: str = "r1") -> str:
        """A run's status now."""
        return str(self.machine.read(ReadRun(run)).get("status", ""))

    def task(self, task: str, run: str = "r1") -> dict[str, str]:
        """A task's record."""
        found: dict[str, str] = self.machine.read(ReadTask(run, task))
        return found

    def events(self, kind: str, run: str = "r1", task: str = "") -> list[dict[str, str]]:
        """Events of a kind, of a task if one is named."""
        found: list[dict[str, str]] = self.machine.read(ReadEvents(run, 0, 10_000))
        return [event for event in found if event["kind"] == kind and task in ("", event["task_id"])]

    def await_event(
        self, kind: str, run: str = "r1", task: str = "", seconds: float = WAIT_S
    ) -> dict[str, str]:
        """Waits for the first event of a kind."""
        return until(lambda: self.events(kind, run, task), f"{run} {task} {kind}", seconds=seconds)[0]

    def executions(self, run: str = "r1") -> list[Execution]:
        """What handlers wrote down about a run."""
        path = self._effects / f"{run}.jsonl"
        return read_effects(path) if path.exists() else []

    def await_began(self, task: str, attempt: int = 1, run: str = "r1") -> Execution:
        """Waits until a handler has begun."""
        return until(
            lambda: next((e for e in self.executions(run) if e.attempt_of == (run, task, attempt)), None),
            f"attempt {attempt} of {task} begins",
            seconds=WAIT_S,
        )  # type: ignore[return-value] # until gives what is true

    def metrics(self) -> dict[str, int]:
        """The counters."""
        return {name: int(value) for name, value in self.machine.read(ReadMetrics()).items()}

    def leader(self) -> str:
        """Who leads, by the name under which it was started; waits until somebody does."""

        def named() -> str:
            holder = self.machine.read(ReadLeader()).get("holder", "")
            pid = int(holder.split(":")[1]) if holder else 0
            return next((name for name, process in self.processes.items() if process.pid == pid), "")

        return until(named, "somebody leads", seconds=WAIT_S)
