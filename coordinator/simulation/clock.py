"""Owns virtual time: the clock of a simulation and its agenda of what happens when.

Nothing here waits: time is moved by whoever drives (`simulate`, `explore`). Must not know what an entry does.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

EPOCH_MS = 1_767_225_600_000
"""Where virtual time starts: 2026-01-01T00:00:00Z."""


class VirtualClock:
    """Milliseconds since the epoch; moves only when told, and never backwards."""

    def __init__(self, now: int = EPOCH_MS) -> None:
        self.now = now

    def __call__(self) -> int:
        """The present instant, as the loop's injected clock."""
        return self.now

    def advance_to(self, instant: int) -> None:
        """Moves to `instant`; an instant of the past leaves the clock where it is."""
        self.now = max(self.now, instant)


@dataclass(order=True, slots=True)
class Happening:
    """Something that will happen. owner: who it belongs to, so that all of one owner can be dropped."""

    at: int
    order: int
    label: str = field(compare=False)
    owner: str = field(compare=False)
    act: Callable[[], None] = field(compare=False)


class Agenda:
    """Happenings by time, then in the order in which they were planned."""

    def __init__(self) -> None:
        self._heap: list[Happening] = []
        """Holds the ones that were taken or dropped, too, until they come to the top."""
        self._by_owner: dict[str, dict[int, Happening]] = {}
        self._planned = 0

    def add(self, at: int, label: str, owner: str, act: Callable[[], None]) -> None:
        """Plans `act` for the instant `at` (ms)."""
        self._planned += 1
        happening = Happening(at, self._planned, label, owner, act)
        self._by_owner.setdefault(owner, {})[happening.order] = happening
        heapq.heappush(self._heap, happening)

    def next_at(self) -> int | None:
        """When the next happening is due; None when there is none."""
        while self._heap and not self._is_planned(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0].at if self._heap else None

    def is_due(self, now: int) -> bool:
        """Whether anything is due at `now`."""
        at = self.next_at()
        return at is not None and at <= now

    def take_due(self, now: int) -> Happening | None:
        """Takes the earliest happening out when it is due at `now`."""
        if not self.is_due(now):
            return None
        happening = heapq.heappop(self._heap)
        self.take(happening)
        return happening

    def entries(self) -> list[Happening]:
        """All happenings in order, for a driver that chooses among them."""
        return sorted(happening for owned in self._by_owner.values() for happening in owned.values())

    def take(self, happening: Happening) -> None:
        """Takes one out, due or not."""
        owned = self._by_owner[happening.owner]
        del owned[happening.order]
        if not owned:
            del self._by_owner[happening.owner]

    def drop(self, owner: str) -> None:
        """Takes out all happenings of an owner."""
        self._by_owner.pop(owner, None)

    def _is_planned(self, happening: Happening) -> bool:
        return happening.order in self._by_owner.get(happening.owner, ())
