"""Owns `run_handler`: one handler alone, without Redis, by the code that a worker runs.

Must not be a fake of that code.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from coordinator.wire.grants import Answer, ChildReply, Grant, Message
from coordinator.wire.names import TaskState
from coordinator.wire.reports import SUCCEEDED
from workers.attempt import perform
from workers.context import MICROS
from workers.handlers import MARK, inspect_handler
from workers.outcomes import Outcome, failure_of


@dataclass(frozen=True, slots=True)
class HandlerRun:
    """How one run of a handler ended.

    outcome: `succeeded`, `canceled`, a failure class, or `children`: it waits for a child without a result. result: as
    JSON gives it back. error: {class, type, message, where, traceback}, or None. question: that of a MissingInput.
    cost: exact decimal. heartbeats: their details. actions: state by key. spawned: task keys of each child by its key.
    """

    outcome: str
    result: Any
    error: dict[str, str] | None
    question: Any
    retry_after_ms: int
    tokens: int
    cost: Decimal
    heartbeats: list[str]
    actions: dict[str, str] = field(default_factory=dict)
    spawned: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        """Whether there is a result."""
        return self.outcome == SUCCEEDED


@dataclass(slots=True)
class _Channel:
    is_canceled: bool
    is_draining: bool
    max_tokens: int | None
    max_micros: int | None
    artifacts: str
    receipts: Mapping[str, Any]
    children: Mapping[str, Any]
    actions: dict[str, str] = field(default_factory=dict)
    spawned: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: int = 0
    micros: int = 0
    details: list[str] = field(default_factory=list)

    def canceled(self) -> bool:
        return self.is_canceled

    def draining(self) -> bool:
        return self.is_draining

    def progress(self, details: str) -> None:
        self.details.append(details)

    def use(self, tokens: int, cost_micros: int) -> bool:
        self.tokens, self.micros = tokens, cost_micros
        over_tokens = self.max_tokens is not None and tokens > self.max_tokens
        return over_tokens or (self.max_micros is not None and cost_micros > self.max_micros)

    def ask(self, kind: str, fields: dict[str, Any], wait: bool = True) -> Message | None:
        if kind == "action" and fields["key"] in self.receipts:
            return Answer(status="applied", word="action_confirmed", receipt=self.receipts[fields["key"]])
        if kind == "action":
            self.actions[fields["key"]] = "started"
            return Answer(status="applied", word="action_started")
        if kind == "action_end":
            self.actions[fields["key"]] = fields["state"]
            return None
        if kind == "spawn":
            return self._child(fields["key"], json.loads(fields["child"]))
        return Answer(status="applied")

    def _child(self, key: str, definition: dict[str, Any]) -> ChildReply:
        self.spawned[key] = definition
        name = f"child[{list(self.spawned).index(key)}]"
        if key not in self.children:
            return ChildReply(child=name, state=TaskState.QUEUED)
        given = self.children[key]
        if not isinstance(given, Exception):
            return ChildReply(child=name, state=TaskState.SUCCEEDED, result=given)
        error = json.loads(failure_of(given).error)
        return ChildReply(child=name, state=TaskState.FAILED, error=error)


def run_handler(
    function: Callable[..., Any],
    input: Any = None,
    *,
    results: Mapping[str, Any] | None = None,
    states: Mapping[str, str] | None = None,
    run: str = "test-run",
    task: str = "",
    attempt: int = 1,
    timeout: float | None = None,
    output_bytes: int = 1 << 20,
    max_tokens: int | None = None,
    max_cost: Decimal | str | None = None,
    canceled: bool = False,
    draining: bool = False,
    answer: Any = None,
    receipts: Mapping[str, Any] | None = None,
    children: Mapping[str, Any] | None = None,
    artifacts: str | Path = "",
) -> HandlerRun:
    """Runs one handler, sync or async, as a worker would, and gives what it would report.

    input: the task's input, references already filled in. timeout: seconds, for `context.deadline` only.
    max_tokens, max_cost: above them `context.use` answers over_budget. canceled, draining, answer: what the context
    says. receipts: of actions that an earlier attempt confirmed, by key. children: results of children by key, or the
    exception that they failed with; one that is missing has not ended. artifacts: folder or URL for them.
    Raises InputFault for a function that cannot be a handler; nothing that the handler raises.
    """
    capability = (*getattr(function, MARK, ()), getattr(function, "__name__", "handler"))[0]
    grant = _grant(capability, input, dict(results or {}), timeout, output_bytes).model_copy(
        update={"run": run, "task": task or capability, "attempt": attempt, "answer": answer}
    )
    if states is not None:
        grant = grant.model_copy(update={"states": dict(states)})
    micros = None if max_cost is None else int(Decimal(max_cost) * MICROS)
    channel = _Channel(
        canceled, draining, max_tokens, micros, str(artifacts), dict(receipts or {}), dict(children or {})
    )
    outcome = perform(inspect_handler(function), grant, channel)
    return _told(outcome, channel)


def _told(outcome: Outcome, channel: _Channel) -> HandlerRun:
    payload = json.loads(outcome.payload) if outcome.payload else None
    return HandlerRun(
        outcome=outcome.outcome,
        result=payload if outcome.outcome == SUCCEEDED else None,
        error=json.loads(outcome.error) if outcome.error else None,
        question=payload if outcome.outcome != SUCCEEDED else None,
        retry_after_ms=outcome.retry_after_ms,
        tokens=channel.tokens,
        cost=Decimal(channel.micros) / MICROS,
        heartbeats=channel.details,
        actions=channel.actions,
        spawned=channel.spawned,
    )


def _grant(
    capability: str, value: Any, results: dict[str, Any], timeout: float | None, output_bytes: int
) -> Grant:
    now = int(time.time() * 1000)
    return Grant(
        run="test-run",
        task=capability,
        attempt=1,
        lease="test",
        capability=capability,
        key=f"{capability}/1",
        heartbeat_ms=30_000,
        timeout_at=now + int(timeout * 1000) if timeout is not None else 0,
        now=now,
        output_bytes=output_bytes,
        input={"from": "literal", "value": {} if value is None else json.loads(json.dumps(value))},
        results=results,
        states=dict.fromkeys(results, SUCCEEDED),
    )
