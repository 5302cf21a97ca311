"""Owns side effects: `started` is durable before the effect, `confirmed` with its receipt after it (SPEC 7).

The order of steps is written once, as a generator; it is driven step by step in sync and in async handlers. Must not
decide what becomes of an action that nobody knows the end of: the handler says, or a person.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter

from coordinator.wire.digest import InvalidPayload, encode, parse_json
from coordinator.wire.grants import Answer, ChildReply
from coordinator.wire.names import Refusal, ReplyStatus
from coordinator.wire.reports import MAX_ACTION
from workers.durable.talk import Talk
from workers.outcomes import AttemptCanceled, AttemptLeft, Permanent, Transient, error_text, shorten

CONFIRMED, UNKNOWN = "action_confirmed", "action_unknown"
TRIES = 3
"""How often an action is looked at again when a person decides about it in the very moment."""


class ActionUnknown(Transient):
    """Nobody knows whether the side effect was done: raise it in `do`, for example when its answer timed out."""


class ActionRefused(Permanent):
    """The coordinator did not let the action begin."""


@dataclass(frozen=True, slots=True)
class Call:
    """A step: call the handler's own function."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Say:
    """A step: say something, and wait for the answer or only until it is stored."""

    kind: str
    fields: dict[str, Any]
    wait: bool = True


Steps = Generator[Call | Say, Any, Any]


def steps(
    talk: Talk,
    key: str,
    do: Callable[[], Any],
    details: Any,
    repeatable: bool,
    check: Callable[[], Any] | None,
) -> Steps:
    """The steps of one action; its value is the receipt."""
    if repeatable and check is not None:
        raise ValueError(f"action {key}: give repeatable or check, not both")
    about = "" if details is None else _text(key, "details", details)
    for _ in range(TRIES):
        reply = yield from _start(key, about, repeatable)
        if reply.word == CONFIRMED:
            return reply.receipt
        if repeatable or (reply.word != UNKNOWN and key not in talk.in_doubt):
            break
        if check is not None:
            found = yield Call(check)
            reply = yield from _start(key, about, True)
            if reply.word == CONFIRMED or found is None:
                break
            return (yield from _confirm(talk, key, found))
        if key in talk.in_doubt:
            raise ActionUnknown(f"action {key}: this attempt does not know whether it was done")
        said = yield Say("action_doubt", {"key": key})
        if said.status != ReplyStatus.REFUSED:
            raise AttemptLeft.over()
        if said.word != Refusal.UNKNOWN_ACTION:
            raise ActionRefused(f"action {key}: {said.word} {said.detail}".strip())
    else:
        raise ActionRefused(f"action {key}: it is being decided by somebody else")
    if reply.word == CONFIRMED:
        return reply.receipt
    if talk.channel.canceled():
        yield _not_done(key)
        raise AttemptCanceled("the attempt is to end")
    return (yield from _effect(talk, key, do))


def _start(key: str, about: str, again: bool) -> Generator[Say, Any, Answer]:
    try:
        reply = yield Say("action", {"key": key, "payload": about, "again": int(again)})
    except (AttemptCanceled, asyncio.CancelledError):
        yield _not_done(key)  # it may have been recorded as started
        raise
    if not isinstance(reply, Answer) or reply.status == ReplyStatus.REFUSED:
        raise ActionRefused(f"action {key}: {reply.word} {reply.detail}".strip())
    return reply


def _effect(talk: Talk, key: str, do: Callable[[], Any]) -> Steps:
    talk.in_doubt.add(key)
    try:
        value = yield Call(do)
    except ActionUnknown:
        raise
    except Exception as error:
        text = error_text("permanent", type(error).__name__, shorten(str(error), 2000))
        yield Say("action_end", {"key": key, "state": "failed", "payload": text}, wait=False)
        talk.in_doubt.discard(key)
        raise
    return (yield from _confirm(talk, key, value))


def _confirm(talk: Talk, key: str, value: Any) -> Steps:
    """Records the receipt, and gives it as every later attempt will get it."""
    try:
        text, fault = _text(key, "receipt", value), None
    except TypeError as error:
        text, fault = "null", error  # it was done all the same, and must not be done again
    yield Say("action_end", {"key": key, "state": "confirmed", "payload": text}, wait=False)
    talk.in_doubt.discard(key)
    if fault is not None:
        raise fault
    return parse_json(text)


def _not_done(key: str) -> Say:
    text = error_text("canceled", "AttemptCanceled", "the attempt was to end before the action was done")
    return Say("action_end", {"key": key, "state": "failed", "payload": text}, wait=False)


def _text(key: str, what: str, value: Any) -> str:
    """JSON text of a receipt or of details; raises TypeError for what is none or too long."""
    try:
        if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            value = TypeAdapter(type(value)).dump_python(value, mode="json", by_alias=True)
        text = encode(value)
    except (InvalidPayload, ValueError) as error:
        raise TypeError(f"action {key}: the {what} is no JSON: {error}") from None
    if len(text) > MAX_ACTION:
        raise TypeError(f"action {key}: the {what} has more than {MAX_ACTION} characters")
    return text


def run(talk: Talk, plan: Steps) -> Any:
    """Drives the steps in this thread."""
    step = _advance(plan, None, None)
    while not isinstance(step, _End):
        value, error = None, None
        try:
            value = _call(step) if isinstance(step, Call) else _say(talk, step)
        except BaseException as raised:
            error = raised
        step = _advance(plan, value, error)
    return step.value


async def run_async(talk: Talk, plan: Steps) -> Any:
    """Drives the steps in the running loop; waits for the coordinator in a thread, so that the loop goes on."""
    step = _advance(plan, None, None)
    while not isinstance(step, _End):
        value, error = None, None
        try:
            if isinstance(step, Call):
                value = step.function()
                if inspect.isawaitable(value):
                    value = await value
            else:
                value = await asyncio.to_thread(_say, talk, step)
        except BaseException as raised:
            error = raised
        step = _advance(plan, value, error)
    return step.value


@dataclass(frozen=True, slots=True)
class _End:
    value: Any


def _advance(plan: Steps, value: Any, error: BaseException | None) -> Call | Say | _End:
    try:
        return plan.send(value) if error is None else plan.throw(error)
    except StopIteration as end:
        return _End(end.value)


def _call(step: Call) -> Any:
    value = step.function()
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("an async function was given to context.action in a sync handler")
    return value


def _say(talk: Talk, step: Say) -> Answer | ChildReply | None:
    if not step.wait:
        talk.tell(step.kind, **step.fields)
        return None
    return talk.ask(step.kind, **step.fields)
