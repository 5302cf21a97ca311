"""Owns the outline of a thread: every piece of work in its one place, with the status from that level's own
source.

Headings, the `interruptions` list and the warnings are all read off this outline, so that they cannot differ
(SPEC 8). Must not render, and must not log: `warnings` gives what a caller logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator.agent_threads.attribution import Place, Placement, attribute_thread
from coordinator.agent_threads.interruptions import HEADINGS, LISTED, InterruptionKind, classify_interruption
from coordinator.agent_threads.model import Child, InvalidThread, Payload, Step, Thread, Turn

UNASSIGNED = "background_unassigned"
HEADLINE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Section:
    """A turn, a sub-agent or a folded nested workflow, and the sections in it.

    `status`, `locked_reason`: as they stand at this level's own source. `own`: ids of payloads in its steps
    that are told as a section of their own, here or elsewhere: in the steps they are but mentioned.
    """

    location: str
    headline: str
    status: str
    locked_reason: str
    work: Turn | Payload
    subagents: tuple[Section, ...] = ()
    stubs: tuple[Section, ...] = ()
    nested: Mapping[int, Section] = field(default_factory=dict)

    @property
    def kind(self) -> InterruptionKind:
        """How it stands."""
        return classify_interruption(self.status, self.locked_reason)

    @property
    def mark(self) -> str:
        """What its heading says of that; nothing for completed and other."""
        return HEADINGS.get(self.kind, "")


@dataclass(frozen=True, slots=True)
class Outline:
    """A thread with all its background work attributed. `told_at`: location by id, of what has a section of
    its own.
    """

    thread: Thread
    places: Mapping[str, Place]
    turns: tuple[Section, ...]
    unassigned: tuple[Section, ...]
    told_at: Mapping[str, str]

    def sections(self) -> Iterator[Section]:
        """Every section, in the order in which the rendered conversation has them."""
        yield from _walk(self.turns)
        yield from _walk(self.unassigned)


def outline(thread: Thread) -> Outline:
    """Attributes the thread's background work and gives the outline. Raises InvalidThread if it nests too deeply."""
    try:
        return _outline(thread)
    except RecursionError:
        raise InvalidThread("the sub-agents of this thread are nested too deeply") from None


def _outline(thread: Thread) -> Outline:
    builder = _Builder(thread)
    turns = tuple(builder.turn(turn) for turn in thread.turns)
    unassigned = tuple(
        builder.child(child, UNASSIGNED) for child in builder.children_at("", Placement.UNASSIGNED)
    )
    return Outline(thread, builder.places, turns, unassigned, builder.told_at)


def interruptions(found: Outline) -> list[dict[str, str]]:
    """The `interruptions` list: what was interrupted by a limit, awaits or was canceled. Empty: leave the key
    out.
    """
    return [
        {
            "location": section.location,
            "kind": str(section.kind),
            "headline": section.headline,
            "status": section.status,
        }
        for section in found.sections()
        if section.kind in LISTED
    ]


def warnings(found: Outline) -> list[dict[str, str]]:
    """What is to be logged: everything but completed, `other` included."""
    return [
        {
            "location": section.location,
            "kind": str(section.kind),
            "status": section.status,
            "locked_reason": section.locked_reason,
        }
        for section in found.sections()
        if section.kind is not InterruptionKind.COMPLETED
    ]


def thread_document(found: Outline) -> dict[str, Any]:
    """The thread as thread.json holds it: as it came, with `interruptions` at its end if there are any."""
    document = {name: value for name, value in found.thread.document.items() if name != "interruptions"}
    listed = interruptions(found)
    if listed:
        document["interruptions"] = listed
    return document


def _walk(sections: Iterable[Section]) -> Iterator[Section]:
    for section in sections:
        yield section
        yield from _walk(section.nested.values())
        yield from _walk(section.subagents)
        yield from _walk(section.stubs)


