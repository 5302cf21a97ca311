"""Owns one attempt on the worker: its lease as this process knows it, and the run of its handler to an Outcome.

Must not know Redis, RQ or processes. Times of the lease are of this machine's monotonic clock: the moment before which
the lease cannot have been granted, so that a lease is never thought longer than it is (C-05).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from coordinator.wire.bindings import Unresolved, resolve
from coordinator.wire.grants import Grant
from coordinator.wire.names import FailureClass
from coordinator.wire.reports import End, HandBackReport, LeasedRequest, Renew
from workers.context import Context
from workers.durable.talk import REQUESTS, Channel
from workers.handlers import Handler, InputInvalid
from workers.outcomes import OVER, InvalidOutput, Outcome, failed, failure_of, succeeded


@dataclass(eq=False, slots=True)
class Attempt:
    """An attempt whose lease this worker was granted.

    not_before: monotonic time before which the grant cannot have been made. received: when it was read here.
    """

    role: str
    worker: str
    grant: Grant
    not_before: float
    received: float
    began: float = 0.0
    """When its handler began, 0 before."""
    renewed: float = 0.0
    """When the lease was last renewed, by this side's knowledge."""
    tokens: int = 0
    cost_micros: int = 0
    cancel_reason: str = ""
    """Why it is to end, empty while it is not."""
    cancel_since: float = 0.0
    on_cancel: Callable[[], None] | None = None
    """Called once, from any thread, when it is to end."""
    _progress: bool = False
    _details: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.renewed = self.not_before

    @property
    def identity(self) -> tuple[str, str, int]:
        """Run, task and number."""
        return self.grant.run, self.grant.task, self.grant.attempt

    @property
    def lease_ends(self) -> float:
        """When the lease ends unless it is renewed again (monotonic)."""
        return self.renewed + self.grant.heartbeat_ms / 1000

    @property
    def renew_at(self) -> float:
        """When the next renewal is due: a third of the heartbeat after the last (SPEC 7)."""
        return self.renewed + self.grant.heartbeat_ms / 3000

    @property
    def times_out(self) -> float:
        """When the attempt's own timeout has passed for certain (monotonic); infinity without one."""
        if not self.grant.timeout_at:
            return float("inf")
        return self.received + max(0, self.grant.timeout_at - self.grant.now) / 1000

    def may_start(self, now: float) -> bool:
        """Whether the lease surely lives, with a tenth to spare, and nobody asked for its end."""
        return not self.cancel_reason and now < self.lease_ends - self.grant.heartbeat_ms / 10_000

    def cancel(self, reason: str) -> None:
        """Asks for the attempt's end; the first reason stays."""
        with self._lock:
            if self.cancel_reason:
                return
            self.cancel_since = time.monotonic()
            self.cancel_reason = reason or "canceled"
            tell = self.on_cancel
        if tell is not None:
            tell()

    def note_progress(self, details: str) -> None:
        """Keeps the newest details until the next renewal takes them along."""
        with self._lock:
            self._progress = True
            self._details = details or self._details

    @property
    def has_progress(self) -> bool:
        """Whether the handler said something that no renewal took along yet."""
        return self._progress

    def renew(self) -> Renew:
        """The entry that renews the lease; takes the progress said so far along."""
        with self._lock:
            progress, details = self._progress, self._details
            self._progress, self._details = False, ""
        run, task, number = self.identity
        return Renew(
            run=run, task=task, attempt=number, worker=self.worker, lease=self.grant.lease,
            progress=int(progress), details=details,
        )  # fmt: skip

    def request(self, kind: str, fields: dict[str, Any], reply_to: str, request: str) -> LeasedRequest:
        """The entry of something that the handler says. What it said of its use is kept for the end."""
        run, task, number = self.identity
        if kind == "use":
            self.tokens, self.cost_micros = fields["tokens"], fields["cost_micros"]
        elif kind == "action_doubt":
            fields = {**fields, "tokens": self.tokens, "cost_micros": self.cost_micros}
        return REQUESTS[kind](
            run=run, task=task, attempt=number, worker=self.worker, lease=self.grant.lease,
            reply_to=reply_to, request=request, **fields,
        )  # fmt: skip

    def end(self, outcome: Outcome) -> End | None:
        """The entry that reports the outcome; None when there is nothing to report."""
        if outcome.outcome == OVER:
            return None
        run, task, number = self.identity
        return End(
            run=run, task=task, attempt=number, worker=self.worker, lease=self.grant.lease,
            outcome=outcome.outcome, payload=outcome.payload, error=outcome.error,
            retry_after_ms=outcome.retry_after_ms, tokens=self.tokens, cost_micros=self.cost_micros,
        )  # fmt: skip

    def hand_back(self, reason: str) -> HandBackReport:
        """The entry that returns the attempt because its handler did not begin."""
        run, task, number = self.identity
        return HandBackReport(
            run=run, task=task, attempt=number, worker=self.worker, lease=self.grant.lease, reason=reason
        )


