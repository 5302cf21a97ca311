"""Owns the memory of what the state machine failed on, so that one broken run keeps no other one from going on.

What is in here is left alone for a while and then tried again; it is lost with the process, and found again. Must not
repair anything, and must not guess: a fault is said in the log, by file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import structlog

from coordinator.machine.machine import Reply
from coordinator.wire.errors import MachineFault

REST_MS = 60_000
"""How long something that failed is left alone."""
REFUSED_REST_MS = 1_000
"""How long something that was refused is: its run is parked, or gone, and it would be found again at once."""
MOST_EXTRA = 5_000
"""At most so many more are read to see what lies behind those that are left alone."""

Subject = tuple[str, ...]
_Item = TypeVar("_Item")

log = structlog.get_logger(__name__)


class Quarantine:
    """Subjects (what was to be done, run, task) that the machine failed on."""

    def __init__(self) -> None:
        self._until: dict[Subject, int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left alone."""
        return not self._until

    def window(self, limit: int) -> int:
        """How many to read so that `limit` of them are to be worked on."""
        return limit + min(len(self._until), MOST_EXTRA)

    def healthy(
        self, now: int, items: Iterable[_Item], subject: Callable[[_Item], Subject], limit: int
    ) -> list[_Item]:
        """The first `limit` items that are not left alone at `now`."""
        if not self._until:
            return list(items)[:limit]
        self._until = {known: until for known, until in self._until.items() if until > now}
        return [item for item in items if subject(item) not in self._until][:limit]

    def rests(self, now: int, subject: Subject) -> bool:
        """Whether the subject is left alone at `now`."""
        return self._until.get(subject, 0) > now

    def rest(self, now: int, subject: Subject, fault: str) -> None:
        """Leaves the subject alone from now on, and says why."""
        self._until[subject] = now + REST_MS
        doing, run, *task = subject
        log.error("machine_fault", doing=doing, run=run, task="".join(task), fault=fault, again_in_ms=REST_MS)

    def wait(self, now: int, subject: Subject) -> None:
        """Leaves the subject alone for a moment: the machine refused it, and nothing is wrong with that."""
        self._until[subject] = now + REFUSED_REST_MS

    def sift(
        self, now: int, subjects: Sequence[Subject], replies: Sequence[Reply | MachineFault]
    ) -> list[tuple[Subject, Reply]]:
        """The replies that are ones, with their subjects; faults are put in here."""
        good = []
        for subject, reply in zip(subjects, replies, strict=True):
            if isinstance(reply, Reply):
                good.append((subject, reply))
            else:
                self.rest(now, subject, str(reply))
        return good
