"""Owns the systems side by side: how each one's processes are started, asked and ended.

Must not measure: the drivers do, each one the same span, from before the first submit to after the last end.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ops.bench.shapes import Shape

HERE = Path(__file__).resolve().parent
DRIVERS = HERE / "drivers"
ROOT = HERE.parent.parent
STOP_SECONDS = 10
MEASURE_SECONDS = 300
"""Longest that one shape may take."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A system in one setting. processes: command lines that run beside the driver; URL is put in for `{url}`."""

    name: str
    label: str
    python: str
    driver: tuple[str, ...]
    processes: tuple[tuple[str, ...], ...]


def crewline_peer(prefetch: int) -> Peer:
    """A coordinator and two inline workers that take up to `prefetch` attempts at a time."""
    command = (sys.executable, "-m", "coordinator.cli.main")
    handlers = str(DRIVERS / "crewline_handlers.py")
    worker = (*command, "worker", "--role", "bench", "--handlers", handlers, "--redis", "{url}")
    worker += ("--mode", "inline", "--prefetch", str(prefetch))
    processes = ((*command, "coordinator", "--redis", "{url}"), worker, worker)
    label = "Crewline, one at a time" if prefetch == 1 else f"Crewline, up to {prefetch} at a time"
    return Peer(f"crewline-{prefetch}", label, sys.executable, ("crewline_driver.py", "{url}"), processes)


def rq_peer() -> Peer:
    """RQ's `depends_on` with two of its own SimpleWorkers."""
    worker = (sys.executable, str(DRIVERS / "rq_worker.py"), "{url}")
    return Peer("rq", "RQ depends_on", sys.executable, ("rq_driver.py", "{url}"), (worker, worker))


def celery_peer(python: str) -> Peer:
    """Celery's group, chain and chord with a prefork pool of two, without the chatter between workers."""
    options = ("--concurrency", "2", "--pool", "prefork", "--loglevel", "ERROR")
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    worker = (python, "-m", "celery", "--quiet", "-A", "celery_app", "worker", *options, *quiet)
    return Peer("celery", "Celery chain/chord", python, ("celery_driver.py", "{url}"), (worker,))


class Running:
    """A peer whose processes run: give it a shape and it says how long that took."""

    def __init__(self, driver: subprocess.Popen[str], others: list[subprocess.Popen[bytes]]) -> None:
        self._driver, self._others = driver, others
        self._in, self._out = _pipes(driver)
        self.waiter = str(self._answer()["waiter"])

    def measure(self, name: str, count: int) -> dict[str, Any]:
        """Runs one shape to its end: {seconds, submit_seconds, tasks}."""
        self._in.write(json.dumps({"shape": name, "count": count}) + "\n")
        self._in.flush()
        return self._answer()

    def warm_up(self, shapes: list[Shape]) -> None:
        """Runs every shape once in a small size, so that connections, imports and caches are there."""
        for shape in shapes:
            self.measure(shape.name, shape.warm_up)

    def _answer(self) -> dict[str, Any]:
        """The driver's next line; ends the benchmark when a process of the peer is gone or nothing comes for long."""
        for _ in range(MEASURE_SECONDS):
            if select.select([self._out], [], [], 1.0)[0]:
                break
            if any(process.poll() is not None for process in self._others):
                raise SystemExit("a worker of the peer ended; its error stands above")
        else:
            raise SystemExit(f"nothing came for {MEASURE_SECONDS} s")
        line = self._out.readline()
        if not line:
            raise SystemExit("the driver ended; its error stands above")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def running(peer: Peer, url: str) -> Iterator[Running]:
    """Starts the peer's processes and its driver, and ends them all."""
    path = os.pathsep.join([str(DRIVERS), str(HERE), str(ROOT)])
    environment = {**os.environ, "BENCH_REDIS_URL": url, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    with ExitStack() as stack:
        others = []
        for line in peer.processes:
            process = subprocess.Popen([part.format(url=url) for part in line], env=environment, cwd=DRIVERS)
            others.append(process)
            stack.callback(_end, process)
        script, *arguments = peer.driver
        driver = subprocess.Popen(
            [peer.python, str(DRIVERS / script), *(part.format(url=url) for part in arguments)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(_end, driver)
        yield Running(driver, others)


def _pipes(driver: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert driver.stdin and driver.stdout
    return driver.stdin, driver.stdout


def _end(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
