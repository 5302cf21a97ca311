"""Owns the processes of `crewline worker -c N`: starts N workers, starts another when one dies, passes signals on.

Each signal is passed on once. A worker that ends by itself with exit code 0 was told to (RQ's `shutdown`) and is not
replaced. Must not talk to Redis, and must not know what a worker does.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from workers.modes import processes

QUICK_DEATH_S = 1.0
"""A worker that lived no longer makes the next one wait."""
LONGEST_WAIT_S = 5.0

log = structlog.get_logger("crewline.worker")


@dataclass
class Supervisor:
    """Keeps `count` processes running `work`. hard: they are killed, not drained, if this process is killed (Linux)."""

    work: Callable[[], None]
    count: int
    hard: bool = False
    _started: dict[int, float] = field(default_factory=dict)
    _wanted: int = 0
    _wait: float = 0.0
    _signals: int = 0
    _passed: int = 0

    def run(self) -> int:
        """Runs until all workers have ended; gives the exit code: 0."""
        self._wanted = self.count
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._count_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            while self._wanted or self._started:
                self._pass_on()
                self._reap()
                if not self._signals:
                    self._fill()
                if self._wanted or self._started:
                    select.select([read], [], [], 1.0)
                    _empty(read)
        finally:
            signal.set_wakeup_fd(-1)
            os.close(read)
            os.close(write)
        return 0

    def _count_signal(self, number: int, frame: object) -> None:
        self._signals += 1

    def _pass_on(self) -> None:
        """Passes each signal on once, as SIGTERM, to every worker there is."""
        if self._signals:
            self._wanted = 0
        while self._passed < self._signals:
            self._passed += 1
            for pid in self._started:
                os.kill(pid, signal.SIGTERM)

    def _reap(self) -> None:
        for pid, since in list(self._started.items()):
            code = processes.ended(pid)
            if code is None:
                continue
            del self._started[pid]
            if self._signals:
                continue
            if code == 0:
                self._wanted -= 1
                continue
            lived = time.monotonic() - since
            self._wait = min(max(0.1, self._wait * 2), LONGEST_WAIT_S) if lived < QUICK_DEATH_S else 0.0
            log.warning("worker_died", pid=pid, exit=code, lived_s=round(lived, 1), again_in_s=self._wait)

    def _fill(self) -> None:
        if len(self._started) < self._wanted and self._wait:
            select.select([], [], [], self._wait)
        while len(self._started) < self._wanted and not self._signals:
            self._start()

    def _start(self) -> None:
        parent = os.getpid()
        pid = processes.fork()
        if pid:
            self._started[pid] = time.monotonic()
            return
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            processes.die_with_parent(parent, signal.SIGKILL if self.hard else signal.SIGTERM)
            self.work()
            code = 0
        except BaseException:
            log.exception("worker_failed")
        finally:
            os._exit(code)


def _empty(read: int) -> None:
    try:
        while os.read(read, 4096):
            continue
    except BlockingIOError:
        return
