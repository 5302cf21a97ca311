"""Owns the commands of one kind: what workers and outside systems report about attempts and their side effects.

Must not decide anything; what each one means stands in the Lua file of its name (`lua/commands/`).
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.machine.commands.base import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLease(Command):
    """A worker asks to begin a queued attempt; the grant is pushed to `reply_to` in the same call."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    """The unguessable token, made by the coordinator."""
    asked: str = ""
    """The asker's correlation id: who asks again with the same one, because the grant was lost, gets it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewLease(Command):
    """The worker's process lives; `progress` 1 also resets the progress timeout."""

    run: str
    task: str
    attempt: int
    role: str
    lease: str
    progress: int
    details: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAttempt(Command):
    """A worker says how an attempt ended. The verdict (applied, duplicate, conflict, late, refused) is SPEC 6."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    outcome: str
    """`succeeded`, or a FailureClass."""
    payload: str
    """Document: the result (canonical or not), or the question of a `missing_input`."""
    digest: str
    facts: str
    """Plan: JSON array of the ids of the rule facts that hold for this payload."""
    error: str
    """Document: {class, type, message, where, traceback}, or empty."""
    retry_after_ms: int
    tokens: int
    cost_micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBack(Command):
    """A worker returns an attempt that its handler did not begin: `never_started`, at no cost (SPEC 3)."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    """Empty when none was granted yet."""
    reason: str
    """`no_worker` (no such handler here), `draining`, `refused_start`, `busy` (taken ahead, and others were slow)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseQueued(Command):
    """A queued attempt's job is in no queue and was not asked for: `never_started` (SPEC 3)."""

    run: str
    task: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportExternal(Command):
    """An outside system reports on an external task (SPEC 3, 6)."""

    run: str
    task: str
    state: str
    """ReportState."""
    key: str
    """Idempotency key, empty when the reporter gave none."""
    payload: str
    digest: str
    facts: str
    error: str
    source: str
    """The authenticated name of the reporter."""
    tokens: int
    cost_micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UseBudget(Command):
    """A running attempt says what it used so far (totals); refused `over_budget` when that cannot be covered."""

    run: str
    task: str
    attempt: int
    role: str
    lease: str
    tokens: int
    cost_micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResults(Command):
    """Pushes one page of the requirements' results to `reply_to`, for grants too large to carry them inline."""

    run: str
    task: str
    attempt: int
    role: str
    lease: str
    page: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnChild(Command):
    """A running attempt makes a child task, or finds the one it made under the same key (SPEC 8)."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    key: str
    child: str
    """Plan: one task, as in `items`; its id and index are given by Lua."""
    background: int
    """1: the parent does not wait for it."""
    allowed: int
    """Whether the Team lets this role spawn for that owner."""
    most: int
    """Children that a run may spawn in all."""
    deepest: int
    """How deep children of children may go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordArtifact(Command):
    """A running attempt has put a named output outside Redis (SPEC 8); the same one again is `repeated`."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    artifact: str
    """Its name."""
    digest: str
    """SHA-256 over its bytes: `sha256:` and 64 hex digits."""
    size: int
    url: str
    """Where it lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAction(Command):
    """A running attempt is about to perform a side effect (SPEC 7). The reply says whether it is to do it."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    key: str
    payload: str
    """Document: what the action is about, for a person; may be empty, and then so is the digest."""
    digest: str
    again: int
    """1: the handler says that an unknown action may be done again (it is repeatable, or was checked)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAction(Command):
    """The attempt that started a side effect says how it ended: `confirmed` with a receipt, or `failed` (SPEC 7)."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    key: str
    state: str
    payload: str
    """Document: the receipt, or the error."""
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtAction(Command):
    """The handler cannot tell whether an unknown action was done: a review of kind `unknown_action` opens (SPEC 7)."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    key: str
    tokens: int
    cost_micros: int
