"""Owns the Context: what a handler sees of its run, and what it may say while it works (SPEC 8).

Must not know where the handler runs: a Channel carries its words to the coordinator, by a pipe from a forked child or
directly from the worker's own process.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import cached_property
from typing import Any, Protocol

import structlog

from coordinator.wire.digest import InvalidPayload, encode
from coordinator.wire.grants import Grant
from coordinator.wire.reports import MAX_DETAILS, MAX_NUMBER

MICROS = 1_000_000
"""Micro-units in one unit of money."""


class Channel(Protocol):
    """How a handler's words reach the coordinator. Every method may be called from any thread."""

    def canceled(self) -> bool:
        """Whether the attempt is to end."""

    def draining(self) -> bool:
        """Whether the worker is about to stop."""

    def progress(self, details: str) -> None:
        """Says that the handler gets on; never waits, never fails."""

    def use(self, tokens: int, cost_micros: int) -> bool:
        """Says the totals used so far; True when they cannot be covered."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What an attempt has used so far, and whether the run can cover it (SPEC 5)."""

    tokens: int
    cost: Decimal
    over_budget: bool
    """What was said so far cannot be covered: finish with what there is, or fail."""


class Context:
    """What a handler sees of its attempt. Made by the worker; `workers.testing` makes one for tests.

    run, task, attempt: which attempt this is; attempts are numbered from 1.
    key: the idempotency key, to pass on to systems that take one.
    input: the task's input with all references filled in; as JSON, whatever the handler's annotation says.
    results: results of the requirements by task, fixed when the lease was granted. states: their states.
    """

    def __init__(self, grant: Grant, value: Any, channel: Channel) -> None:
        self.run: str = grant.run
        self.task: str = grant.task
        self.attempt: int = grant.attempt
        self.key: str = grant.key
        self.input: Any = value
        self.results: dict[str, Any] = grant.results
        self.states: dict[str, str] = grant.states
        self._channel = channel
        self._began = time.time()
        self._left_ms = max(0, grant.timeout_at - grant.now) if grant.timeout_at else None
        self._lock = threading.Lock()
        self._tokens = 0
        self._cost = Decimal(0)

    @cached_property
    def deadline(self) -> datetime | None:
        """When the attempt ends whatever it does (UTC), or None; by this machine's clock."""
        if self._left_ms is None:
            return None
        return datetime.fromtimestamp(self._began, UTC) + timedelta(milliseconds=self._left_ms)

    @cached_property
    def log(self) -> Any:
        """A structlog logger bound to run, task and attempt."""
        return structlog.get_logger("crewline.handler").bind(
            run=self.run, task=self.task, attempt=self.attempt
        )

    @property
    def canceled(self) -> bool:
        """True once the attempt is to end: stop soon, after the grace the process is stopped (SPEC 7)."""
        return self._channel.canceled()

    @property
    def draining(self) -> bool:
        """True once the worker is stopping: finish within its drain timeout, or the attempt is lost."""
        return self._channel.draining()

    def heartbeat(self, details: Any = None) -> None:
        """Says that the work gets on, with details (text or JSON) for who watches; restarts `progress_timeout`.

        The lease needs no heartbeats: the worker renews it by itself. Calls are cheap and are sent about once a second.
        """
        text = "" if details is None else details if isinstance(details, str) else _json(details)
        self._channel.progress(text.encode("utf-8", "backslashreplace").decode()[:MAX_DETAILS])

    def use(self, *, tokens: int = 0, cost: Decimal | str | int | float = 0) -> Usage:
        """Adds what was used (money as an exact decimal) and gives the totals, with the coordinator's answer.

        `over_budget` is True when the totals cannot be covered; nothing else happens to this attempt then, the handler
        decides. Everything used is booked, also if the attempt fails. Without an answer (no coordinator for some
        seconds) it is False. Raises ValueError for negative or impossible amounts.
        """
        with self._lock:
            total, money = self._tokens + _tokens(tokens), self._cost + _money(cost)
            micros = int((money * MICROS).to_integral_value(ROUND_CEILING))
            if total > MAX_NUMBER or micros > MAX_NUMBER:
                raise ValueError("more was used than can be counted")
            self._tokens, self._cost = total, money
            over = self._channel.use(total, micros)
            return Usage(total, money, over)


def _tokens(tokens: Any) -> int:
    if type(tokens) is not int or tokens < 0:
        raise ValueError(f"tokens must be a whole number that is not negative, not {tokens!r:.40}")
    return tokens


def _money(cost: Decimal | str | int | float) -> Decimal:
    """A float is taken as it prints: 0.1 is one tenth."""
    try:
        money = Decimal(str(cost)) if not isinstance(cost, Decimal) else cost
    except InvalidOperation:
        raise ValueError(f"cost must be a decimal number, not {cost!r:.40}") from None
    if isinstance(cost, bool) or not money.is_finite() or money < 0:
        raise ValueError(f"cost must be a decimal number that is not negative, not {cost!r:.40}")
    return money


def _json(details: Any) -> str:
    try:
        return encode(details)
    except InvalidPayload:
        return repr(details)[:MAX_DETAILS]
