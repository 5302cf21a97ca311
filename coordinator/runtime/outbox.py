"""Owns the way from the machine's outbox into RQ's queues (`launch`), and the look at those queues and their workers.

The only place of the coordinator that knows RQ. Must not decide who is dispatched, and must not be relied on: a second
job of an attempt gets no lease, a vanished one is `never_started` (DESIGN 1). What stands in a job is harmless to
read: its id says which attempt to ask for, and nothing in it is ever run.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import ConnectionError, WatchError
from rq import Queue
from rq.job import Job, JobStatus
from rq.queue import EnqueueData
from rq.serializers import JSONSerializer
from rq.types import FunctionReferenceType
from rq.worker_registration import get_keys

from coordinator.machine import keys
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadOutbox
from coordinator.runtime.leader import Deposed
from coordinator.wire.channels import JobId, queue_name

FUNCTION = "crewline.attempt"
"""What stands in a job as its function; there is no such thing to import, and workers never look at it."""
FOREVER = -1
_CONNECTION_LOST = "occurred while watching"


class Launcher(Protocol):
    """Where dispatched attempts go: RQ here, scripted workers in a simulation."""

    def launch(self, limit: int) -> int:
        """Hands over up to `limit` attempts of the outbox and trims it; says how many."""
        ...

    def lying(self, role: str) -> set[str]:
        """Ids of the jobs that wait in the role's queue or are being taken from it."""
        ...

    def forget(self, jobs: Iterable[JobId]) -> None:
        """Throws away what is left of jobs that vanished."""
        ...


class AttemptJob(Job):
    """An RQ job with the fields that RQ's own tools read, and no others: launching is on the hot path.

    `data` is the same for every job, and the status is written with the rest, not by a command of its own.
    """

    _constant = zlib.compress(json.dumps((FUNCTION, None, (), {})).encode())

    def to_dict(self, include_meta: bool = True, include_result: bool = True) -> dict[str, Any]:
        """The job's hash, as `Job.save` writes it."""
        at = datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        return {
            "created_at": at,
            "enqueued_at": at,
            "data": self._constant,
            "origin": self.origin,
            "description": self.description,
            "timeout": self.timeout,
            "status": JobStatus.QUEUED.value,
        }

    def set_status(self, status: JobStatus, pipeline: Pipeline | None = None) -> None:
        """Keeps the status; `save` writes it."""
        self._status = status


class AttemptQueue(Queue):
    """An RQ queue made for many equal jobs: they are copies of one prototype with another id, and one RPUSH takes
    all ids of a launch. *Measured:* 35 instead of 85 µs a job, and one Redis command instead of three."""

    _prototype: Job | None = None
    _pushed: list[str]

    def enqueue_many(
        self, job_datas: Iterable[EnqueueData], pipeline: Pipeline | None = None, group_id: str | None = None
    ) -> list[Job]:
        """As in RQ, but the pipeline is needed: the ids follow the jobs in it."""
        if pipeline is None:
            raise ValueError("attempts are launched in a transaction")
        self._pushed = []
        jobs = super().enqueue_many(job_datas, pipeline=pipeline, group_id=group_id)
        if self._pushed:
            pipeline.rpush(self.key, *self._pushed)
        return jobs

    def create_job(self, func: FunctionReferenceType, *args: Any, **options: Any) -> Job:
        """A new job; only the id differs from that of the others."""
        if self._prototype is None:
            self._prototype = super().create_job(func, *args, **options)
        job = AttemptJob.__new__(AttemptJob)
        job.__dict__.update(self._prototype.__dict__)
        job._id = options["job_id"]  # JobId holds to RQ's alphabet by itself; the setter would match it again
        return job

    def push_job_id(self, job_id: str, pipeline: Pipeline | None = None, at_front: bool = False) -> None:
        """Keeps the id for the one push of `enqueue_many`."""
        self._pushed.append(job_id)


class Outbox:
    """The launcher of a real installation."""

    def __init__(self, machine: Machine, redis: Redis, namespace: str) -> None:
        self._machine = machine
        self._redis = redis
        self._namespace = namespace
        self._queues: dict[str, AttemptQueue] = {}

    def launch(self, limit: int) -> int:
        """Turns up to `limit` attempts into jobs, in one transaction with the trim of the outbox.

        Raises Deposed when the epoch is no longer this process': then nothing was launched.
        """
        lines = self._machine.read(ReadOutbox(limit=limit))
        if not lines:
            return 0
        by_role: dict[str, dict[str, None]] = {}
        for line in lines:
            item = json.loads(line)
            job = JobId(item["role"], item["run"], item["task"], int(item["attempt"]))
            by_role.setdefault(job.role, {})[str(job)] = None
        try:
            self._commit(by_role, len(lines))
        except WatchError as error:
            # redis-py says the same of a connection that was lost while it watched; that is not another leader.
            if _CONNECTION_LOST in str(error):
                raise ConnectionError(str(error)) from error
            raise Deposed from None
        return len(lines)

    def _commit(self, by_role: Mapping[str, Iterable[str]], count: int) -> None:
        """Jobs and trim in one MULTI/EXEC under WATCH of the epoch (DESIGN 1)."""
        epoch_key = keys.epoch(self._namespace)
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.watch(epoch_key)  # type: ignore[no-untyped-call] # redis-py leaves it untyped
            if int(pipe.get(epoch_key) or 0) != self._machine.epoch:
                raise Deposed
            pipe.multi()
            for role, job_ids in by_role.items():
                self._enqueue(pipe, role, job_ids)
            pipe.ltrim(keys.outbox(self._namespace), count, -1)
            pipe.execute()

    def lying(self, role: str) -> set[str]:
        """Ids of the jobs in the role's RQ queue, and of those on their way out of it (RQ's `:intermediate`)."""
        key = self._queue(role).key
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.lrange(key, 0, -1)
            pipe.lrange(f"{key}:intermediate", 0, -1)
            waiting, leaving = pipe.execute()
        return {job_id.decode() for job_id in (*waiting, *leaving)}

    def forget(self, jobs: Iterable[JobId]) -> None:
        """Deletes the hashes of jobs that are in no queue any more."""
        names = [AttemptJob.key_for(str(job)) for job in jobs]
        if names:
            self._redis.delete(*names)

    def _enqueue(self, pipe: Pipeline, role: str, job_ids: Iterable[str]) -> None:
        self._queue(role).enqueue_many(
            [
                Queue.prepare_data(FUNCTION, job_id=job_id, description="attempt", timeout=FOREVER)
                for job_id in job_ids
            ],
            pipeline=pipe,
        )

    def _queue(self, role: str) -> AttemptQueue:
        queue = self._queues.get(role)
        if queue is None:
            queue = AttemptQueue(
                queue_name(self._namespace, role),
                connection=self._redis,
                serializer=JSONSerializer,
                job_class=AttemptJob,
            )
            self._queues[role] = queue
        return queue


def workers_of(redis: Redis, namespace: str, role: str | None) -> dict[str, int]:
    """The workers that RQ has registered for a role (None: for anything): name, and when it last said that it lives
    (ms)."""
    queue = Queue(queue_name(namespace, role), connection=redis, serializer=JSONSerializer) if role else None
    found: dict[str, int] = {}
    for key in sorted(get_keys(queue, redis)):
        said: Any = redis.hget(key, "last_heartbeat")
        if said:
            at = datetime.fromisoformat(said.decode())
            found[key.removeprefix("rq:worker:")] = int(at.timestamp() * 1000)
    return found
