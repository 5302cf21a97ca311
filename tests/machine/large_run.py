"""Owns a run of any size that is driven by commands alone, in the portions in which the coordinator sends them.

Must not use a coordinator: what is measured is the machine. The plan's parts, the bounds of a dispatch and the children
made at once are the coordinator's own, so that a guard fails when one of them is too large.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from redis import Redis

from coordinator.machine.commands import (
    AddTasks,
    Command,
    ContinueBatch,
    Dispatch,
    EndAttempt,
    GrantLease,
    SpawnTasks,
    SubmitRun,
    TakeLead,
)
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import OpenBatches, ReadOutbox, ReadRun, ReadTask
from coordinator.runtime.loop import Bounds
from coordinator.runtime.teams import Submission
from coordinator.runtime.upkeep.fan_out import CHILDREN_AT_ONCE
from coordinator.team.compile import children_of
from coordinator.team.loader import parse_team
from coordinator.wire import channels
from coordinator.wire.names import ReplyStatus
from tests.machine.meter import WINDOW, Metered
from tests.support.builders import ROLE, digest, text

RUN = "r1"
NOW = 1_000
FIRST, LAST = "first", "last"
WORKER = "w"
BOUNDS = Bounds()
REPLIES = channels.reply(channels.DEFAULT_NAMESPACE, ROLE, WORKER)

Tasks = dict[str, dict[str, Any]]


def flat(size: int) -> Tasks:
    """Tasks that depend on nothing."""
    return {name(n): leaf(n) for n in range(size)}


def fan_out(size: int, **first: Any) -> Tasks:
    """1 -> size -> 1."""
    leaves = {name(n): leaf(n, FIRST) for n in range(size)}
    return {
        FIRST: {"capability": "work", **first},
        **leaves,
        LAST: {"capability": "work", "requires": list(leaves)},
    }


def chains(size: int) -> Tasks:
    """Chains of ten, side by side."""
    width = size // 10
    return {name(n): leaf(n, *([name(n - width)] if n >= width else [])) for n in range(size)}


def leaf(number: int, *requires: str) -> dict[str, Any]:
    """One of many."""
    return {"capability": "work", "requires": list(requires), "input": {"number": number}}


def name(number: int) -> str:
    """Names as people number things."""
    return f"part-{number}"


class LargeRun:
    """A run on an empty database, seen by a meter."""

    def __init__(self, redis: Redis, tasks: Tasks, **team: Any) -> None:
        self.machine = Machine(redis)
        self.machine.load()
        self.metered = Metered(self.machine)
        self.machine.epoch = int(self.machine.apply(TakeLead(now=1, holder="test", ttl_ms=3_600_000)).data)
        roles = {ROLE: {"capabilities": ["work"]}}
        document = json.dumps({"team": "large", "roles": roles, "tasks": tasks, **team})
        self.team = parse_team(document, "team")

    def submit(self, **inputs: Any) -> None:
        """All parts, then the batch that opens the run."""
        self._apply(*self._parts(Submission(self.team, inputs, RUN)))
        self.finish_batch()

    @staticmethod
    def _parts(submission: Submission) -> Iterator[Command]:
        cursor = 0
        yield SubmitRun(
            now=NOW, run=RUN, digest=submission.digest, library="", header=submission.header,
            items=submission.part(cursor), more=int(submission.more(cursor)), team=submission.team,
            inputs=submission.inputs,
        )  # fmt: skip
        while submission.more(cursor):
            cursor = submission.after(cursor)
            items, more = submission.part(cursor), int(submission.more(cursor))
            yield AddTasks(now=NOW, run=RUN, cursor=cursor, items=items, more=more)

    def finish_batch(self) -> int:
        """Continues the run's batch to its end; gives the number of pieces."""
        pieces = 0
        while self.metered.read(OpenBatches(limit=BOUNDS.batches)):
            self._apply(ContinueBatch(now=NOW, run=RUN))
            pieces += 1
        return pieces

    def spawn(self, parent: str, elements: Sequence[Any]) -> None:
        """The children of a for_each task that was dispatched."""
        for start in range(0, len(elements), CHILDREN_AT_ONCE):
            end = start + CHILDREN_AT_ONCE
            children = json.dumps(children_of(self.team, parent, elements[start:end], start))
            more = int(end < len(elements))
            self._apply(SpawnTasks(now=NOW, run=RUN, task=parent, cursor=start, children=children, more=more))
        self.finish_batch()

    def dispatch(self) -> list[str]:
        """One call; gives the tasks that it put into the outbox, which is then emptied as a launch does."""
        self._apply(Dispatch(now=NOW, limit=BOUNDS.dispatches))
        jobs = [json.loads(job) for job in self.metered.read(ReadOutbox(limit=BOUNDS.launches))]
        redis: Any = self.machine.redis
        redis.ltrim(f"{self.machine.namespace}:outbox", len(jobs), -1)
        return [job["task"] for job in jobs]

    def grant(self, names: Sequence[str]) -> None:
        """Leases for queued tasks, with the answers that workers get."""
        self._apply(*[grant(task) for task in names], window=WINDOW)
        redis: Any = self.machine.redis
        redis.delete(REPLIES)

    def end(self, names: Sequence[str], outcome: str = "succeeded") -> None:
        """Reports on running tasks."""
        self._apply(*[end(task, outcome) for task in names], window=WINDOW)

    def work_off(self, most: int = 1_000_000_000) -> int:
        """Dispatch, grant and success of ready tasks, at least `most` if there are so many; gives how many."""
        done = 0
        while done < most and (names := self.dispatch()):
            self.grant(names)
            self.end(names)
            self.finish_batch()
            done += len(names)
        return done

    def field(self, field: str, task: str = "") -> str:
        """A field of the run, or of a task."""
        record: dict[str, str] = self.machine.read(ReadTask(RUN, task) if task else ReadRun(RUN))
        return record.get(field, "")

    def _apply(self, *commands: Command, window: int = 1) -> list[Reply]:
        replies = self.metered.apply(*commands, window=window)
        assert all(reply.status == ReplyStatus.APPLIED for reply in replies), replies[:3]
        return replies


def grant(task: str) -> GrantLease:
    """A worker asks."""
    return GrantLease(
        now=NOW, run=RUN, task=task, attempt=1, role=ROLE, worker=WORKER, lease=f"L-{task}",
        reply_to=REPLIES, request="q",
    )  # fmt: skip


def end(task: str, outcome: str = "succeeded", result: Any = None) -> EndAttempt:
    """A worker reports; without a given result each task has another one."""
    payload = text(result or {"of": task}) if outcome == "succeeded" else ""
    return EndAttempt(
        now=NOW, run=RUN, task=task, attempt=1, role=ROLE, worker=WORKER, lease=f"L-{task}", outcome=outcome,
        payload=payload, digest=digest(payload) if payload else "", facts="[]",
        error="" if payload else text({"class": outcome}), retry_after_ms=0, tokens=0, cost_micros=0,
    )  # fmt: skip