class _Builder:
    """Puts sections together; `told_at` fills as it goes."""

    def __init__(self, thread: Thread) -> None:
        self.places = attribute_thread(thread)
        self.told_at: dict[str, str] = {}
        self._by_parent: dict[tuple[str, Placement], list[Child]] = {}
        for child in thread.children:  # in order of completion
            place = self.places[child.key]
            self._by_parent.setdefault((place.parent, place.placement), []).append(child)
        self._background = {child.payload.id for child in thread.children if child.payload.id}

    def children_at(self, parent: str, placement: Placement) -> list[Child]:
        return self._by_parent.get((parent, placement), [])

    def turn(self, turn: Turn) -> Section:
        matched = self.children_at(turn.key, Placement.MATCHED)
        return Section(
            location=turn.key,
            headline=_headline(turn.query),
            status=turn.status,
            locked_reason=turn.locked_reason,
            work=turn,
            subagents=self._subagents(turn.key, turn.key, turn, turn.locked_reason),
            stubs=tuple(self.child(child, f"{turn.key}/subagent_stub") for child in matched),
            nested=self._nested(turn.steps, turn.key, turn.locked_reason, direct=True),
        )

    def child(self, child: Child, location: str) -> Section:
        """A child with its background side's status; an anchor's copy of it is not looked at."""
        anchored = self.places[child.key].placement is Placement.ANCHORED
        status = child.payload.status or child.workflow_status
        if anchored and child.alone and _completed(status):
            status = child.workflow_status or status
        return self._payload(child.payload, location, status, child.locked_reason, child.key)

    def _payload(self, payload: Payload, location: str, status: str, reason: str, key: str) -> Section:
        if payload.id:
            self.told_at[payload.id] = location
        return Section(
            location=location,
            headline=_headline(payload.headline or payload.objective),
            status=status,
            locked_reason=reason,
            work=payload,
            subagents=self._subagents(key, location, payload, reason),
            nested=self._nested(payload.steps, location, reason, direct=True),
        )

    def _subagents(self, key: str, location: str, work: Turn | Payload, reason: str) -> tuple[Section, ...]:
        """Sub-agents in the order in which they stand in the steps. One without a background side is its
        copy.
        """
        rank = {name: place for place, name in enumerate(work.below)}
        anchored = self.children_at(key, Placement.ANCHORED) if key else []
        found = [(rank[child.payload.id], self.child(child, f"{location}/subagent")) for child in anchored]
        copies = {p.id or id(p): p for p in _direct(work.steps) if p.spawned and p.id not in self._background}
        for payload in copies.values():  # of several copies of one in these steps, the last is the latest
            if payload.id not in self.told_at:
                at = rank.get(payload.id, len(rank))
                own = payload.locked_reason or reason
                found.append((at, self._payload(payload, f"{location}/subagent", payload.status, own, "")))
        return tuple(section for _, section in sorted(found, key=lambda item: item[0]))

    def _nested(
        self, steps: Iterable[Step], location: str, reason: str, *, direct: bool
    ) -> dict[int, Section]:
        """Sections of nested workflows that travel inside their parent, by the identity of the payload
        object.
        """
        found = {}
        for payload in _direct(steps):
            if payload.id in self._background or (direct and payload.spawned):
                continue
            where = location if location.endswith("/nested") else f"{location}/nested"
            own = payload.locked_reason or reason
            found[id(payload)] = Section(
                location=where,
                headline=_headline(payload.headline),
                status=payload.status,
                locked_reason=own,
                work=payload,
                nested=self._nested(payload.steps, where, own, direct=False),
            )
        return found


def _direct(steps: Iterable[Step]) -> Iterator[Payload]:
    return (item.payload for step in steps for item in step.items if item.payload is not None)


def _completed(status: str) -> bool:
    return classify_interruption(status, "") is InterruptionKind.COMPLETED


def _headline(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= HEADLINE_CHARACTERS else line[: HEADLINE_CHARACTERS - 1] + "…"
