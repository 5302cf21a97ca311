"""Owns the thread that keeps leases alive while handlers run, and hears the coordinator while they do.

It sends nothing while handlers are short: only when one has run for a little while does it begin to listen on the
control list (on a connection of its own) and to renew every third of a heartbeat (SPEC 7). Without leases it sleeps.
Must not end an attempt: it tells the attempt that it is to end, the mode that runs it does the rest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog
from redis import RedisError

from workers.attempt import Attempt
from workers.link import Link

LITTLE_S = 0.25
"""A handler that runs no longer than this causes no renewal and no listening."""
LISTEN_S = 0.5
"""Longest wait for notices; so often, at least, leases, timeouts and graces are looked at."""
PROGRESS_S = 1.0
"""Progress is sent along no more often than this, apart from the due renewals."""

log = structlog.get_logger("crewline.worker")


class Keeper:
    """Keeps the leases of the attempts that it holds. Its thread starts with the first one."""

    def __init__(self, link: Link, watch: Callable[[float], None] | None = None) -> None:
        """watch: called from the thread, about twice a second while leases are held, with the monotonic time."""
        self._link = link
        self._watch = watch
        self._held: dict[tuple[str, str, int], Attempt] = {}
        self._condition = threading.Condition()
        self._parked = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._progress_at = 0.0

    def hold(self, attempt: Attempt) -> None:
        """The attempt's handler begins: its lease is kept from now on."""
        with self._condition:
            attempt.began = time.monotonic()
            self._held[attempt.identity] = attempt
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="crewline-keeper", daemon=True)
                self._thread.start()
            elif self._parked:
                self._condition.notify()

    def release(self, attempt: Attempt) -> None:
        """The attempt's handler has ended."""
        with self._condition:
            self._held.pop(attempt.identity, None)

    def held(self) -> list[Attempt]:
        """The attempts held now, the oldest first."""
        with self._condition:
            return list(self._held.values())

    def close(self) -> None:
        """Ends the thread and waits for it."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=2 * LISTEN_S)

    def _work(self) -> None:
        while (attempts := self._next()) is not None:
            now = time.monotonic()
            if self._watch is not None:
                self._watch(now)
            try:
                self._renew(attempts, now)
                self._listen(attempts)
            except RedisError as error:
                log.warning("redis_lost", doing="renew", fault=str(error))
                with self._condition:
                    self._condition.wait(LISTEN_S)

    def _next(self) -> list[Attempt] | None:
        """Waits until a handler has run for a little while; gives all that are held, or None at the end."""
        with self._condition:
            while not self._closed:
                if not self._held:
                    self._parked = True
                    self._condition.wait()
                    self._parked = False
                    continue
                left = next(iter(self._held.values())).began + LITTLE_S - time.monotonic()
                if left <= 0:
                    return list(self._held.values())
                self._condition.wait(left)
            return None

    def _renew(self, attempts: list[Attempt], now: float) -> None:
        say_progress = now >= self._progress_at and any(attempt.has_progress for attempt in attempts)
        due = [a for a in attempts if now >= a.renew_at or (say_progress and a.has_progress)]
        if not due:
            return
        if say_progress:
            self._progress_at = now + PROGRESS_S
        self._link.send([(attempt.role, attempt.renew()) for attempt in due])
        for attempt in due:
            attempt.renewed = now

    def _listen(self, attempts: list[Attempt]) -> None:
        next_due = min(attempt.renew_at for attempt in attempts) - time.monotonic()
        for notice in self._link.notices(max(0.02, min(LISTEN_S, next_due))):
            with self._condition:
                attempt = self._held.get((notice.run, notice.task, notice.attempt))
            if attempt is not None and notice.lease in ("", attempt.grant.lease):
                log.info("attempt_cancel", run=notice.run, task=notice.task, attempt=notice.attempt)
                attempt.cancel(notice.reason)
