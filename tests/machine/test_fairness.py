"""A small run behind a large one: each of its steps waits for a share of the window, never for the whole (SPEC 3)."""

from __future__ import annotations

import json
from collections import Counter, deque

from redis import Redis

from coordinator.machine.commands import ContinueBatch, Dispatch, EndAttempt, GrantLease, TakeLead
from coordinator.machine.machine import Machine
from coordinator.machine.reads import OpenBatches, ReadOutbox, ReadRun
from coordinator.wire.names import ReplyStatus
from tests.support.builders import ROLE, digest, plan, submit, task, text

LARGE = 5_000
"""Many times the window: from there on the size of the large run makes no difference."""


def test_a_chain_of_three_behind_a_large_run_ends_before_a_hundred_more_have_started(redis: Redis) -> None:
    machine = Machine(redis)
    machine.load()
    machine.epoch = int(machine.apply(TakeLead(now=1, holder="test", ttl_ms=600_000)).data)
    make(machine, "large", *(task(f"t{number}") for number in range(LARGE)))
    queue: deque[dict[str, str]] = deque()
    launch(machine, redis, queue)
    make(machine, "small", task("a"), task("b", requires=["a"]), task("c", requires=["b"]))
    launch(machine, redis, queue)
    started: Counter[str] = Counter()
    while machine.read(ReadRun("small"))["status"] == "running":
        job = queue.popleft()
        started[job["run"]] += 1
        work(machine, job)
        launch(machine, redis, queue)
    assert machine.read(ReadRun("small"))["status"] == "completed"
    assert started["small"] == 3
    assert started["large"] < 100
    assert machine.read(ReadRun("large"))["status"] == "running"


def make(machine: Machine, run: str, *tasks: dict[str, object]) -> None:
    for command in submit(plan(*tasks), run, now=1, parts=max(1, len(tasks) // 50)):
        assert machine.apply(command).status == ReplyStatus.APPLIED
    while machine.read(OpenBatches(10)):
        machine.apply(ContinueBatch(now=1, run=run))


def launch(machine: Machine, redis: Redis, queue: deque[dict[str, str]]) -> None:
    """What the coordinator does after each step: dispatch, then the outbox to the end of the role's queue."""
    while machine.apply(Dispatch(now=2, limit=40)).data != "0":
        pass
    queue.extend(json.loads(line) for line in machine.read(ReadOutbox(1_000)))
    redis.delete("crewline:outbox")


def work(machine: Machine, job: dict[str, str]) -> None:
    """One worker: takes the first job of the queue, runs it, reports."""
    who = {
        "run": job["run"],
        "task": job["task"],
        "attempt": int(job["attempt"]),
        "role": ROLE,
        "worker": "w",
    }
    assert machine.apply(GrantLease(now=3, **who, lease="L")).status == ReplyStatus.APPLIED
    machine.apply(
        EndAttempt(
            now=4, **who, lease="L", outcome="succeeded", payload=text(1), digest=digest(1), facts="[]", error="",
            retry_after_ms=0, tokens=0, cost_micros=0,
        )
    )  # fmt: skip
