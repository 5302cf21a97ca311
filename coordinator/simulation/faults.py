"""Owns the faults that `explore` lets happen: lost and doubled messages and jobs, lost answers, dying coordinators.

Each fault sits where the real one would: in what carries a message, in what hands out a job, in the client's call of
Redis. Must not choose when a fault happens (that is the seeded driver), and must not touch what is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from redis import Redis

from coordinator.machine.commands import Command
from coordinator.machine.machine import Machine, Reply
from coordinator.simulation.actors.post import Post
from coordinator.simulation.exploration.witness import Witness
from coordinator.simulation.invariants import Violation
from coordinator.wire import channels
from coordinator.wire.errors import MachineFault
from coordinator.wire.reports import Entry


class Fault(StrEnum):
    """What can go wrong."""

    MESSAGE_LOST = "message_lost"
    """A message never reaches the inbox."""
    MESSAGE_DOUBLED = "message_doubled"
    """A message reaches the inbox twice."""
    JOB_VANISHED = "job_vanished"
    """A job is in no queue any more."""
    JOB_DOUBLED = "job_doubled"
    """A job is popped by two workers."""
    ENTRY_MALFORMED = "entry_malformed"
    """An entry stands in an inbox that nobody can read."""
    ENTRY_FOREIGN = "entry_foreign"
    """Somebody reports on a task that the run does not have."""
    WORKER_DRAINED = "worker_drained"
    """A worker hands its attempt back, whatever it has begun."""
    WORKER_DIED = "worker_died"
    """A worker says nothing more."""
    ANSWER_LOST = "answer_lost"
    """The answers of a pipeline are lost, and its calls are sent again."""
    DIED_BEFORE = "coordinator_died_before"
    """The coordinator dies before its calls reach Redis."""
    DIED_BETWEEN = "coordinator_died_between"
    """The coordinator dies when some of its calls were applied."""
    DIED_AFTER = "coordinator_died_after"
    """The coordinator dies before it read the answers."""
    LEADER_CHANGED = "leader_changed"
    """Another coordinator takes over; the old one does not know it yet."""
    TIME_PASSED = "time_passed"
    """Time passes without anybody doing anything."""


class CoordinatorDied(Exception):
    """The coordinator's process ended here."""


class FaultyPost(Post):
    """A carrier that loses or doubles the messages of the present happening."""

    def __init__(self, redis: Redis, namespace: str) -> None:
        super().__init__(redis, namespace)
        self.copies = 1
        self.lost: Counter[str] = Counter()
        """Messages lost so far, by inbox."""

    def scrawl(self, role: str) -> None:
        """Something unreadable comes into the inbox of a role."""
        self._redis.xadd(channels.inbox(self.namespace, role), {"kind": "end", "task": b"\xff"})
        self.sent += 1

    def _carry(self, stream: str, entry: Entry) -> None:
        if not self.copies:
            self.lost[stream] += 1
        for _ in range(self.copies):
            super()._carry(stream, entry)


class FaultyMachine(Machine):
    """A machine whose next pipeline of commands meets the fault that `armed` names. witness: sees every answer."""

    witness: Witness | None = None
    armed: Fault | None = None
    cut: int = 0
    """How many of the commands are applied when the coordinator dies between them."""

    def apply_each(self, commands: Sequence[Command]) -> list[Reply | Exception]:
        """As Machine.apply_each, through the fault; raises CoordinatorDied."""
        fault, self.armed = self.armed, None
        if fault is Fault.DIED_BEFORE:
            raise CoordinatorDied
        if fault is Fault.DIED_BETWEEN:
            self._witnessed(commands[: self.cut % (len(commands) + 1)])
            raise CoordinatorDied
        replies = self._witnessed(commands)
        if fault is Fault.DIED_AFTER:
            raise CoordinatorDied
        return self._witnessed(commands) if fault is Fault.ANSWER_LOST else replies

    def _witnessed(self, commands: Sequence[Command]) -> list[Reply | Exception]:
        replies = super().apply_each(commands)
        if self.witness:
            for command, reply in zip(commands, replies, strict=True):
                if isinstance(reply, Reply):
                    self.witness.see(self.epoch, command, reply)
                elif isinstance(reply, MachineFault):
                    self.witness.found.append(Violation("fault", str(reply)))
        return replies
