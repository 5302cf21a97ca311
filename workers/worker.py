"""Owns the worker process: a subclass of RQ's worker with its own short path for a job (DESIGN 3).

Registration, `rq info`, signals, `rq suspend`, warm shutdown and pub/sub commands are RQ's; what happens to a job is
not: pop, ask for the lease, run, report. Of a job only the id is read. Must not write run state; trouble with Redis is
never a task's failure: it is waited out. tests/workers/test_rq_contract.py pins what is used of RQ.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import time
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

import structlog
from redis import Redis, RedisError
from rq import Worker
from rq.exceptions import StopRequested
from rq.serializers import JSONSerializer
from rq.utils import now
from rq.worker import WorkerStatus
from rq.worker_registration import clean_worker_registry

from coordinator.wire import channels
from coordinator.wire.channels import JobId
from workers.attempt import Attempt
from workers.handlers import Handler
from workers.leases import Leases
from workers.link import FIRST_BACKOFF_S, LAST_BACKOFF_S, Link, Report
from workers.modes.horse import ForkMode
from workers.modes.inline import InlineMode

BLOCK_S = 5
"""Longest wait for a job in one command; with the socket timeout it bounds how long a dead connection is not seen."""
REPORT_S = 600.0
"""How long a report is offered while Redis cannot be reached."""
LAST_WORDS_S = 3.0
"""The same for a worker that has to leave."""
ALIVE_S = 30.0
"""How often the worker tells RQ that it lives."""

log = structlog.get_logger("crewline.worker")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works. Times in seconds."""

    roles: tuple[str, ...]
    namespace: str = channels.DEFAULT_NAMESPACE
    mode: Literal["fork", "inline"] = "fork"
    prefetch: int = 16
    """Most attempts at a time, in inline mode."""
    drain_timeout_s: float = 20.0
    """How long running handlers may go on after a signal to stop."""
    cancel_grace_s: float = 5.0
    """How long a handler may go on after its attempt was canceled or timed out."""
    artifacts: str = ""
    """fsspec URL below which handlers keep artifacts; empty: they cannot."""


def worker_name() -> str:
    """A new worker name: host, process, and a random part, so that no two workers ever share a reply list."""
    host = re.sub(r"[^A-Za-z0-9_]", "_", socket.gethostname())[:40] or "host"
    return f"{host}.{os.getpid()}.{secrets.token_hex(4)}"


