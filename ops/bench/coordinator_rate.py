"""Owns the coordinator's rate over a full inbox, and the ceiling of the same calls without a coordinator.

Both drain the same inbox of task ends on equal stores: runs, leases and entry ids are the same, so the calls that the
loop makes on the first store can be sent again on the second. Must not measure more than the drain.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from coordinator.machine.commands import GATE_FIELDS, Command
from coordinator.machine.machine import Machine, Reply
from coordinator.runtime.leader import Leader
from coordinator.runtime.loop import Loop
from coordinator.runtime.outbox import Outbox
from coordinator.wire import channels
from coordinator.wire.channels import JobId
from coordinator.wire.reports import End, Start, Submit

NAMESPACE = channels.DEFAULT_NAMESPACE
ROLE, WORKER = "bench", "w1"
TASKS_OF_A_RUN = 50
PIPELINE = 500
BEGIN = 1_800_000_000_000


@dataclass(frozen=True, slots=True)
class Rate:
    """reports: task ends in the inbox. rate, ceiling: of them per second."""

    reports: int
    rate: float
    ceiling: float


class _Recording(Machine):
    """A machine that keeps what it applied."""

    def __init__(self, redis: Redis) -> None:
        super().__init__(redis, NAMESPACE)
        self.applied: list[Command] = []

    def apply_each(self, commands: Sequence[Command]) -> list[Reply | Exception]:
        self.applied.extend(commands)
        return super().apply_each(commands)


class _Store:
    """An installation whose workers have all begun and all said how they ended, while no coordinator looked."""

    def __init__(self, redis: Redis, runs: int) -> None:
        self._redis, self._runs = redis, runs
        self._tokens = itertools.count()
        self._now = BEGIN
        self.machine = _Recording(redis)
        self.machine.load()
        Leader(self.machine, "bench", lambda: self._now, ttl_ms=3_600_000).hold()
        self._loop = Loop(
            self.machine,
            redis,
            NAMESPACE,
            launcher=Outbox(self.machine, redis, NAMESPACE),
            tokens=lambda: f"lease-{next(self._tokens)}",
        )
        self._submit()
        self._begin()
        self.machine.applied.clear()

    @property
    def inbox(self) -> str:
        return channels.inbox(NAMESPACE, ROLE)

    def drain(self) -> float:
        """Steps the loop until the inbox is empty; seconds."""
        started = time.perf_counter()
        while self._redis.xlen(self.inbox):
            self._loop.step(self._now)
        return time.perf_counter() - started

    def _submit(self) -> None:
        tasks = {
            f"t{n}": {"capability": "noop", "heartbeat": "12h", "timeout": "24h"}
            for n in range(TASKS_OF_A_RUN)
        }
        team = json.dumps({"team": "bench", "roles": {ROLE: {"capabilities": ["noop"]}}, "tasks": tasks})
        for n in range(self._runs):
            entry = Submit(run=f"bench-{n}", team=team)
            self._redis.xadd(channels.scope_inbox(NAMESPACE, "submit"), entry.fields())
        self._settle()

    def _begin(self) -> None:
        reply_to = channels.reply(NAMESPACE, ROLE, WORKER)
        while jobs := self._redis.lpop(f"rq:queue:{channels.queue_name(NAMESPACE, ROLE)}", PIPELINE):
            for job in jobs:
                at = JobId.parse(job.decode())
                start = Start(run=at.run, task=at.task, attempt=at.attempt, worker=WORKER, reply_to=reply_to)
                self._redis.xadd(self.inbox, start.fields())
            self._settle()
        grants = [json.loads(text) for text in self._redis.lrange(reply_to, 0, -1)]
        if len(grants) != self._runs * TASKS_OF_A_RUN:
            raise RuntimeError(f"{len(grants)} grants of {self._runs * TASKS_OF_A_RUN}")
        grants.sort(key=lambda grant: (grant["run"], grant["task"]))
        pipeline = self._redis.pipeline(transaction=False)
        for number, grant in enumerate(grants, start=1):
            attempt, lease = grant["attempt"], grant["lease"]
            end = End(
                run=grant["run"],
                task=grant["task"],
                attempt=attempt,
                worker=WORKER,
                lease=lease,
                outcome="succeeded",
                payload="true",
            )
            pipeline.xadd(self.inbox, end.fields(), id=f"{BEGIN * 2}-{number}")
        pipeline.execute()

    def _settle(self) -> None:
        """Steps until nothing moves; time passes, because the loop looks again at what nobody announced."""
        idle = 0
        while idle < 3:
            idle = idle + 1 if self._loop.step(self._now).idle else 0
            self._now += 1_000


def measure(redis: Redis, *, reports: int, rounds: int) -> list[Rate]:
    """The rate and the ceiling, alternating, `rounds` times. Empties the server before each."""
    return [_once(redis, reports // TASKS_OF_A_RUN) for _ in range(rounds)]


def _once(redis: Redis, runs: int) -> Rate:
    reports = runs * TASKS_OF_A_RUN
    _empty(redis)
    store = _Store(redis, runs)
    seconds = store.drain()
    calls = list(store.machine.applied)
    _empty(redis)
    again = _Store(redis, runs)
    if again.machine.epoch != store.machine.epoch:
        raise RuntimeError("the two stores differ")
    pipelines = []
    for begin in range(0, len(calls), PIPELINE):
        pipeline = redis.pipeline(transaction=False)
        for call in calls[begin : begin + PIPELINE]:
            again.machine.library.call(
                pipeline, NAMESPACE, call.name(), _arguments(again.machine.epoch, call)
            )
        pipelines.append(pipeline)
    started = time.perf_counter()
    for pipeline in pipelines:
        pipeline.execute()
    ceiling = time.perf_counter() - started
    if redis.xlen(again.inbox):
        raise RuntimeError("the same calls did not empty the inbox of the second store")
    return Rate(reports, reports / seconds, reports / ceiling)


def _arguments(epoch: int, call: Command) -> list[Any]:
    """As `Machine` gives them."""
    return [epoch, *(getattr(call, name) for name in (*GATE_FIELDS, *call.own_fields()))]


def _empty(redis: Redis) -> None:
    redis.flushall()
    redis.execute_command("FUNCTION", "FLUSH")
