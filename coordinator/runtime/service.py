"""Owns the coordinator process: connecting, leading or standing by, stepping, waiting, ending.

No state of a run is in its memory, so it may be killed at any point; the next one goes on from Redis. The loss of Redis
is never a task's failure: it is waited for, and said. Must not know what a step does (`loop.py`).
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

import structlog
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from coordinator.machine.machine import Machine
from coordinator.runtime.leader import DEFAULT_TTL_MS, Leader
from coordinator.runtime.loop import Bounds, Loop, StepResult
from coordinator.runtime.metrics import Exporter, Health, serve
from coordinator.runtime.outbox import Outbox
from coordinator.runtime.renewal import Renewal
from coordinator.wire.channels import DEFAULT_NAMESPACE
from coordinator.wire.connection import address, check_server, connect, is_unavailable
from coordinator.wire.errors import MachineFault, Unreachable

FIRST_DELAY = 0.1
LONGEST_DELAY = 5.0
"""Seconds between attempts to reach Redis again: doubling from the first to the longest."""
MOST_FAULTS = 5
"""Faults of the machine in a row after which the process gives up, for its supervisor to see."""
SHORTEST_WAIT_MS = 5
"""A step that found nothing is never followed at once, whatever timers say."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a coordinator runs. ttl_ms: length of the leader lease. idle_ms: longest wait for something to do.
    metrics_port: where Prometheus asks, None for nowhere."""

    namespace: str = DEFAULT_NAMESPACE
    ttl_ms: int = DEFAULT_TTL_MS
    idle_ms: int = 1_000
    bounds: Bounds = field(default_factory=Bounds)
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"


_REDIS_ERRORS = (RedisError, OSError)


class Stopping(Exception):
    """Raised inside a wait when the process is to end."""


def new_token() -> str:
    """A lease token that nobody can guess."""
    return secrets.token_urlsafe(24)


class Clock:
    """Wall time in ms that never runs backwards."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> int:
        """Now."""
        self._last = max(self._last, time.time_ns() // 1_000_000)
        return self._last


class Service:
    """One coordinator process on one Redis."""

    def __init__(self, url: str, settings: Settings | None = None) -> None:
        """Raises InputFault for a URL that cannot be one."""
        self._redis = connect(url)
        self._url = url
        self._settings = settings or Settings()
        self._clock = Clock()
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._stopping = False
        self._waiting = False
        self._away = False
        self._ready: Callable[[], None] | None = None
        self.health = Health()

    def run(self, *, signals: bool = True, ready: Callable[[], None] | None = None) -> None:
        """Works until `stop` or, with signals, SIGTERM or SIGINT. ready: called when it leads for the first time.

        Raises Unreachable when Redis cannot be reached at the start, InputFault for a server that Crewline cannot run
        on, MachineFault when the machine fails again and again. Redis lost later is waited for.
        """
        self._ready = ready
        with _handling(self._on_signal if signals else None), self._exporting():
            check_server(self._redis)
            try:
                self._work_on()
            except Stopping:
                pass
            finally:
                self._redis.close()
        log.info("coordinator_ended", holder=self._holder)

    def stop(self) -> None:
        """Asks it to end; from any thread. It does so within `idle_ms`."""
        self._stopping = True

    # -- working -------------------------------------------------------------------------------------------

    def _work_on(self) -> None:
        """Serves, and serves again after Redis was away."""
        delay, faults = FIRST_DELAY, 0
        while not self._stopping:
            begun = self._clock()
            try:
                self._serve()
            except (Unreachable, *_REDIS_ERRORS) as error:
                if not _is_away(error):
                    raise
                self._away = True
                log.warning("redis_away", redis=address(self._redis), error=_short(error), retry_in_s=delay)
            except MachineFault as fault:
                faults = faults + 1 if self._clock() - begun < LONGEST_DELAY * 2000 else 1
                log.error("machine_fault", fault=str(fault), in_a_row=faults)
                if faults >= MOST_FAULTS:
                    raise
            if self._clock() - begun > LONGEST_DELAY * 2000:
                delay = FIRST_DELAY
            self._pause(delay)
            delay = min(delay * 2, LONGEST_DELAY)

    def _serve(self) -> None:
        """Leads when it can and steps as long as it leads; returns when it is to end."""
        check_server(self._redis)
        machine = Machine(self._redis, self._settings.namespace)
        machine.load()
        leader = Leader(machine, self._holder, self._clock, self._settings.ttl_ms)
        loop = Loop(
            machine,
            self._redis,
            self._settings.namespace,
            launcher=Outbox(machine, self._redis, self._settings.namespace),
            tokens=new_token,
            bounds=self._settings.bounds,
            took=self.health.took,
        )
        log.info("coordinator_started", redis=address(self._redis), library=machine.library.hash)
        renewal = Renewal(connect(self._url), self._settings.namespace, leader, self._clock)
        try:
            with renewal:
                while not self._stopping:
                    self._turn(leader, loop)
        finally:
            self.health.leads = False
            if self._stopping:
                with suppress(*_REDIS_ERRORS):
                    leader.resign()

    def _turn(self, leader: Leader, loop: Loop) -> None:
        """A step and then the renewal: a leader that was paused hears of its successor by the first thing it writes."""
        leads = leader.leads or leader.hold()
        self.health.leads, self.health.epoch = leads, leader.epoch
        if self._away:
            self._away = False
            log.info("redis_back", redis=address(self._redis))
        if not leads:
            self._pause(max(leader.ask_at - self._clock(), SHORTEST_WAIT_MS) / 1000)
            return
        if self._ready is not None:
            self._ready()
            self._ready = None
        lapsed = leader.has_lapsed
        if lapsed:
            loop.sweep_next()
        result = loop.step(self._clock())
        self.health.last_step_ms = self._clock()
        if result.deposed:
            leader.step_down()
        elif leader.has_lapsed and not lapsed:
            return  # paused in the middle of the step: the next one writes before the lead is asked for again
        elif leader.hold() and not result.more:
            self._wait(loop, result, leader)

    def _wait(self, loop: Loop, result: StepResult, leader: Leader) -> None:
        """Until something arrives, the next timer is due, the lead must be renewed, or `idle_ms` have passed."""
        now = self._clock()
        until = min(now + self._settings.idle_ms, leader.ask_at)
        if result.wake_at is not None:
            until = min(until, result.wake_at)
        with self._interruptible():
            loop.inboxes.wait(max(until - now, SHORTEST_WAIT_MS))

    def _pause(self, seconds: float) -> None:
        """Waits, at most `idle_ms` at a time, so that `stop` is heard."""
        end = time.monotonic() + seconds
        with self._interruptible():
            while (left := end - time.monotonic()) > 0 and not self._stopping:
                time.sleep(min(left, self._settings.idle_ms / 1000))

    # -- ending --------------------------------------------------------------------------------------------

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """A wait that a signal ends at once; a step is never interrupted."""
        self._waiting = True
        try:
            if self._stopping:
                raise Stopping
            yield
        finally:
            self._waiting = False

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        # No word here: the log's lock may be held by the very line that the signal interrupted.
        self._stopping = True
        signal.signal(number, signal.SIG_DFL)  # the second one ends it at once
        if self._waiting:
            raise Stopping

    @contextmanager
    def _exporting(self) -> Iterator[None]:
        port = self._settings.metrics_port
        if port is None:
            yield
            return
        redis: Redis = connect(self._url)
        exporter = Exporter(redis, self._settings.namespace, self.health)
        server, thread = serve(exporter, port, self._settings.metrics_address)
        log.info("metrics_served", address=self._settings.metrics_address, port=server.server_port)
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
            redis.close()


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None] | None) -> Iterator[None]:
    """Handles SIGTERM and SIGINT while the service works."""
    if handler is None:
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)


def _is_away(error: BaseException) -> bool:
    """Whether Redis cannot serve now but may later: it is down, loading, read-only, full, or lost the library."""
    if isinstance(error, Unreachable | OSError) or is_unavailable(error):
        return True
    return isinstance(error, ResponseError) and "function not found" in str(error).lower()


def _short(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
