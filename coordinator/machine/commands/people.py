"""Owns the commands of one kind: what people decide: cancels, actions, reviews, answers, limits, signals.

Must not decide anything; what each one means stands in the Lua file of its name (`lua/commands/`).
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.machine.commands.base import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun(Command):
    """An operator cancels a run. `ask` makes it idempotent: the same one again is `repeated` (SPEC 7)."""

    run: str
    ask: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTask(Command):
    """An operator cancels one task; the rest of the run goes on (SPEC 7)."""

    run: str
    task: str
    ask: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireCancel(Command):
    """The grace of an attempt that was told to end has passed: `unconfirmed` (SPEC 7)."""

    run: str
    task: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideAction(Command):
    """A person says how a started or unknown action ended: `confirmed` (with a receipt) or `failed` (SPEC 7, 9)."""

    run: str
    task: str
    key: str
    state: str
    payload: str
    digest: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideReview(Command):
    """A person closes a review; see the Lua file for what each decision does (SPEC 6)."""

    run: str
    review: str
    decision: str
    """accept, supply, reject, rerun."""
    payload: str
    digest: str
    facts: str
    version: int
    """The review's state_version that the decision was made on."""
    tainted: str
    """keep, or rerun."""
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTask(Command):
    """A person answers the question of a task that waits for input (SPEC 3)."""

    run: str
    task: str
    question: str
    """Digest of the question that is answered; empty for the one that is open."""
    payload: str
    digest: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRun(Command):
    """An operator lets a parked run go on (SPEC 5)."""

    run: str
    raises: str
    """Plan: JSON array of [run field of the limit, value, 1 if it is added], for example ["limit_tokens", 500, 1]."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalRun(Command):
    """An operator's named signal, a fact for rules (SPEC 4)."""

    run: str
    signal: str
    source: str
