"""Owns the vocabulary in which a case is replayed on the real machine: claim, beat, result, fail, cancel, tick, reap.

Must not judge what comes of it: the case does. The clock moves only by `tick`; what is due then is fired by `reap`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from coordinator.machine import commands as c
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import (
    DueGraces,
    DueTimers,
    OpenBatches,
    ReadEvents,
    ReadLedger,
    ReadMetrics,
    ReadOutbox,
    ReadRecords,
    ReadRun,
    ReadTask,
    ReadTasks,
)
from coordinator.simulation.verify import verify
from coordinator.wire.channels import inbox
from tests.support.builders import ROLE, Plan, Spec, digest, plan, submit, text
from tests.support.lockstep import History

RUN = "r1"
START = 1_000_000
SECOND = 1_000
MANY = 10_000


@dataclass(frozen=True)
class Lease:
    """The right to report on an attempt, as a worker holds it."""

    run: str
    task: str
    attempt: int
    token: str
    worker: str
    role: str = ROLE

    @property
    def who(self) -> dict[str, Any]:
        """The fields by which every report names it."""
        return {
            "run": self.run,
            "task": self.task,
            "attempt": self.attempt,
            "role": self.role,
            "lease": self.token,
        }


class Replay:
    """A machine, its clock, and the leases that were given."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.machine = Machine(redis)
        self.machine.load()
        self.now = START
        self.take_lead("first")
        self.runs: list[str] = []
        self.verifies = True
        """Whether the recorded commands must lead to the same end; a case that tampers says no."""
        self._serial = 0

    # -- the coordinator

    def take_lead(self, holder: str, machine: Machine | None = None) -> None:
        """Somebody leads from now on."""
        machine = machine or self.machine
        machine.epoch = int(
            machine.apply(c.TakeLead(now=self.now, holder=holder, ttl_ms=600_000)).data or machine.epoch
        )

    def apply(self, command: c.Command) -> Reply:
        """Applies a command and finishes the batch that it may have opened."""
        reply = self.machine.apply(command)
        self.finish()
        return reply

    def finish(self) -> None:
        """Works off open batches."""
        while open_runs := [r for r, kind, *_ in self.machine.read(OpenBatches(MANY)) if kind == "continue"]:
            for run in open_runs:
                self.machine.apply(c.ContinueBatch(now=self.now, run=run))

    def submit(self, *tasks: Spec, run: str = RUN, parts: int = 1, **header: Any) -> str:
        """Submits a run of these tasks; gives its status."""
        return self.submit_plan(plan(*tasks, **header), run, parts)

    def submit_plan(self, made: Plan, run: str = RUN, parts: int = 1) -> str:
        """Submits a plan; gives the run's status."""
        for command in submit(made, run, now=self.now, parts=parts, library=self.machine.library.hash):
            reply = self.apply(command)
            assert reply.status == "applied", reply
        self.runs.append(run)
        return self.status(run)

    def dispatch(self, limit: int = MANY) -> int:
        """Dispatches what is ready; says how many."""
        return int(self.apply(c.Dispatch(now=self.now, limit=limit)).data)

    def tick(self, seconds: float) -> None:
        """The clock moves; nothing is fired yet."""
        self.now += int(seconds * SECOND)

    def reap(self) -> list[tuple[str, str]]:
        """Fires what is due now; gives what was."""
        due: list[tuple[str, str]] = self.machine.read(DueTimers(self.now, MANY))
        for run, name in due:
            self.apply(c.FireTimer(now=self.now, run=run, task=name))
        for run, name, attempt in self.machine.read(DueGraces(self.now, MANY)):
            self.apply(c.ExpireCancel(now=self.now, run=run, task=name, attempt=int(attempt)))
        return due

    # -- workers

    def ask(self, name: str, attempt: int = 0, worker: str = "w1", run: str = RUN, **more: Any) -> Reply:
        """A worker asks for an attempt (the present one, if none is named); gives the answer."""
        return self._ask(name, attempt, worker, run, **more)[0]

    def claim(self, name: str, worker: str = "w1", run: str = RUN) -> Lease:
        """Dispatches, and a worker begins the task's attempt."""
        self.dispatch()
        reply, lease = self._ask(name, 0, worker, run)
        assert reply.status == "applied", (reply, self.task(name, run))
        return lease

    def claim_all(self, names: Sequence[str]) -> list[Lease]:
        """Dispatches once, and a worker begins each task's first attempt."""
        self.dispatch()
        return [self._ask(name, 1, "w1", RUN)[1] for name in names]

    def _ask(self, name: str, attempt: int, worker: str, run: str, role: str = "") -> tuple[Reply, Lease]:
        found = self.machine.read(ReadTask(run, name))
        self._serial += 1
        lease = Lease(
            run,
            name,
            attempt or int(found.get("attempt", 0)),
            f"L{self._serial}",
            worker,
            role or found["role"],
        )
        return self.apply(c.GrantLease(now=self.now, worker=worker, **lease.who)), lease

    def beat(self, lease: Lease, progress: int = 0) -> Reply:
        """The worker's process lives."""
        return self.apply(c.RenewLease(now=self.now, **lease.who, progress=progress, details=""))

    def result(self, lease: Lease, payload: Any, tokens: int = 0, cost: int = 0, **gate: Any) -> Reply:
        """The attempt succeeded."""
        return self._end(lease, "succeeded", text(payload), digest(payload), "", tokens, cost, **gate)

    def fail(
        self,
        lease: Lease,
        outcome: str = "permanent",
        retry_after: float = 0,
        tokens: int = 0,
        cost: int = 0,
        **error: str,
    ) -> Reply:
        """The attempt failed; a `missing_input` asks for something."""
        question = ("what?", digest("what?")) if outcome == "missing_input" else ("", "")
        document = text({"class": outcome, **error})
        return self._end(
            lease, outcome, *question, document, tokens, cost, retry_after_ms=int(retry_after * SECOND)
        )

    def _end(
        self,
        lease: Lease,
        outcome: str,
        payload: str,
        hashed: str,
        error: str,
        tokens: int,
        cost: int,
        retry_after_ms: int = 0,
        **gate: Any,
    ) -> Reply:
        return self.apply(
            c.EndAttempt(
                now=self.now,
                **lease.who,
                worker=lease.worker,
                outcome=outcome,
                payload=payload,
                digest=hashed,
                facts="[]",
                error=error,
                retry_after_ms=retry_after_ms,
                tokens=tokens,
                cost_micros=cost,
                **gate,
            )
        )

    def hand_back(self, lease: Lease, reason: str = "draining") -> Reply:
        """The worker gives the attempt back."""
        return self.apply(c.HandBack(now=self.now, **lease.who, worker=lease.worker, reason=reason))

    def work(self, name: str, payload: Any = 1, run: str = RUN) -> Reply:
        """Claim and success."""
        return self.result(self.claim(name, run=run), payload)

    def report(self, name: str, state: str = "completed", payload: Any = 1, key: str = "") -> Reply:
        """An outside system reports."""
        return self.apply(
            c.ReportExternal(
                now=self.now, run=RUN, task=name, state=state, key=key, payload=text(payload), digest=digest(payload),
                facts="[]", error="", source="outside", tokens=0, cost_micros=0,
            )
        )  # fmt: skip

    # -- people

    def cancel(self, name: str = "", run: str = RUN, ask: str = "") -> Reply:
        """An operator cancels a task, or the run."""
        person = {"ask": ask, "reason": "enough", "source": "ann"}
        if name:
            return self.apply(c.CancelTask(now=self.now, run=run, task=name, **person))
        return self.apply(c.CancelRun(now=self.now, run=run, **person))

    def answer(self, name: str, payload: Any, question: str = "", source: str = "ann") -> Reply:
        """A person answers a question."""
        return self.apply(
            c.AnswerTask(
                now=self.now, run=RUN, task=name, question=question, payload=text(payload), digest=digest(payload),
                source=source,
            )
        )  # fmt: skip

    def decide(
        self,
        review: str,
        decision: str,
        payload: Any = None,
        version: int = 0,
        source: str = "ann",
        **more: Any,
    ) -> Reply:
        """A reviewer decides, on the review's present version if none is named."""
        found = self.reviews()[review]
        return self.apply(
            c.DecideReview(
                now=self.now, run=RUN, review=review, decision=decision, payload=text(payload), digest=digest(payload),
                facts="[]", version=version or int(found["state_version"]), reason="looked", source=source,
                **{"tainted": "keep", **more},
            )
        )  # fmt: skip

    def resume(self, *raises: Sequence[Any]) -> Reply:
        """An operator lets a parked run go on."""
        return self.apply(
            c.ResumeRun(
                now=self.now, run=RUN, raises=json.dumps([list(each) for each in raises]), source="ann"
            )
        )

    # -- inboxes

    def post(self, role: str = ROLE) -> dict[str, str]:
        """An entry in a role's inbox, as the fields that a command needs to apply it."""
        box = inbox("crewline", role)
        added: Any = self.redis.xadd(box, {"v": "1", "kind": "test"})
        return {"inbox": box, "entry": added.decode()}

    # -- what stands

    def run(self, run: str = RUN) -> dict[str, str]:
        """The run's record."""
        found: dict[str, str] = self.machine.read(ReadRun(run))
        return found

    def status(self, run: str = RUN) -> str:
        """The run's status."""
        return self.run(run)["status"]

    def tasks(self, run: str = RUN) -> dict[str, dict[str, str]]:
        """Every task's record as people see it."""
        return {found["id"]: found for found in self.machine.read(ReadTasks(run, 0, MANY))}

    def task(self, name: str, run: str = RUN) -> dict[str, str]:
        """One task's record."""
        return self.tasks(run)[name]

    def states(self, run: str = RUN) -> dict[str, str]:
        """The state of every task."""
        return {name: found["state"] for name, found in self.tasks(run).items()}

    def events(self, name: str | None = None, run: str = RUN) -> list[dict[str, str]]:
        """Events of a run, or of one task of it."""
        found: list[dict[str, str]] = self.machine.read(ReadEvents(run, 0, 100_000))
        return [event for event in found if name is None or event["task_id"] == name]

    def kinds(self, name: str | None = None, run: str = RUN) -> list[str]:
        """What kinds of events."""
        return [event["kind"] for event in self.events(name, run)]

    def handed_out(self, name: str) -> list[int]:
        """The attempts of a task that were given to the queue and are not yet taken from the outbox."""
        found = [json.loads(each) for each in self.machine.read(ReadOutbox(MANY))]
        return [int(each["attempt"]) for each in found if each["task"] == name]

    def ledger(self, which: str, run: str = RUN) -> list[dict[str, Any]]:
        """The `late` or `conflicts` ledger."""
        found: list[dict[str, Any]] = self.machine.read(ReadLedger(run, which, 0, MANY))
        return found

    def records(self, kind: str, run: str = RUN) -> list[dict[str, Any]]:
        """Cancellations, actions or reviews."""
        found: list[dict[str, Any]] = self.machine.read(ReadRecords(run, kind))
        return found

    def reviews(self) -> dict[str, dict[str, Any]]:
        """Reviews by their id."""
        return {str(record["id"]): record for record in self.records("reviews")}

    def counters(self) -> dict[str, int]:
        """The installation's counters."""
        return {name: int(float(value)) for name, value in self.machine.read(ReadMetrics()).items()}

    # -- what holds in every case

    def check(self, empty: Redis | None = None) -> None:
        """I6, I7: versions rise by one and the events give the states; I3: nothing above a limit is reserved; I4: a
        stopped run has no open task. empty: a database in which the recorded commands are applied again."""
        for run in self.runs:
            if empty is not None and self.verifies:
                said = verify(self.machine, run, empty)
                assert said.verdict == "equal", said
            history = History()
            history.follow(self.events(run=run))
            fields, tasks = self.run(run), self.tasks(run)
            history.check(int(fields["state_version"]), list(tasks.values()))
            assert _within(fields, "step_budget"), fields
            if fields.get("ended_at"):
                open_states = {"pending", "queued", "running", "awaiting"}
                assert not open_states & {found["state"] for found in tasks.values()}


def _within(fields: dict[str, str], name: str) -> bool:
    limit = fields.get(f"limit_{name}", "")
    return not limit or int(fields.get(f"used_{name}", 0)) + int(fields.get(f"reserved_{name}", 0)) <= int(
        limit
    )
