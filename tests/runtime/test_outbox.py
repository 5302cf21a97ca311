"""Launching: what RQ sees, the fence around it, and attempts whose job vanished."""

from __future__ import annotations

import json

import pytest
from redis import Redis
from rq import Queue
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer

from coordinator.machine import keys
from coordinator.runtime.leader import Deposed
from coordinator.runtime.outbox import FUNCTION, AttemptQueue, Outbox
from coordinator.runtime.upkeep.vanished import VANISHED_AFTER_MS
from coordinator.wire.channels import JobId, queue_name
from coordinator.wire.reports import Start
from tests.runtime.harness import NAMESPACE, ROLE, WORKER, Stepped, team

MANY = team({f"t{i}": {} for i in range(10)})


def attempt(number: int) -> str:
    """A line of the outbox."""
    return json.dumps({"role": ROLE, "run": "r1", "task": f"t[{number}]", "attempt": 1})


def test_rq_reads_our_jobs(stepped: Stepped, redis: Redis) -> None:
    """The contract with RQ's own tools: `rq info` and the dashboards list and fetch what we launched."""
    stepped.submit(MANY)
    queue = Queue(queue_name(NAMESPACE, ROLE), connection=redis, serializer=JSONSerializer)
    assert queue.get_job_ids() == [f"{ROLE}--r1--t{i}--1" for i in range(10)]
    job = Job.fetch(queue.get_job_ids()[0], connection=redis, serializer=JSONSerializer)
    assert (job.func_name, job.args, job.origin, job.timeout) == (FUNCTION, [], queue.name, -1)
    assert job.get_status() is JobStatus.QUEUED
    assert job.created_at is not None
    assert job.created_at == job.enqueued_at
    assert [found.name for found in Queue.all(connection=redis)] == [queue.name]
    assert redis.ttl(job.key) == -1


def test_nothing_in_a_job_tells_more_than_its_id(stepped: Stepped, redis: Redis) -> None:
    """`rq:job:*` is readable by every worker: no token, no payload, no input may stand there (SPEC 12)."""
    stepped.submit(team({"a": {"input": {"word": "rosebud"}}}))
    stored = redis.hgetall(f"rq:job:{ROLE}--r1--a--1")
    assert set(stored) == {
        b"created_at", b"enqueued_at", b"data", b"origin", b"description", b"timeout", b"status"
    }  # fmt: skip
    assert "rosebud" not in str(stored)


def test_a_launch_is_one_command_a_job(stepped: Stepped, redis: Redis) -> None:
    redis.rpush(keys.outbox(NAMESPACE), *map(attempt, range(50)))
    redis.config_resetstat()
    assert Outbox(stepped.machine, redis, NAMESPACE).launch(100) == 50
    calls = {name: stat["calls"] for name, stat in redis.info("commandstats").items()}
    assert calls["cmdstat_hset"] == 50
    assert calls["cmdstat_rpush"] == 1
    assert redis.llen(keys.outbox(NAMESPACE)) == 0
    assert len(stepped.jobs()) == 50


def test_a_launch_takes_at_most_its_limit_and_keeps_the_rest(stepped: Stepped, redis: Redis) -> None:
    redis.rpush(keys.outbox(NAMESPACE), *map(attempt, range(5)))
    outbox = Outbox(stepped.machine, redis, NAMESPACE)
    assert [outbox.launch(2) for _ in range(4)] == [2, 2, 1, 0]
    assert [job.task for job in stepped.jobs()] == [f"t[{i}]" for i in range(5)]


def test_c59_nothing_is_launched_under_an_old_epoch(stepped: Stepped, redis: Redis) -> None:
    old = Outbox(stepped.machine, redis, NAMESPACE)
    redis.rpush(keys.outbox(NAMESPACE), attempt(1))
    stepped.restart()
    with pytest.raises(Deposed):
        old.launch(10)
    assert stepped.jobs() == []
    assert redis.llen(keys.outbox(NAMESPACE)) == 1


