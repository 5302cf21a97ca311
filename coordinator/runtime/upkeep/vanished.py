"""Owns the search for queued attempts whose job vanished: it lies in no queue, and nobody asked for it (SPEC 3).

What is remembered here (attempts not found in a queue) may be lost at any time: it is then found again, only later.
Must not decide states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from coordinator.machine.commands import LoseQueued
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import QueuedAttempts
from coordinator.runtime.leader import Fenced
from coordinator.runtime.outbox import Launcher
from coordinator.wire.channels import JobId
from coordinator.wire.names import ReplyStatus

VANISHED_AFTER_MS = 10_000
"""How long an attempt's job must be missing before it is `never_started` (SPEC 3)."""
LOOK_EVERY_MS = 2_000
"""How often the queues are looked through; it costs two reads a role."""
MOST_ATTEMPTS = 1_000
"""Queued attempts of a role looked at together; the oldest come first, and a queue is first in, first out."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Missing:
    job: JobId
    since: int


class Vanished:
    """Finds queued attempts whose job lies in no queue and that nobody asked for (SPEC 3)."""

    def __init__(self, machine: Machine, fenced: Fenced, launcher: Launcher) -> None:
        self._machine = machine
        self._fenced = fenced
        self._launcher = launcher
        self._missing: dict[str, _Missing] = {}
        self._look_at = 0

    @property
    def next_at(self) -> int | None:
        """When something that is missing now will count as vanished, ms; None when nothing is."""
        if not self._missing:
            return None
        return min(missing.since for missing in self._missing.values()) + VANISHED_AFTER_MS

    def forget(self) -> None:
        """Begins anew: what was missing under an earlier lead may have been somebody else's since."""
        self._missing.clear()
        self._look_at = 0

    def is_due(self, now: int) -> bool:
        """Whether it is time to look through the queues."""
        soonest = self.next_at
        return now >= self._look_at or (soonest is not None and now >= soonest)

    def look(self, now: int, roles: Sequence[str]) -> int:
        """Looks through the queues of the roles; gives how many attempts were declared `never_started`.

        Not to be called while the outbox holds attempts: those are in no queue yet. The attempts are read before the
        queues, so one that is granted in between is refused by the machine, not lost.
        """
        self._look_at = now + LOOK_EVERY_MS
        missing: dict[str, _Missing] = {}
        for role in roles:
            queued = self._machine.read(
                QueuedAttempts(role=role, before=now - LOOK_EVERY_MS, limit=MOST_ATTEMPTS)
            )
            if not queued:
                continue
            lying = self._launcher.lying(role)
            for run, task, attempt in queued:
                job = JobId(role, run, task, int(attempt))
                name = str(job)
                if name not in lying:
                    missing[name] = self._missing.get(name) or _Missing(job, now)
        gone = [found.job for found in missing.values() if now - found.since >= VANISHED_AFTER_MS]
        self._missing = missing
        return self._lose(now, gone)

    def _lose(self, now: int, gone: list[JobId]) -> int:
        if not gone:
            return 0
        replies = self._fenced.apply_each(
            [LoseQueued(now=now, run=job.run, task=job.task, attempt=job.attempt) for job in gone]
        )
        lost = 0
        for job, reply in zip(gone, replies, strict=True):
            if not isinstance(reply, Reply):
                log.error("machine_fault", doing="lose_queued", run=job.run, task=job.task, fault=str(reply))
            elif reply.status == ReplyStatus.WAITING:
                continue
            self._missing.pop(str(job), None)
            if isinstance(reply, Reply) and reply.status == ReplyStatus.APPLIED:
                lost += 1
                log.warning("job_vanished", run=job.run, role=job.role, attempt=job.attempt)
        self._launcher.forget(gone)
        return lost
