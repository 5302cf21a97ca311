"""Owns the lead: one coordinator acts, the others stand by (SPEC 7).

The lead is a lease that Redis itself judges; taking it gives an epoch, and Lua refuses every write under an older one.
So nothing here has to be trusted for safety: whoever lost the lead and did not notice is told by its next command.
Must not act on runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from coordinator.machine.commands import Command, ResignLead, TakeLead
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import Query
from coordinator.wire.errors import MachineFault
from coordinator.wire.names import Refusal, ReplyStatus

DEFAULT_TTL_MS = 5_000
"""How long the lead lasts without a renewal (SPEC 7)."""
RENEWALS = 3
"""Renewals in the length of a lead."""
LOOKS = 20
"""Looks of a standby in the length of a lead: how soon it sees that the lead is free."""
SHORTEST_LOOK_MS, LONGEST_LOOK_MS = 20, 250
LONGEST_STEP_MS = 120_000
"""A step that takes longer is taken for one that hangs: the lead is left to another process. Checking and compiling a
Team of 100,000 tasks takes some 15 s on a busy machine."""

log = structlog.get_logger(__name__)


class Deposed(Exception):
    """Another coordinator leads: nothing more may be written under this epoch."""


def checked(replies: list[Reply]) -> list[Reply]:
    """The replies as they are; raises Deposed when one of them says that the epoch is old."""
    for reply in replies:
        if reply.word == Refusal.OLD_EPOCH:
            raise Deposed
    return replies


class Leader:
    """Takes, renews and gives up the lead for one process. clock: milliseconds, as the loop's."""

    def __init__(
        self,
        machine: Machine,
        holder: str,
        clock: Callable[[], int],
        ttl_ms: int = DEFAULT_TTL_MS,
    ) -> None:
        self._machine = machine
        self.holder = holder
        self._clock = clock
        self.ttl_ms = ttl_ms
        self.leads = False
        self._ask_at = 0
        self._held_at = 0
        """When the lead was last taken or renewed."""
        self._alive_at = 0
        """When the process last came by, between two steps."""

    @property
    def epoch(self) -> int:
        """The epoch under which this process last led; 0 before it ever did."""
        return self._machine.epoch

    @property
    def ask_at(self) -> int:
        """When the lead has to be renewed, or asked for again, ms."""
        return self._ask_at

    @property
    def has_lapsed(self) -> bool:
        """Whether the lead has ended by this process' own clock: it was paused, and somebody else may lead."""
        return self.leads and self._clock() - self._held_at >= self.ttl_ms

    def hold(self) -> bool:
        """Takes the lead or renews it when that is due; True while this process leads."""
        now = self._clock()
        self._alive_at = now
        if now >= self._ask_at:
            self._ask(now)
        return self.leads

    def step_down(self) -> None:
        """A write was refused because another one leads: stands by, and looks again soon."""
        if self.leads:
            log.warning("lead_lost", holder=self.holder, epoch=self._machine.epoch, why="a write was refused")
        self.leads = False
        self._ask_at = self._clock() + self._look_ms

    def resign(self) -> None:
        """Ends the lead at once, so that a successor need not wait for it to expire. For a clean end."""
        if self.leads:
            self.leads = False
            self._machine.apply(ResignLead(now=self._clock(), holder=self.holder))
            log.info("lead_resigned", holder=self.holder, epoch=self._machine.epoch)

    def needs_renewal(self) -> bool:
        """Whether the lead ends soon because a step takes long; not when the step seems to hang, nor when the lead has
        ended already: then the next write tells. For another thread."""
        now = self._clock()
        age = now - self._held_at
        return self.leads and self.ttl_ms // 2 <= age < self.ttl_ms and now - self._alive_at < LONGEST_STEP_MS

    def renewed(self, at: int) -> None:
        """Another thread renewed the lead, at a time (ms) before it asked."""
        self._held_at = at
        self._ask_at = at + self.ttl_ms // RENEWALS

    @property
    def _look_ms(self) -> int:
        return min(max(self.ttl_ms // LOOKS, SHORTEST_LOOK_MS), LONGEST_LOOK_MS)

    def _ask(self, now: int) -> None:
        reply = self._machine.apply(TakeLead(now=now, holder=self.holder, ttl_ms=self.ttl_ms))
        leads = reply.status == ReplyStatus.APPLIED
        if leads:
            self._machine.epoch = int(reply.data)
            self._held_at = now
        if leads and not self.leads:
            log.info("lead_taken", holder=self.holder, epoch=self._machine.epoch)
        elif self.leads and not leads:
            log.warning("lead_lost", holder=self.holder, epoch=self._machine.epoch, why="another one leads")
        self.leads = leads
        self._ask_at = now + (self.ttl_ms // RENEWALS if leads else self._look_ms)


class Fenced:
    """The machine as the parts of the loop use it: many commands or questions at once, and Deposed as soon as the
    epoch is old. took: told how many commands took how many seconds."""

    def __init__(self, machine: Machine, took: Callable[[int, float], None] | None = None) -> None:
        self._machine = machine
        self._took = took

    def apply_each(self, commands: Sequence[Command]) -> list[Reply | MachineFault]:
        """Applies commands in one pipeline; gives the replies in order, with a fault of ours in the place of a reply.
        Anything else that went wrong is raised, after all were tried."""
        if not commands:
            return []
        begun = time.perf_counter()
        answers = self._machine.apply_each(commands)
        if self._took is not None:
            self._took(len(commands), time.perf_counter() - begun)
        checked([answer for answer in answers if isinstance(answer, Reply)])
        replies: list[Reply | MachineFault] = []
        for answer in answers:
            if not isinstance(answer, Reply | MachineFault):
                raise answer
            replies.append(answer)
        return replies

    def apply_many(self, commands: Sequence[Command]) -> list[Reply]:
        """As `apply_each`, for commands that nothing goes on without: raises the first MachineFault."""
        replies = self.apply_each(commands)
        for reply in replies:
            if isinstance(reply, MachineFault):
                raise reply
        return [reply for reply in replies if isinstance(reply, Reply)]

    def read_many(self, queries: Sequence[Query]) -> list[Any]:
        """Asks several questions in one round trip; the answers in order."""
        return self._machine.read_many(queries)
