"""Owns `fork` mode: a child process for each attempt, which can be stopped hard, and whose silent death is seen.

The child (`horse_child.py`) runs the handler and talks to its parent by a pipe of JSON messages; the parent alone talks
to Redis. The child dies with its parent. Must not decide what becomes of an attempt: it reports what happened.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import time
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import structlog

from coordinator.wire.names import FailureClass
from coordinator.wire.reports import CANCELED
from workers.attempt import Attempt
from workers.handlers import Handler
from workers.link import Link
from workers.modes import processes
from workers.modes.horse_child import live
from workers.modes.keeper import Keeper
from workers.modes.questions import USE_WAIT_S, Question
from workers.modes.stopping import LEAVE, TIMEOUT, Stopping, stopped
from workers.outcomes import Outcome, failed

LOOK_S = 0.5
"""How often the parent looks at clocks and flags while nothing happens."""
TERM_S = 1.0
"""Between the signal that raises AttemptCanceled in the handler and the one that kills."""
ASK_S = 0.1
"""How long one look for an answer may take."""
LINGER_S = 5.0
"""How long a child may take to end after it gave its outcome."""

log = structlog.get_logger("crewline.worker")


class ForkMode:
    """Runs attempts one at a time, each in a child process."""

    def __init__(
        self, link: Link, handlers: dict[str, Handler], worker: Stopping, artifacts: str = ""
    ) -> None:
        """artifacts: URL below which handlers keep theirs."""
        self._link = link
        self._artifacts = artifacts
        self._handlers = handlers
        self._worker = worker
        self._keeper = Keeper(link)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        gc.freeze()  # children do not collect, and so copy, what was there before them

    def run(self, attempt: Attempt) -> Outcome:
        """Runs one attempt to its outcome; the lease is kept meanwhile."""
        handler = self._handlers[attempt.grant.capability]
        ours, theirs = Pipe()
        parent = os.getpid()
        pid = processes.fork()
        if pid == 0:
            ours.close()
            live(theirs, handler, attempt.grant, parent, self._artifacts)
        theirs.close()
        _set_group(pid)
        self._worker.horse(pid)
        attempt.on_cancel = self._wake
        self._keeper.hold(attempt)
        watch = HorseWatch(self._link, self._worker, attempt, ours, pid)
        try:
            return watch.outcome(self._wake_read)
        finally:
            self._keeper.release(attempt)
            self._worker.horse(0)
            watch.close()

    def close(self) -> None:
        """Ends the keeper's thread."""
        self._keeper.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"c")
        except OSError:
            return  # the pipe is full: the parent wakes anyway