def test_c59_a_change_of_leader_between_look_and_launch_is_seen(
    stepped: Stepped, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch is watched: whoever takes the lead after it was read makes the transaction fail."""
    redis.rpush(keys.outbox(NAMESPACE), attempt(1))
    enqueue = AttemptQueue.enqueue_many

    def overtaken(self: AttemptQueue, *args: object, **options: object) -> object:
        redis.incr(keys.epoch(NAMESPACE))
        return enqueue(self, *args, **options)  # type: ignore[arg-type] # passed on as they came

    monkeypatch.setattr(AttemptQueue, "enqueue_many", overtaken)
    with pytest.raises(Deposed):
        Outbox(stepped.machine, redis, NAMESPACE).launch(10)
    assert stepped.jobs() == []
    assert redis.llen(keys.outbox(NAMESPACE)) == 1


def test_c07_a_second_job_of_an_attempt_gets_no_lease(stepped: Stepped, redis: Redis) -> None:
    stepped.submit(team({"a": {}}))
    redis.rpush(stepped.queue(), str(JobId(ROLE, "r1", "a", 1)))
    assert stepped.start("a", worker="w1")["kind"] == "grant"
    assert stepped.start("a", worker="w2")["status"] == "refused"
    assert stepped.kinds().count("attempt_started") == 1


# -- vanished jobs ---------------------------------------------------------------------------------------------


def test_a_vanished_job_is_never_started(stepped: Stepped, redis: Redis) -> None:
    stepped.submit(team({"a": {}, "b": {}}))
    redis.lrem(stepped.queue(), 1, f"{ROLE}--r1--a--1")
    stepped.settle(later_ms=3_000)
    wake_at = stepped.step().wake_at
    assert wake_at is not None
    assert wake_at - stepped.now <= VANISHED_AFTER_MS
    assert "attempt_never_started" not in stepped.kinds()
    stepped.settle(later_ms=wake_at - stepped.now)
    assert stepped.kinds().count("attempt_never_started") == 1
    assert [str(job) for job in stepped.jobs()] == [f"{ROLE}--r1--b--1", f"{ROLE}--r1--a--2"]
    assert not redis.exists(f"rq:job:{ROLE}--r1--a--1")
    assert stepped.run().get("used_step_budget", "0") == "0"


def test_a_job_that_waits_is_not_lost_however_long(stepped: Stepped) -> None:
    stepped.submit(MANY)
    for _ in range(20):
        stepped.settle(later_ms=5_000)
    assert "attempt_never_started" not in stepped.kinds()


def test_a_job_on_its_way_out_of_the_queue_is_not_lost(stepped: Stepped, redis: Redis) -> None:
    stepped.submit(team({"a": {}}))
    redis.lmove(stepped.queue(), f"{stepped.queue()}:intermediate", "LEFT", "RIGHT")
    for _ in range(5):
        stepped.settle(later_ms=5_000)
    assert stepped.state("a") == "queued"
    redis.delete(f"{stepped.queue()}:intermediate")
    for _ in range(5):
        stepped.settle(later_ms=5_000)
    assert stepped.jobs()[-1].attempt == 2


def test_an_attempt_that_asks_in_time_is_not_lost(stepped: Stepped) -> None:
    """Popped long ago, but its question stands in the inbox: inboxes are read first."""
    stepped.submit(team({"a": {"heartbeat": "10m"}}))
    stepped.pop_all()
    stepped.settle(later_ms=3_000)
    stepped.say(Start(run="r1", task="a", attempt=1, worker=WORKER))
    stepped.settle(later_ms=60_000)
    assert stepped.state("a") == "running"


def test_a_new_coordinator_begins_the_ten_seconds_anew(stepped: Stepped) -> None:
    stepped.submit(team({"a": {}}))
    stepped.pop_all()
    stepped.settle(later_ms=9_000)
    stepped.restart()
    stepped.settle(later_ms=2_000)
    stepped.settle(later_ms=9_000)
    assert stepped.state("a") == "queued"
    stepped.settle(later_ms=2_000)
    assert stepped.jobs()[-1].attempt == 2
