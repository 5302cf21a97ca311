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

from coordinator.machine.commands import Command, TakeLead
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import Query
from coordinator.wire.names import Refusal, ReplyStatus

DEFAULT_TTL_MS = 10_000
"""How long the lead lasts without a renewal: longer than any step of the loop takes."""
SHORTEST_MS = 1
"""What a renewal asks for when the lead is given up."""

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
        self._holder = holder
        self._clock = clock
        self._ttl_ms = ttl_ms
        self.leads = False
        self._ask_at = 0

    @property
    def epoch(self) -> int:
        """The epoch under which this process last led; 0 before it ever did."""
        return self._machine.epoch

    @property
    def ask_at(self) -> int:
        """When the lead has to be renewed (or asked for again), ms; a third of its length apart."""
        return self._ask_at

    def hold(self) -> bool:
        """Takes the lead or renews it when that is due; True while this process leads."""
        now = self._clock()
        if now >= self._ask_at:
            self._ask(now)
        return self.leads

    def step_down(self) -> None:
        """Leads no more; stands by and asks again when the other's lease may have ended."""
        if self.leads:
            log.warning("lead_lost", holder=self._holder, epoch=self._machine.epoch)
        self.leads = False
        self._ask_at = self._clock() + self._ttl_ms // 3

    def give_up(self) -> None:
        """Ends the lead at once, so that a successor need not wait for it to expire. For a clean end."""
        if self.leads:
            self._machine.apply(TakeLead(now=self._clock(), holder=self._holder, ttl_ms=SHORTEST_MS))
            self.leads = False

    def _ask(self, now: int) -> None:
        reply = self._machine.apply(TakeLead(now=now, holder=self._holder, ttl_ms=self._ttl_ms))
        leads = reply.status == ReplyStatus.APPLIED
        if leads:
            self._machine.epoch = int(reply.data)
        if leads and not self.leads:
            log.info("lead_taken", holder=self._holder, epoch=self._machine.epoch)
        elif self.leads and not leads:
            log.warning("lead_lost", holder=self._holder, epoch=self._machine.epoch)
        self.leads = leads
        self._ask_at = now + self._ttl_ms // 3


class Fenced:
    """The machine as the parts of the loop use it: many commands or questions at once, and Deposed as soon as the
    epoch is old. took: told how many commands took how many seconds."""

    def __init__(self, machine: Machine, took: Callable[[int, float], None] | None = None) -> None:
        self._machine = machine
        self._took = took

    def apply_many(self, commands: Sequence[Command]) -> list[Reply]:
        """Applies commands in one pipeline; gives the replies in order."""
        if not commands:
            return []
        begun = time.perf_counter()
        replies = self._machine.apply_many(commands)
        if self._took is not None:
            self._took(len(commands), time.perf_counter() - begun)
        return checked(replies)

    def read_many(self, queries: Sequence[Query]) -> list[Any]:
        """Asks several questions in one round trip; the answers in order."""
        return self._machine.read_many(queries)
