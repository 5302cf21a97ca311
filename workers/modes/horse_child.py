"""Owns the child's side of `fork` mode: it runs the handler, and says to its parent what there is to say.

Must not touch Redis. What the parent says is read from the pipe when it is asked for, so the child needs no thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from coordinator.wire.grants import Answer, Grant, Message, parse_message
from coordinator.wire.names import ReplyStatus
from workers.attempt import perform
from workers.handlers import Handler
from workers.modes import processes
from workers.outcomes import AttemptCanceled, Outcome

EXIT_BROKEN = 70
"""Exit code of a child that could not give an outcome."""


class HorseChannel:
    """The child's end of the pipe. What the parent says is read when it is asked for; no thread is needed."""

    def __init__(self, pipe: Connection, artifacts: str = "") -> None:
        self.artifacts = artifacts
        self._pipe = pipe
        self._lock = threading.RLock()
        self._say_lock = threading.RLock()
        self._canceled = False
        self._draining = False
        self._asked = 0
        self._answers: dict[int, str | None] = {}
        self._said_at = 0.0
        self._on_cancel: Callable[[], object] | None = None

    def canceled(self) -> bool:
        """See Channel."""
        self._hear_if_free()
        return self._canceled

    def stop(self, number: int, frame: object) -> NoReturn:
        """Signal handler: the time to stop by itself has passed; `finally` blocks of the handler still run."""
        self._canceled = True
        raise AttemptCanceled("the attempt was stopped")

    def draining(self) -> bool:
        """See Channel."""
        self._hear_if_free()
        return self._draining

    def progress(self, details: str) -> None:
        """See Channel."""
        now = time.monotonic()
        if now < self._said_at + 0.1 and not details:
            return
        self._said_at = now
        self._say({"kind": "progress", "details": details})

    def use(self, tokens: int, cost_micros: int) -> bool:
        """See Channel."""
        message = self.ask("use", {"tokens": tokens, "cost_micros": cost_micros})
        return isinstance(message, Answer) and message.status == ReplyStatus.REFUSED

    def ask(self, kind: str, fields: dict[str, Any], wait: bool = True) -> Message | None:
        """See Channel. One thread at a time; whoever waits also takes what else the parent says."""
        with self._lock:
            if wait and kind != "use" and self.canceled():
                return None
            self._asked += 1
            number = self._asked
            self._answers.clear()
            self._say({"kind": "ask", "number": number, "entry": kind, "fields": fields, "wait": wait})
            while number not in self._answers and self.hear(block=True):
                if wait and self._canceled:
                    break
            text = self._answers.pop(number, None)
            return None if text is None else parse_message(text)

    def hear(self, block: bool = False) -> bool:
        """Takes what the parent said; False when the parent is gone."""
        with self._lock:
            try:
                while block or self._pipe.poll(0):
                    self._take(json.loads(self._pipe.recv_bytes()))
                    block = False
            except (EOFError, OSError):
                return False
            return True

    def _hear_if_free(self) -> bool:
        """Takes what the parent said, unless another thread is waiting for it, and so takes it."""
        if not self._lock.acquire(blocking=False):
            return True
        try:
            return self.hear()
        finally:
            self._lock.release()

    def watch(self, task: asyncio.Task[Any]) -> None:
        """Cancels the task of an async handler as soon as the parent says so."""
        loop = asyncio.get_running_loop()
        self._on_cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        pipe = self._pipe.fileno()
        loop.add_reader(pipe, lambda: self._hear_if_free() or loop.remove_reader(pipe))
        if self.canceled():
            task.cancel()

    def done(self, outcome: Outcome) -> None:
        """Gives the outcome to the parent."""
        self._say(
            {
                "kind": "done",
                "outcome": outcome.outcome,
                "payload": outcome.payload,
                "error": outcome.error,
                "retry_after_ms": outcome.retry_after_ms,
            }
        )

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "answered":
            self._answers[message["number"]] = message["message"]
        elif kind == "drain":
            self._draining = True
        elif kind == "cancel":
            self._canceled = True
            if self._on_cancel is not None:
                self._on_cancel()

    def _say(self, message: dict[str, Any]) -> None:
        with self._say_lock:
            try:
                self._pipe.send_bytes(json.dumps(message, ensure_ascii=False).encode())
            except OSError:
                os._exit(EXIT_BROKEN)  # the parent is gone, and with it whoever could use a result


def live(pipe: Connection, handler: Handler, grant: Grant, parent: int, artifacts: str) -> NoReturn:
    """The child's life: run the handler, give the outcome, end."""
    me, code = os.getpid(), EXIT_BROKEN
    try:
        os.setpgid(0, 0)
        processes.die_with_parent(parent, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        channel = HorseChannel(pipe, artifacts)
        signal.signal(signal.SIGTERM, channel.stop)
        random.seed()
        outcome = perform(handler, grant, channel, channel.watch)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.getpid() == me:  # a handler may have forked, and come back twice
            channel.done(outcome)
        code = 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 0
        os._exit(code)
