"""Owns the renewal of the lead while a step takes long: checking a large Team takes seconds, and meanwhile nobody may
take over and begin the same work again.

A thread with a connection of its own. Between two steps the leader renews by itself (`leader.py`), so mostly it only
looks. Must not take the lead: one that has ended is left to the next write, which Lua refuses if another one leads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog
from redis import Redis
from redis.exceptions import RedisError

from coordinator.machine.commands import TakeLead
from coordinator.machine.machine import Machine
from coordinator.runtime.leader import Leader
from coordinator.wire.names import ReplyStatus

LOOKS = 6
"""Looks in the length of a lead."""

log = structlog.get_logger(__name__)


class Renewal:
    """Renews for `leader` from entering to leaving. redis: for this thread alone; clock: the leader's."""

    def __init__(self, redis: Redis, namespace: str, leader: Leader, clock: Callable[[], int]) -> None:
        self._redis = redis
        self._machine = Machine(redis, namespace)
        self._leader = leader
        self._clock = clock
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="crewline-renewal", daemon=True)

    def look(self) -> bool:
        """Renews the lead if it ends soon; True when it did."""
        leader = self._leader
        if not leader.needs_renewal():
            return False
        now = self._clock()
        reply = self._machine.apply(TakeLead(now=now, holder=leader.holder, ttl_ms=leader.ttl_ms))
        if reply.status != ReplyStatus.APPLIED:
            return False
        leader.renewed(now)
        log.info("lead_renewed_in_a_long_step", epoch=int(reply.data))
        return True

    def _work(self) -> None:
        while not self._end.wait(self._leader.ttl_ms / LOOKS / 1000):
            try:
                self.look()
            except (RedisError, OSError) as error:
                log.warning("renewal_failed", error=type(error).__name__)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        self._redis.close()
