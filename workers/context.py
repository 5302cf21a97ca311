"""Owns the Context: what a handler sees of its run, and what it may say while it works (SPEC 8).

Must not know where the handler runs: a Channel carries its words to the coordinator, by a pipe from a forked child or
directly from the worker's own process.
"""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import cached_property
from typing import TYPE_CHECKING, Any

import structlog

from coordinator.wire.digest import InvalidPayload, encode
from coordinator.wire.grants import Grant
from coordinator.wire.reports import MAX_DETAILS, MAX_NUMBER
from workers.durable import actions, artifacts, children
from workers.durable.talk import Channel, Talk

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

MICROS = 1_000_000
"""Micro-units in one unit of money."""


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
    answer: the answer to the question that the task asked by MissingInput, None when it asked none.
    """

    def __init__(self, grant: Grant, value: Any, channel: Channel) -> None:
        self.run: str = grant.run
        self.task: str = grant.task
        self.attempt: int = grant.attempt
        self.key: str = grant.key
        self.input: Any = value
        self.results: dict[str, Any] = grant.results
        self.states: dict[str, str] = grant.states
        self.answer: Any = grant.answer
        self._channel = channel
        self._talk = Talk(grant, channel)
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

    def action(
        self,
        key: str,
        do: Callable[[], Any],
        *,
        details: Any = None,
        repeatable: bool = False,
        check: Callable[[], Any] | None = None,
    ) -> Any:
        """Performs a side effect once, however often the task is tried (SPEC 7); gives its receipt.

            receipt = context.action("charge", lambda: bank.charge(order.id, order.total))

        That it is about to be done is durable before `do` is called, its receipt (what `do` gives, as JSON) after it. A
        later attempt gets the receipt, and `do` is not called. When an earlier attempt began and never said how it
        ended, nobody knows whether it was done:

        - repeatable=True: doing it twice does no harm; `do` is called again;
        - check: called to find out; it gives the receipt, or None if it was not done and is to be done now;
        - neither: a person decides; the handler is left, and begins anew afterwards.

        Exceptions of `do` go on, and mean that nothing was done: the next attempt does it anew. Raise ActionUnknown (a
        Transient) where that is not sure, as when an answer timed out. In an async handler `await` the call; `do` and
        `check` may be async there.

        key: names the action within the task. details: JSON that tells a person what it is about. Raises
        AttemptCanceled, before anything was done, when the attempt is to end; TypeError, after it was done, when the
        receipt is no JSON.
        """
        plan = actions.steps(self._talk, key, do, details, repeatable, check)
        if _in_a_loop():
            return actions.run_async(self._talk, plan)
        return actions.run(self._talk, plan)

    def spawn(
        self,
        key: str,
        capability: str,
        input: Any = None,
        *,
        owner: str | None = None,
        background: bool = False,
        **keys: Any,
    ) -> children.Child:
        """Makes a child task, or finds the one that an earlier attempt made under the same key (SPEC 8).

            parts = [context.spawn(f"part-{n}", "search", {"query": q}) for n, q in enumerate(queries)]
            found = [part.result() for part in parts]        # async: [await part for part in parts]

        The first result that is not there yet ends this attempt: the task waits for its children without a worker, and
        the handler runs from its beginning when they have ended; what it spawned and did (`action`) it then finds. A
        child's failure is raised as ChildFailed. When the parent ends without success, its children are canceled.

        owner: one of the role's `may_spawn`; the role itself when it has the capability. background: not waited for.
        keys: task keys of the Team file, such as max_attempts=3, timeout="5m", reserve={"tokens": 500}. Raises
        SpawnRefused when the Team does not allow it; AttemptCanceled when the attempt is to end.
        """
        made = children.definition(capability, input, owner, keys)
        return children.Child(self._talk, key, made, background)

    def artifact(self, name: str, source: str | bytes | os.PathLike[str]) -> artifacts.Artifact:
        """Keeps bytes, or the file at a path, as a named output beside the result (SPEC 8).

        It is stored outside Redis below CREWLINE_ARTIFACTS (an fsspec URL), named by its SHA-256, and never changes;
        the same content again is stored once. A new one is progress of the run. Blocks: in an async handler, use
        `asyncio.to_thread`. Raises OSError when the file cannot be read, Transient when it cannot be stored, Permanent
        when there is no place for artifacts.
        """
        kept = artifacts.keep(self._channel.artifacts, self.run, name, source)
        self._talk.ask("artifact", name=name, digest=kept.digest, size=kept.size, url=kept.url)
        return kept


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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
