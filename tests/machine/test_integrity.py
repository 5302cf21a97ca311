"""A record that somebody deleted is reported, never guessed (C-37); a restored Redis parks its runs (SPEC 7)."""

from __future__ import annotations

import json

import pytest
from redis import Redis

from coordinator.machine.commands import (
    AnswerTask,
    CancelRun,
    Dispatch,
    EndAttempt,
    GrantLease,
    RecoverRun,
    ResumeRun,
    SpawnChild,
    StartAction,
    TakeLead,
)
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import ReadEvents, ReadRecords, ReadRun, ReadTask, ReadTasks
from coordinator.wire.names import ReplyStatus
from tests.support.builders import ROLE, Spec, digest, plan, planned, submit, task, text

RUN = "r1"


@pytest.fixture
def machine(redis: Redis) -> Machine:
    """A machine that leads."""
    made = Machine(redis)
    made.load()
    made.epoch = int(made.apply(TakeLead(now=1, holder="test", ttl_ms=600_000)).data)
    return made


def start(machine: Machine, *tasks: Spec, **header: object) -> None:
    for command in submit(plan(*tasks, **header), RUN, now=1):
        assert machine.apply(command).status == ReplyStatus.APPLIED
    machine.apply(Dispatch(now=1, limit=100))


def grant(machine: Machine, name: str, attempt: int = 1, now: int = 2) -> Reply:
    return machine.apply(
        GrantLease(
            now=now, run=RUN, task=name, attempt=attempt, role=ROLE, worker="w", lease=f"L{name}{attempt}"
        )
    )


def end(machine: Machine, name: str, outcome: str = "succeeded", attempt: int = 1, now: int = 3) -> Reply:
    return machine.apply(
        EndAttempt(
            now=now,
            run=RUN,
            task=name,
            attempt=attempt,
            role=ROLE,
            worker="w",
            lease=f"L{name}{attempt}",
            outcome=outcome,
            payload=text(name),
            digest=digest(name),
            facts="[]",
            error="",
            retry_after_ms=0,
            tokens=0,
            cost_micros=0,
        )
    )


def test_C_37_deleted_task_record_parks_the_run_for_a_person(machine: Machine, redis: Redis) -> None:
    start(machine, task("a"), task("b", requires=["a"]), task("c"))
    grant(machine, "a")
    grant(machine, "c")
    redis.delete(f"crewline:task:{RUN}:b")
    end(machine, "a")
    run = machine.read(ReadRun(RUN))
    assert (run["status"], run["locked_reason"]) == ("needs_review", "integrity")
    assert not redis.exists(f"crewline:task:{RUN}:b"), "nothing is made up in its place"
    assert [review["kind"] for review in machine.read(ReadRecords(RUN, "reviews"))] == ["integrity"]
    assert "integrity" in [event["kind"] for event in machine.read(ReadEvents(RUN, 0, 100))]
    assert end(machine, "c").status == ReplyStatus.APPLIED, "what is in flight may end"
    cancel = CancelRun(now=9, run=RUN, ask="", reason="broken", source="op")
    assert machine.apply(cancel).run_status == "canceled"


def test_C_37_deleted_record_of_the_task_itself_refuses_its_report(machine: Machine, redis: Redis) -> None:
    start(machine, task("a"))
    grant(machine, "a")
    redis.delete(f"crewline:task:{RUN}:a")
    assert end(machine, "a").word in {"wrong_role", "late_ignored"}
    assert machine.read(ReadRun(RUN))["status"] == "needs_review"


