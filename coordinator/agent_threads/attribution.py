"""Owns where background work belongs: each piece in exactly one place, decided the same way every time (SPEC
8).

Pure, and independent of the order of what it is given. Knows neither files nor runs: an exported thread
(`attribute_thread`) and a run of Crewline's own (`runs.py`) are put into the same three words, Work, Parent
and Notice.

Ties: of two notifications equally near, the one earlier in the conversation is taken. Of several parents that
hold the same child, the first turn is taken, and a sub-agent only if no turn holds it. Two children that each
stand in the other's steps hold each other up by nothing: the one whose key sorts first loses its parent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from coordinator.agent_threads.model import Thread
from coordinator.agent_threads.times import SECOND_US

WINDOW_US = 10 * SECOND_US
"""How far from a child's completion a notification may lie, inclusive."""


class Placement(StrEnum):
    """Why a piece of background work stands where it stands."""

    ANCHORED = "anchored"
    """A payload with its id stands below its parent's own steps."""
    MATCHED = "matched"
    """A notification was created when it completed."""
    UNASSIGNED = "unassigned"
    """Neither: it stands in the appendix."""


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of background work. `key` is unique; `id` empty: it can be no parent's anchor; `done_at` in
    microseconds.
    """

    key: str
    id: str
    done_at: int | None


@dataclass(frozen=True, slots=True)
class Parent:
    """Something with steps of its own. `below`: the ids that stand below them; `order`: where it stands,
    smallest first.
    """

    key: str
    order: tuple[int, str]
    below: Sequence[str]


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification that some work ended, without steps of its own; `created_at` in microseconds."""

    key: str
    order: tuple[int, str]
    created_at: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a piece of work belongs. `parent`: key of a Parent or a Notice; empty when unassigned."""

    placement: Placement
    parent: str = ""


APPENDIX = Place(Placement.UNASSIGNED)


def attribute(
    works: Iterable[Work], parents: Iterable[Parent], notices: Iterable[Notice]
) -> dict[str, Place]:
    """Gives each work's place by its key, in the order of the keys. A Parent may have the key of a Work."""
    by_key = {work.key: work for work in works}
    places = dict.fromkeys(sorted(by_key), APPENDIX)
    anchors = _anchors(by_key.values(), parents)
    places.update({key: Place(Placement.ANCHORED, parent) for key, parent in anchors.items()})
    left = [work for key, work in by_key.items() if key not in anchors]
    places.update(_matches(left, sorted(notices, key=lambda notice: notice.order)))
    return places


def attribute_thread(thread: Thread) -> dict[str, Place]:
    """Gives each child's place by its key; the parents are turns (`turn_0007`) and other children (their
    key).
    """
    works = [Work(child.key, child.payload.id, child.done_at) for child in thread.children]
    parents = [Parent(turn.key, (0, turn.key), turn.below) for turn in thread.turns]
    parents += [Parent(child.key, (1, child.key), child.payload.below) for child in thread.children]
    notices = [
        Notice(turn.key, (turn.number, turn.key), turn.created_at)
        for turn in thread.turns
        if turn.notification and turn.created_at is not None
    ]
    return attribute(works, parents, notices)


def _anchors(works: Iterable[Work], parents: Iterable[Parent]) -> dict[str, str]:
    """Key of the parent by key of the work, for all work that stands below some parent's steps."""
    holders: dict[str, list[Parent]] = {}
    for parent in sorted(parents, key=lambda parent: parent.order):
        for name in dict.fromkeys(parent.below):
            holders.setdefault(name, []).append(parent)
    found = {}
    for work in works:
        if work.id:
            keys = [parent.key for parent in holders.get(work.id, ()) if parent.key != work.key]
            if keys:
                found[work.key] = keys[0]
    return _without_circles(found)


def _without_circles(parent_of: Mapping[str, str]) -> dict[str, str]:
    """Takes one parent out of each circle of work that holds each other, so that all of it hangs on
    something.
    """
    kept = dict(parent_of)
    sound: set[str] = set()
    for start in sorted(kept):
        path: dict[str, None] = {}
        key = start
        while key in kept and key not in sound and key not in path:
            path[key] = None
            key = kept[key]
        if key in path:
            circle = list(path)[list(path).index(key) :]
            del kept[min(circle)]
        sound.update(path)
    return kept


def _matches(works: Iterable[Work], notices: Sequence[Notice]) -> dict[str, Place]:
    """All pairs within the window by their difference in time, taken greedily; each work is used once."""
    by_time = sorted((notice.created_at, rank) for rank, notice in enumerate(notices))
    pairs = []
    for work in works:
        if work.done_at is not None:
            first = bisect_left(by_time, (work.done_at - WINDOW_US, 0))
            last = bisect_left(by_time, (work.done_at + WINDOW_US, len(by_time)))
            pairs += [
                (abs(at - work.done_at), rank, work.done_at, work.key) for at, rank in by_time[first:last]
            ]
    found: dict[str, Place] = {}
    for _, rank, _, key in sorted(pairs):
        found.setdefault(key, Place(Placement.MATCHED, notices[rank].key))
    return found
