"""Owns the exported thread as data: which field means what, and what stands in for a missing one
(docs/thread-format.md).

Must not attribute, classify or render. Must not refuse anything but a document that is no thread: unknown
fields are passed over here (they stay in thread.json), and missing or unreadable ones have a fallback.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANSWER = "answer"
"""Variant of a text that is the answer of the workflow in which it stands."""

Json = Mapping[str, Any]


class InvalidThread(ValueError):
    """This is no exported thread; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something that an answer rests on."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a step shows. `rest`: the content of an item of an unknown kind, as it came; else
    None.
    """

    type: str
    variant: str
    text: str
    sources: tuple[Source, ...]
    payload: Payload | None
    rest: Any


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a workflow."""

    title: str
    tool: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Payload:
    """The work of a sub-agent, or of a nested workflow. `below`: ids of the payloads below its steps, in
    order.
    """

    id: str
    headline: str
    objective: str
    status: str
    locked_reason: str
    completed_at: int | None
    steps: tuple[Step, ...]
    answer: str
    sources: tuple[Source, ...]
    spawned: bool
    below: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One entry of the conversation. `number`: from 1, in order of creation. `below`: as for a Payload."""

    number: int
    id: str
    query: str
    created_at: int | None
    status: str
    locked_reason: str
    steps: tuple[Step, ...]
    answer: str
    sources: tuple[Source, ...]
    notification: bool
    below: tuple[str, ...]

    @property
    def key(self) -> str:
        """Names the turn, here and in locations: `turn_0007`."""
        return f"turn_{self.number:04d}"


@dataclass(frozen=True, slots=True)
class Child:
    """A top-level payload of a background entry, with what that entry says of it.

    `key`: unique in the thread, the same whatever the order of the file. `alone`: its workflow holds no other
    child, so that the workflow's status is this child's. `locked_reason`: the payload's own, else the
    workflow's, else the entry's.
    """

    key: str
    payload: Payload
    workflow_status: str
    alone: bool
    locked_reason: str
    updated_at: int | None

    @property
    def done_at(self) -> int | None:
        """When it completed; for want of that, when its entry was last updated."""
        return self.payload.completed_at if self.payload.completed_at is not None else self.updated_at


@dataclass(frozen=True, slots=True)
class Thread:
    """An exported conversation. `children` are in order of completion. `document`: as it came."""

    id: str
    title: str
    last_updated: str
    turns: tuple[Turn, ...]
    children: tuple[Child, ...]
    document: Json