def test_restored_run_loses_what_was_in_flight_and_waits_for_a_look(machine: Machine) -> None:
    start(machine, task("a", max_attempts=2), task("b"))
    grant(machine, "a")
    machine.apply(
        StartAction(
            now=2,
            run=RUN,
            task="a",
            attempt=1,
            role=ROLE,
            worker="w",
            lease="La1",
            key="pay",
            payload="",
            digest="",
            again=0,
        )
    )
    assert machine.apply(RecoverRun(now=3, run=RUN, source="op")).run_status == "paused"
    run = machine.read(ReadRun(RUN))
    assert run["locked_reason"] == "restored"
    assert machine.read(ReadTask(RUN, "a"))["state"] == "pending"
    assert machine.read(ReadRecords(RUN, "actions"))[0]["state"] == "unknown"
    assert end(machine, "a").word == "late_ignored", "the lease of before the restore proves nothing"
    assert machine.apply(ResumeRun(now=5, run=RUN, raises="[]", source="op")).run_status == "running"


def child(name: str) -> str:
    return json.dumps(
        {k: v for k, v in planned(task(name, required=0), 0).items() if k not in ("id", "index")}
    )


def spawn(machine: Machine, key: str, attempt: int = 1, background: int = 0, **limits: int) -> Reply:
    return machine.apply(
        SpawnChild(
            now=4,
            run=RUN,
            task="a",
            attempt=attempt,
            role=ROLE,
            worker="w",
            lease=f"La{attempt}",
            key=key,
            child=child("x"),
            background=background,
            allowed=limits.get("allowed", 1),
            most=limits.get("most", 10),
            deepest=limits.get("deepest", 5),
            reply_to="crewline:reply:x",
            request="q",
        )
    )


def test_a_parent_waits_for_its_children_and_finds_them_again(machine: Machine, redis: Redis) -> None:
    start(machine, task("a"))
    grant(machine, "a")
    assert spawn(machine, "one").status == ReplyStatus.APPLIED
    assert spawn(machine, "one").status == ReplyStatus.APPLIED, "the same key: the same child"
    assert spawn(machine, "bg", background=1).status == ReplyStatus.APPLIED
    end(machine, "a", "children")
    assert machine.read(ReadTask(RUN, "a"))["state"] == "awaiting"
    machine.apply(Dispatch(now=5, limit=10))
    grant(machine, "a[0]", now=5)
    end(machine, "a[0]", now=6)
    machine.apply(Dispatch(now=6, limit=10))
    assert grant(machine, "a", attempt=2, now=7).status == ReplyStatus.APPLIED
    spawn(machine, "one", attempt=2)
    told = json.loads(redis.lrange("crewline:reply:x", -1, -1)[0])
    assert (told["child"], told["state"], told["result"]) == ("a[0]", "succeeded", "a[0]")
    end(machine, "a", attempt=2, now=8)
    tasks = {each["id"]: each["state"] for each in machine.read(ReadTasks(RUN, 0, 10))}
    assert tasks == {"a": "succeeded", "a[0]": "succeeded", "a[1]": "canceled"}
    assert machine.read(ReadTask(RUN, "a"))["granted"] == "1", "waiting is no try"


def test_spawn_limits_are_enforced(machine: Machine) -> None:
    start(machine, task("a"))
    grant(machine, "a")
    assert spawn(machine, "k", allowed=0).word == "not_allowed"
    assert spawn(machine, "k", deepest=0).word == "spawn_limit"
    assert spawn(machine, "k", most=1).status == ReplyStatus.APPLIED
    assert spawn(machine, "other", most=1).word == "spawn_limit"


def test_a_failed_parent_cancels_its_children(machine: Machine) -> None:
    start(machine, task("a", required=0), task("z", external=1))
    grant(machine, "a")
    spawn(machine, "one")
    end(machine, "a", "permanent")
    assert machine.read(ReadTask(RUN, "a[0]"))["state"] == "canceled"


def test_C_52_an_answer_counts_once(machine: Machine) -> None:
    start(machine, task("a"))
    grant(machine, "a")
    end(machine, "a", "missing_input")
    assert machine.read(ReadRun(RUN))["status"] == "paused"

    def answer(value: object) -> Reply:
        return machine.apply(
            AnswerTask(
                now=9, run=RUN, task="a", question="", payload=text(value), digest=digest(value), source="op"
            )
        )

    assert answer("yes").run_status == "running"
    assert answer("yes").status == ReplyStatus.REPEATED
    assert answer("no").word == "already_answered"
