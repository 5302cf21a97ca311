"""Owns the way from the machine's outbox to the scripted workers, where RQ stands otherwise.

Keeps to the contract of `runtime.outbox`: nothing is handed over under an old epoch. Must not decide who is dispatched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from redis import Redis

from coordinator.machine import keys
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadOutbox
from coordinator.runtime.leader import Deposed
from coordinator.simulation.actors.workers import ScriptedWorkers
from coordinator.wire.channels import JobId

Deliver = Callable[[list[JobId]], list[JobId]]
"""What becomes of jobs on their way: the jobs that workers pop, in order."""


class ScriptedLauncher:
    """The launcher of one simulated coordinator."""

    def __init__(
        self,
        machine: Machine,
        redis: Redis,
        namespace: str,
        workers: ScriptedWorkers,
        deliver: Deliver | None = None,
    ) -> None:
        self._machine = machine
        self._redis = redis
        self._namespace = namespace
        self._workers = workers
        self._deliver = deliver

    def launch(self, limit: int) -> int:
        """Hands up to `limit` attempts to workers and trims the outbox. Raises Deposed under an old epoch."""
        lines = self._machine.read(ReadOutbox(limit=limit))
        if not lines:
            return 0
        if int(self._redis.get(keys.epoch(self._namespace)) or 0) != self._machine.epoch:
            raise Deposed
        self._redis.ltrim(keys.outbox(self._namespace), len(lines), -1)
        jobs = [_job(line) for line in lines]
        for job in self._deliver(jobs) if self._deliver else jobs:
            self._workers.take_job(job)
        return len(lines)

    def lying(self, role: str) -> set[str]:
        """Jobs of the role that no worker has asked for yet."""
        return self._workers.lying(role)

    def forget(self, jobs: Iterable[JobId]) -> None:
        """Nothing is kept of a job."""


def _job(line: str) -> JobId:
    item = json.loads(line)
    return JobId(item["role"], item["run"], item["task"], int(item["attempt"]))