class HorseWatch:
    """The parent's watch over one child, until there is an outcome."""

    def __init__(self, link: Link, worker: Stopping, attempt: Attempt, pipe: Connection, pid: int) -> None:
        self._link, self._worker, self._attempt = link, worker, attempt
        self._pipe, self._pid = pipe, pid
        self._pidfd = processes.open_pidfd(pid)
        self._code: int | None = None
        self._told: set[str] = set()
        self._pressed_at = 0.0
        self._stopped = ""
        self._question: Question | None = None
        self._number = 0

    def outcome(self, wake: int) -> Outcome:
        """Waits for the child's outcome or its end, and presses it to stop when it must."""
        sources: list[Any] = [self._pipe, wake] + ([self._pidfd] if self._pidfd is not None else [])
        while True:
            pause = LOOK_S if self._pidfd is not None else 0.05
            if self._question is not None:
                self._go_on_asking(self._question)
                pause = 0
            elif self._pressed_at:
                pause = 0.05
            ready = wait(sources, pause)
            if wake in ready:
                os.read(wake, 4096)
            if self._pipe in ready and (outcome := self._hear_child()) is not None:
                return outcome
            if self._code is None:
                self._code = processes.ended(self._pid)
            if self._code is not None and not self._pipe_has_more():
                return self._lost()
            self._worker.keep_alive()
            self._press(time.monotonic())

    def close(self) -> None:
        """Stores what the child said last, waits for it to end, kills it if it lingers, and closes what was opened."""
        if self._question is not None and not self._question.wait:
            self._link.offer([self._question.report], self._worker.keep_offering)
        ends = time.monotonic() + LINGER_S
        while self._code is None:
            self._code = processes.ended(self._pid)
            if self._code is None:
                if time.monotonic() > ends:
                    processes.end_group(self._pid, signal.SIGKILL)
                wait([self._pidfd] if self._pidfd is not None else [], 0.05)
        if self._stopped:
            processes.end_group(self._pid, signal.SIGKILL)
        self._pipe.close()
        if self._pidfd is not None:
            os.close(self._pidfd)

    def _pipe_has_more(self) -> bool:
        try:
            return not self._pipe.closed and self._pipe.poll(0)
        except OSError:
            return False

    def _hear_child(self) -> Outcome | None:
        try:
            message = json.loads(self._pipe.recv_bytes())
        except (EOFError, OSError, ValueError):
            self._pipe.close()  # it ended or its end was closed; the process' end tells the rest
            self._code = self._wait_for_end()
            return self._lost()
        kind = message["kind"]
        if kind == "done":
            if message["outcome"] == CANCELED:
                return self._lost()
            return Outcome(
                message["outcome"], message["payload"], message["error"], message["retry_after_ms"]
            )
        if kind == "progress":
            self._attempt.note_progress(message["details"])
        elif kind == "ask":
            self._number = message["number"]
            patience = USE_WAIT_S if message["entry"] == "use" else None
            self._question = Question(
                self._link, self._attempt, message["entry"], message["fields"], message["wait"], patience
            )
        return None

    def _wait_for_end(self) -> int:
        """After the pipe's end: the child is gone, or goes on without a way to report, and is killed."""
        ends = time.monotonic() + TERM_S
        while (code := processes.ended(self._pid)) is None:
            if time.monotonic() > ends:
                processes.end_group(self._pid, signal.SIGKILL)
            wait([self._pidfd] if self._pidfd is not None else [], 0.05)
        return code

    def _go_on_asking(self, question: Question) -> None:
        if question.step(ASK_S):
            self._question = None
            message = question.message
            self._say("answered", number=self._number, message=message and message.model_dump_json())

    def _say(self, kind: str, **more: Any) -> None:
        try:
            self._pipe.send_bytes(json.dumps({"kind": kind, **more}).encode())
        except OSError:
            return  # the child is gone; its end is seen by other means

    def _press(self, now: float) -> None:
        """Tells the child of a cancel or a drain, and stops it step by step when the time for that has come."""
        attempt = self._attempt
        if now > attempt.times_out:
            attempt.cancel(TIMEOUT)
        if self._worker.draining() and "drain" not in self._told:
            self._told.add("drain")
            self._say("drain")
        if attempt.cancel_reason and "cancel" not in self._told:
            self._told.add("cancel")
            self._say("cancel")
        if not self._stopped and self._worker.must_leave():
            self._stopped = LEAVE
        overdue = attempt.cancel_reason and now > attempt.cancel_since + self._worker.cancel_grace_s
        if not self._stopped and overdue:
            self._stopped = "cancel"
        if not self._stopped:
            return
        if not self._pressed_at:
            self._pressed_at = now
            processes.end_group(self._pid, signal.SIGTERM)
        elif now > self._pressed_at + TERM_S:
            processes.end_group(self._pid, signal.SIGKILL)

    def _lost(self) -> Outcome:
        """The outcome of a child that was stopped, or ended without giving one."""
        if self._stopped == LEAVE or self._attempt.cancel_reason:
            return stopped(self._attempt, leaving=self._stopped == LEAVE)
        if self._code is None:
            return failed(
                FailureClass.TRANSIENT, "ProcessKilled", "the handler's process was told to stop by a signal"
            )
        return failed(FailureClass.TRANSIENT, *processes.describe(self._code))


def _set_group(pid: int) -> None:
    """Makes the child the head of a group of its own; done on both sides, since neither knows who comes first."""
    try:
        os.setpgid(pid, pid)
    except (ProcessLookupError, PermissionError):
        return