class RqLog(logging.Handler):
    """Passes on what RQ logs as warnings and errors, so that all of a worker's log has one form."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        log.warning("rq", message=record.getMessage())


class CrewlineWorker(Worker):
    """One worker process for one or several roles."""

    def __init__(self, redis: Redis, handlers: dict[str, Handler], options: WorkerOptions) -> None:
        """Connects, to learn its address. handlers: by capability. Raises RedisError."""
        super().__init__(
            [channels.queue_name(options.namespace, role) for role in options.roles],
            name=worker_name(),
            connection=redis,
            serializer=JSONSerializer,
        )
        self.options = options
        self.handlers = handlers
        self.link = Link(redis, options.namespace, options.roles, self.name)
        self.cancel_grace_s = options.cancel_grace_s
        self.stopping_since = 0.0
        self.forced = False
        self._interruptible = False
        self._backoff = FIRST_BACKOFF_S
        self._alive_at = 0.0
        self._leases = Leases(self.link, self, handlers)
        self._mode: ForkMode | InlineMode

    @property
    def dequeue_timeout(self) -> int:
        """RQ derives its socket timeout from this: ten seconds more."""
        return BLOCK_S

    def _shutdown(self) -> None:
        """RQ's signal handler calls this for the first signal: no new work; a wait for jobs ends at once."""
        self._stop_requested = True
        self.stopping_since = self.stopping_since or time.monotonic()
        if self._interruptible:
            raise StopRequested

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        """The second signal, unless it is the first one told twice (C-58): running handlers are stopped now.

        What was produced already is still reported, so nothing is raised here.
        """
        if time.monotonic() - self.stopping_since >= 1.0:
            self.forced = True

    def run_maintenance_tasks(self) -> None:
        """RQ's registries are not used; only workers that died are taken off the lists of `rq info`."""
        for queue in self.queues:
            clean_worker_registry(queue)
        self.last_cleaned_at = now()  # type: ignore[assignment] # RQ declares it by its first value, None

    def work(self, burst: bool = False, *_: Any, **__: Any) -> bool:
        """Works until it is told to stop, or with `burst` until its queues are empty; True if it ran anything."""
        if not logging.getLogger("rq.worker").handlers:
            logging.getLogger("rq.worker").addHandler(RqLog())
        self._install_signal_handlers()  # type: ignore[no-untyped-call] # RQ leaves it untyped
        self._mode = (
            ForkMode(self.link, self.handlers, self, self.options.artifacts)
            if self.options.mode == "fork"
            else InlineMode(self.link, self.handlers, self, self.options.prefetch, self.options.artifacts)
        )
        try:
            self._begin()
            return self._loop(burst)
        finally:
            self._end()

    def _begin(self) -> None:
        """Registers, once Redis can be reached."""
        wait = FIRST_BACKOFF_S
        while not self._stop_requested:
            try:
                if wait > FIRST_BACKOFF_S:
                    # A try broke off half way, and RQ takes no name twice while its owner lives.
                    self.register_death()  # type: ignore[no-untyped-call] # RQ leaves it untyped
                self.bootstrap(logging_level="WARNING")
                return
            except RedisError as error:
                log.warning("redis_lost", doing="register", wait_s=wait, fault=str(error))
                time.sleep(wait)
                wait = min(wait * 2, LAST_BACKOFF_S)

    def _end(self) -> None:
        self._mode.close()
        self.deregister()
        try:
            self.teardown()  # type: ignore[no-untyped-call] # RQ leaves it untyped
        except RedisError as error:
            log.warning("redis_lost", doing="teardown", fault=str(error))

    def draining(self) -> bool:
        """Whether it takes no new work."""
        return self.stopping_since > 0

    def must_leave(self) -> bool:
        """Whether running handlers are to be stopped now: a second signal, or the drain timeout."""
        if not self.stopping_since:
            return False
        return self.forced or time.monotonic() - self.stopping_since > self.options.drain_timeout_s

    def keep_offering(self, passed: float) -> bool:
        """Reports are offered for longer than leases live, but only shortly when the worker has to leave."""
        return passed < (LAST_WORDS_S if self.must_leave() else REPORT_S)

    def deregister(self) -> None:
        """Takes the worker off RQ's lists, and its own lists away."""
        try:
            self.link.forget()
            self.register_death()  # type: ignore[no-untyped-call] # RQ leaves it untyped
        except RedisError as error:
            log.warning("redis_lost", doing="deregister", fault=str(error))

    def keep_alive(self) -> None:
        """Tells RQ that the worker lives, every half minute."""
        at = time.monotonic()
        if at - self._alive_at < ALIVE_S:
            return
        self._alive_at = at
        try:
            self.heartbeat()
            if self.should_run_maintenance_tasks:
                self.run_maintenance_tasks()
        except RedisError as error:
            log.warning("redis_lost", doing="heartbeat", fault=str(error))

    def horse(self, pid: int) -> None:
        """Names the child that works, for RQ's `kill-horse`."""
        self._horse_pid = pid

    def _loop(self, burst: bool) -> bool:
        worked, reports = False, list[Report]()
        while not self._stop_requested:
            self.keep_alive()
            room = 1 if isinstance(self._mode, ForkMode) else self._mode.room()
            jobs = self._report_and_pop(reports, room)
            reports = []
            if not jobs and burst:
                break
            attempts = self._leases.take(jobs) if jobs else []
            if attempts:
                self._state = WorkerStatus.BUSY
                reports = self._run(attempts)
                worked = True
        if isinstance(self._mode, InlineMode):
            reports += self._mode.drain()
        if reports:
            self.link.offer(reports, self.keep_offering)
        return worked

    def _run(self, attempts: list[Attempt]) -> list[Report]:
        if isinstance(self._mode, InlineMode):
            return self._mode.run(attempts)
        reports: list[Report] = []
        for attempt in attempts:
            if not attempt.may_start(time.monotonic()):
                reports.append((attempt.role, attempt.hand_back("refused_start")))
            else:
                end = attempt.end(self._mode.run(attempt))
                if end is not None:
                    reports.append((attempt.role, end))
        return reports

    def _report_and_pop(self, reports: list[Report], room: int) -> list[JobId]:
        """Stores the reports, and gives the next jobs; waits for them a while when there are none."""
        try:
            if room <= 0 or self._stop_requested:
                self._store(reports)
                return []
            suspended, jobs = self.link.exchange(reports, room)
            reports = []
            self._backoff = FIRST_BACKOFF_S
            if not suspended and not jobs:
                jobs = self._wait_for_jobs(room)
                suspended = bool(jobs) and self.link.suspended()
            if suspended or self._stop_requested:
                if jobs:
                    self.link.push_back(jobs)
                    jobs = []
                self.check_for_suspension(False)
            return jobs
        except StopRequested:
            return []
        except RedisError as error:
            log.warning("redis_lost", doing="pop", wait_s=self._backoff, fault=str(error))
            time.sleep(self._backoff)
            self._backoff = min(self._backoff * 2, LAST_BACKOFF_S)
            self._store(reports)
            return []

    def _store(self, reports: list[Report]) -> None:
        if reports:
            self.link.offer(reports, self.keep_offering)

    def _wait_for_jobs(self, room: int) -> list[JobId]:
        """The only wait that a signal cuts short; a job that arrives in that moment is found as never started."""
        if self._state != WorkerStatus.IDLE:
            self.set_state(WorkerStatus.IDLE)
        try:
            self._interruptible = True
            if self._stop_requested:
                return []
            return self.link.pop(room, BLOCK_S)
        finally:
            self._interruptible = False


def serve(redis: Redis, handlers: dict[str, Handler], options: WorkerOptions) -> None:
    """Runs one worker in this process until it is told to stop. Waits for Redis if it cannot be reached at first."""
    wait = FIRST_BACKOFF_S
    while True:
        try:
            worker = CrewlineWorker(redis, handlers, options)
            break
        except RedisError as error:
            log.warning("redis_lost", doing="connect", wait_s=wait, fault=str(error))
            time.sleep(wait)
            wait = min(wait * 2, LAST_BACKOFF_S)
    worker.work()
