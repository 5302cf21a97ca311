"""Owns one thing that a handler says to the coordinator, on its way: stored, asked again when needed, answered.

Trouble with Redis is waited out. Everything asked here may be asked twice: the coordinator answers the second time as
the first (an action of the same attempt, a child of the same key, an artifact of the same digest). Must not run
handlers.
"""

from __future__ import annotations

import time
from typing import Any

import structlog
from redis import RedisError

from coordinator.wire.grants import Answer, Message
from coordinator.wire.names import ReplyStatus
from workers.attempt import Attempt
from workers.durable.talk import OVER
from workers.link import FIRST_BACKOFF_S, LAST_BACKOFF_S, Link, Report

USE_WAIT_S = 10.0
"""How long `context.use` waits for an answer before it goes on without one."""
ASK_AGAIN_S = 10.0
"""After so long without an answer it is asked again."""

log = structlog.get_logger("crewline.worker")


class Question:
    """One entry on its way. wait: an answer is wanted; False: it is done when it is stored.

    patience_s: after so long it is given up, unanswered; None: never.
    """

    def __init__(
        self,
        link: Link,
        attempt: Attempt,
        kind: str,
        fields: dict[str, Any],
        wait: bool = True,
        patience_s: float | None = None,
    ) -> None:
        self.wait = wait
        self.message: Message | None = None
        self._link, self._attempt = link, attempt
        self._request = link.next_request() if wait else ""
        self._list = link.own_list(attempt.role, self._request) if wait else ""
        self._entry = attempt.request(kind, fields, self._list, self._request)
        self._until = float("inf") if patience_s is None else time.monotonic() + patience_s
        self._send_at = 0.0
        self._backoff = FIRST_BACKOFF_S
        self._stored = False

    @property
    def report(self) -> Report:
        """The entry, for who stores it by other means."""
        return self._attempt.role, self._entry

    def step(self, block_s: float) -> bool:
        """Goes on for at most about block_s; True when nothing more is to be done."""
        now = time.monotonic()
        if now > self._until:
            return True
        if now >= self._send_at:
            self._send(now)
        if not self._stored:
            time.sleep(max(0.0, min(block_s, self._send_at - time.monotonic())))
            return False
        if not self.wait:
            return True
        return self._hear(block_s)

    def _send(self, now: float) -> None:
        try:
            self._link.send([self.report])
            self._stored, self._send_at = True, now + ASK_AGAIN_S
        except RedisError as error:
            self._failed("ask", error)

    def _hear(self, block_s: float) -> bool:
        try:
            self.message = self._link.answer(self._list, block_s)
        except RedisError as error:
            self._failed("answer", error)  # an answer may have been lost with the connection
        except ValueError as error:
            log.error("message_unreadable", role=self._attempt.role, fault=str(error))
            self.message = Answer(status=ReplyStatus.REFUSED, word="malformed", detail="unreadable answer")
        if self.message is None:
            return False
        answer = self.message
        if isinstance(answer, Answer) and answer.status == ReplyStatus.REFUSED and answer.word in OVER:
            self._attempt.cancel(answer.word)
        return True

    def _failed(self, doing: str, error: RedisError) -> None:
        log.warning("redis_lost", doing=doing, wait_s=self._backoff, fault=str(error))
        self._stored = False
        self._send_at = time.monotonic() + self._backoff
        self._backoff = min(self._backoff * 2, LAST_BACKOFF_S)