def prepare(handler: Handler, grant: Grant, channel: Channel) -> tuple[Any, ...] | Outcome:
    """The arguments for the handler's call, or the outcome if its input is not there or does not fit."""
    try:
        value = resolve(grant.input if grant.input is not None else {}, grant.inputs or {}, grant.results)
    except Unresolved as error:
        return failed(FailureClass.PERMANENT, "InputUnresolved", str(error))
    context = Context(grant, value, channel)
    if not handler.takes_input:
        return (context,)
    try:
        return context, handler.read_input(value)
    except InputInvalid as error:
        return failed(FailureClass.PERMANENT, "InputInvalid", str(error))


def conclude(handler: Handler, grant: Grant, value: Any) -> Outcome:
    """The outcome of what the handler returned: what is no JSON, no fit or too large is `invalid_output`, and not sent.

    Raises whatever the value's own code raises.
    """
    try:
        text = handler.write_result(value)
    except InvalidOutput as error:
        return failed(FailureClass.INVALID_OUTPUT, "InvalidOutput", str(error), handler.where)
    size = len(text) if text.isascii() else len(text.encode())
    if size > grant.output_bytes:
        message = f"the result has {size} bytes, allowed are {grant.output_bytes}"
        return failed(FailureClass.INVALID_OUTPUT, "OutputTooLarge", message, handler.where)
    return succeeded(text)


def perform(
    handler: Handler, grant: Grant, channel: Channel, watch: Callable[[asyncio.Task[Any]], None] | None = None
) -> Outcome:
    """Runs the handler to its outcome in this thread; async ones in a loop of their own.

    watch: given the task of an async handler, so that it can be canceled. Nothing that a handler raises gets out.
    """
    arguments = prepare(handler, grant, channel)
    if isinstance(arguments, Outcome):
        return arguments
    try:
        if handler.is_async:
            value = asyncio.run(_drive(handler, arguments, watch))
        else:
            value = handler.function(*arguments)
        return conclude(handler, grant, value)
    except BaseException as error:
        return failure_of(error, was_canceled=channel.canceled())


async def perform_async(handler: Handler, grant: Grant, channel: Channel) -> Outcome:
    """Runs an async handler in the running loop; a cancel of its task becomes an outcome as well."""
    arguments = prepare(handler, grant, channel)
    if isinstance(arguments, Outcome):
        return arguments
    try:
        return conclude(handler, grant, await handler.function(*arguments))
    except BaseException as error:
        return failure_of(error, was_canceled=channel.canceled())


async def _drive(
    handler: Handler, arguments: tuple[Any, ...], watch: Callable[[asyncio.Task[Any]], None] | None
) -> Any:
    task = asyncio.current_task()
    if watch is not None and task is not None:
        watch(task)
    return await handler.function(*arguments)
