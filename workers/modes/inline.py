"""Owns `inline` mode: handlers in the worker's own process, several attempts at a time.

Sync handlers run one after another in the main thread; async ones all at once in a loop of their own (`lane.py`). A
handler that does not stop when it must cannot be stopped: the process ends and is replaced (SPEC 7). Attempts that wait
for a slow handler are handed back, so that others get them. Must not decide what becomes of an attempt.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from typing import Any

import structlog

from coordinator.wire.grants import Answer, Message
from coordinator.wire.names import ReplyStatus
from coordinator.wire.reports import CANCELED
from workers.attempt import Attempt, perform, perform_async
from workers.handlers import Handler
from workers.link import Link, Report
from workers.modes.keeper import Keeper
from workers.modes.lane import AsyncLane
from workers.modes.questions import USE_WAIT_S, Question
from workers.modes.stopping import LEAVE, TIMEOUT, Stopping, stopped
from workers.outcomes import Outcome, canceled

EXIT_REPLACE = 75
"""Exit code of a process that a stuck handler made unusable; the supervisor starts another."""
QUICK_S = 0.1
"""A batch that took no longer than this may be followed by a larger one."""
HOLD_S = 0.02
"""An end waits no longer than this for those after it, to be reported together."""
ASK_S = 0.5
"""How long one look for an answer may take; so soon a cancel ends the wait."""
FLUSH_S = 3.0
"""How long a process that must end tries to report."""

log = structlog.get_logger("crewline.worker")


class InlineChannel:
    """A handler's words, said directly by the worker's own process."""

    def __init__(self, link: Link, attempt: Attempt, worker: Stopping, artifacts: str) -> None:
        self.artifacts = artifacts
        self._link, self._attempt, self._worker = link, attempt, worker

    def canceled(self) -> bool:
        """See Channel."""
        return bool(self._attempt.cancel_reason)

    def draining(self) -> bool:
        """See Channel."""
        return self._worker.draining()

    def progress(self, details: str) -> None:
        """See Channel."""
        self._attempt.note_progress(details)

    def use(self, tokens: int, cost_micros: int) -> bool:
        """See Channel."""
        message = self._ask("use", {"tokens": tokens, "cost_micros": cost_micros}, True, USE_WAIT_S)
        return isinstance(message, Answer) and message.status == ReplyStatus.REFUSED

    def ask(self, kind: str, fields: dict[str, Any], wait: bool = True) -> Message | None:
        """See Channel."""
        if wait and self._attempt.cancel_reason:
            return None
        return self._ask(kind, fields, wait, None)

    def _ask(self, kind: str, fields: dict[str, Any], wait: bool, patience_s: float | None) -> Message | None:
        began = time.monotonic()
        question = Question(self._link, self._attempt, kind, fields, wait, patience_s)
        while not question.step(ASK_S):
            if wait and self._attempt.cancel_reason:
                return None
            if not wait and not self._worker.keep_offering(time.monotonic() - began):
                return None
        return question.message


class InlineMode:
    """Runs attempts in this process: up to `prefetch` async ones at once, sync ones in turn."""

    def __init__(
        self, link: Link, handlers: dict[str, Handler], worker: Stopping, prefetch: int, artifacts: str = ""
    ) -> None:
        """artifacts: URL below which handlers keep theirs."""
        self._link, self._handlers, self._worker = link, handlers, worker
        self._artifacts = artifacts
        self._prefetch = prefetch
        all_async = bool(handlers) and all(handler.is_async for handler in handlers.values())
        self._batch = prefetch if all_async else 1
        self._lock = threading.Condition()
        self._waiting: deque[Attempt] = deque()
        self._ends: list[Report] = []
        self._ends_since = 0.0
        self._running: Attempt | None = None
        self._active: set[Attempt] = set()
        self._leaving = False
        self._keeper = Keeper(link, self._watch)
        self._lane: AsyncLane | None = None

    def room(self) -> int:
        """How many more attempts it takes now; waits up to half a second while there is none."""
        with self._lock:
            if len(self._active) >= self._prefetch:
                self._lock.wait(0.5)
            return min(self._batch, self._prefetch - len(self._active))

    def run(self, attempts: list[Attempt]) -> list[Report]:
        """Starts the async ones and runs the sync ones to their ends; gives the ends that are still to be reported."""
        began = time.monotonic()
        size = len(attempts)
        for attempt in attempts:
            if self._handlers[attempt.grant.capability].is_async:
                self._launch(attempt)
            else:
                self._waiting.append(attempt)
        waited = len(self._waiting)
        while (attempt_now := self._take()) is not None:
            self._run_sync(attempt_now)
        if waited and time.monotonic() - began > QUICK_S:
            self._batch = 1
        elif size >= self._batch:
            self._batch = min(self._prefetch, self._batch * 2)
        return self._take_ends()

    def drain(self) -> list[Report]:
        """Waits for the async handlers to end, stops them when the time is over; gives ends still to be reported."""
        with self._lock:
            while self._active and not self._worker.must_leave():
                self._lock.wait(0.2)
            for attempt in self._active:
                attempt.cancel(LEAVE)
            ends = time.monotonic() + self._worker.cancel_grace_s
            while self._active and time.monotonic() < ends:
                self._lock.wait(0.2)
        if self._active:
            self._leave(0)
        return self._take_ends()

    def close(self) -> None:
        """Ends the threads; everything reported by the async lane is stored before it returns."""
        self._keeper.close()
        if self._lane is not None:
            self._lane.close()

    def _take(self) -> Attempt | None:
        """The next attempt to run, if its lease surely lives; the others are handed back."""
        with self._lock:
            stale = bool(self._ends) and time.monotonic() - self._ends_since > HOLD_S
        if stale:
            self._send(self._take_ends())
        with self._lock:
            while self._waiting:
                attempt = self._waiting.popleft()
                if attempt.cancel_reason:
                    self._add_end(attempt, canceled("canceled before the handler began"))
                elif self._worker.draining():
                    self._add((attempt.role, attempt.hand_back("draining")))
                elif attempt.may_start(time.monotonic()):
                    self._running = attempt
                    return attempt
                else:
                    self._add((attempt.role, attempt.hand_back("refused_start")))
            return None

    def _run_sync(self, attempt: Attempt) -> None:
        handler = self._handlers[attempt.grant.capability]
        self._keeper.hold(attempt)
        outcome = perform(handler, attempt.grant, self._channel(attempt))
        with self._lock:
            while self._leaving:  # the keeper has reported for this attempt, and ends the process
                self._lock.wait()
            self._running = None
            self._add_end(attempt, outcome)
        self._keeper.release(attempt)

    def _launch(self, attempt: Attempt) -> None:
        if not attempt.may_start(time.monotonic()):
            self._add((attempt.role, attempt.hand_back("refused_start")))
            return
        if self._lane is None:
            self._lane = AsyncLane(self._send)
        handler, lane = self._handlers[attempt.grant.capability], self._lane
        channel = self._channel(attempt)
        self._keeper.hold(attempt)

        async def work() -> Outcome:
            return await perform_async(handler, attempt.grant, channel)

        def ended(task: asyncio.Task[Outcome]) -> None:
            outcome = canceled("") if task.cancelled() else task.result()
            if outcome.outcome == CANCELED:
                outcome = stopped(attempt)
            with self._lock:
                if self._leaving:
                    return
                self._active.discard(attempt)
                self._lock.notify_all()
            end = attempt.end(outcome)
            if end is not None:
                lane.report((attempt.role, end))
            self._keeper.release(attempt)

        def begin() -> None:
            task = asyncio.get_running_loop().create_task(work())
            task.add_done_callback(ended)
            attempt.on_cancel = lambda: lane.call(task.cancel)
            if attempt.cancel_reason:
                task.cancel()

        with self._lock:
            self._active.add(attempt)
        lane.call(begin)

    def _watch(self, now: float) -> None:
        """Called by the keeper while a handler has run for a while."""
        with self._lock:
            while self._waiting:
                attempt = self._waiting.popleft()
                self._add((attempt.role, attempt.hand_back("busy")))
        self._send(self._take_ends())
        self._worker.keep_alive()
        for attempt in self._keeper.held():
            if now > attempt.times_out:
                attempt.cancel(TIMEOUT)
            if attempt.cancel_reason and now > attempt.cancel_since + self._worker.cancel_grace_s:
                log.error(
                    "handler_stuck", run=attempt.grant.run, task=attempt.grant.task, why=attempt.cancel_reason
                )
                self._leave(EXIT_REPLACE)
        if self._running is not None and self._worker.must_leave():
            self._leave(0)

    def _leave(self, code: int) -> None:
        """Reports what runs as stopped and ends the process, whatever its threads are doing."""
        with self._lock:
            self._leaving = True
            for attempt in self._waiting:
                self._add((attempt.role, attempt.hand_back("draining")))
            for attempt in self._keeper.held():
                self._add_end(attempt, stopped(attempt, leaving=not attempt.cancel_reason))
            ends, self._ends = self._ends, []
        if self._lane is not None:
            ends = [*self._lane.unreported(), *ends]
        self._link.offer(ends, lambda passed: passed < FLUSH_S)
        self._worker.deregister()
        os._exit(code)

    def _add_end(self, attempt: Attempt, outcome: Outcome) -> None:
        if outcome.outcome == CANCELED:
            outcome = stopped(attempt)
        end = attempt.end(outcome)
        if end is not None:
            self._add((attempt.role, end))

    def _channel(self, attempt: Attempt) -> InlineChannel:
        return InlineChannel(self._link, attempt, self._worker, self._artifacts)

    def _add(self, report: Report) -> None:
        if not self._ends:
            self._ends_since = time.monotonic()
        self._ends.append(report)

    def _take_ends(self) -> list[Report]:
        with self._lock:
            ends, self._ends = self._ends, []
            return ends

    def _send(self, ends: list[Report]) -> None:
        if ends:
            self._link.offer(ends, self._worker.keep_offering)
