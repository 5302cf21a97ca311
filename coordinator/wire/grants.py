"""Owns what the coordinator tells workers and clients: grants, pages of results, replies and cancel notices (JSON).

The texts are built by the Lua call that makes them true (`machine/lua/rules/reply.lua`); here they are only read.
Unknown fields are ignored, so that a newer coordinator can say more. Must not decide what follows from a message.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

VERSION = 1
"""Version of the wire messages."""


class Message(BaseModel):
    """What every message has. request: the correlation id of the entry that it answers, or empty."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    v: Literal[1] = 1
    request: str = ""


class Grant(Message):
    """The lease of an attempt, and everything that its handler may see (SPEC 7, 8). Times in ms."""

    kind: Literal["grant"] = "grant"
    run: str
    task: str
    attempt: int
    lease: str
    capability: str
    key: str = ""
    heartbeat_ms: Annotated[int, Field(gt=0)]
    timeout_at: int
    """The coordinator's clock at which the attempt ends whatever it does; 0: never."""
    now: int
    """The coordinator's clock at the grant; with timeout_at it gives the worker a span, so clocks need not agree."""
    output_bytes: Annotated[int, Field(ge=0)]
    input: Any = None
    """The input template (SPEC 2); `wire.bindings.resolve` fills it in."""
    inputs: dict[str, Any] | None = None
    """The run's inputs, only when the template refers to them."""
    results: dict[str, Any] = {}
    states: dict[str, str] = {}
    answer: Any = None
    """The answer to the task's question, None without one."""
    pages: int = 0
    """Above 0: the results come separately, by so many pages."""


class Page(Message):
    """One page of results and states that did not fit the grant."""

    kind: Literal["page"] = "page"
    page: int
    results: dict[str, Any]
    states: dict[str, str] = {}


class Answer(Message):
    """What became of any other request: status is a ReplyStatus, word a refusal, a verdict or empty.

    receipt, details: of an action that was asked for, None when there are none.
    """

    kind: Literal["reply"] = "reply"
    status: str
    word: str = ""
    run: str = ""
    run_status: str = ""
    detail: str = ""
    receipt: Any = None
    details: Any = None


class ChildReply(Message):
    """What is known of a spawned child. result: when it succeeded; error {class, type, message}: when it failed."""

    kind: Literal["child"] = "child"
    status: str = "applied"
    word: str = ""
    detail: str = ""
    child: str
    state: str
    reason: str = ""
    result: Any = None
    error: dict[str, Any] | None = None


class CancelNotice(Message):
    """Told on the control list while a worker works: the attempt is to end (SPEC 7)."""

    kind: Literal["cancel"] = "cancel"
    run: str
    task: str
    attempt: int
    lease: str = ""
    reason: str = ""


AnyMessage = Annotated[Grant | Page | Answer | ChildReply | CancelNotice, Field(discriminator="kind")]
_MESSAGES: TypeAdapter[Grant | Page | Answer | ChildReply | CancelNotice] = TypeAdapter(AnyMessage)


class MalformedMessage(ValueError):
    """A message that cannot be read: its sender is of another version, or it was damaged."""


def parse_message(raw: bytes | str) -> Grant | Page | Answer | ChildReply | CancelNotice:
    """Reads any message; raises MalformedMessage. Integers of any length stay exact."""
    try:
        return _MESSAGES.validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:100]
        raise MalformedMessage(f"{where or 'message'}: {first['type']}") from error
