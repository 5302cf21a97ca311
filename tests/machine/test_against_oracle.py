"""The Redis machine and the oracle agree, step by step, on random teams under random commands.

`CREWLINE_ORACLE_STEPS=200000 pytest tests/machine/test_against_oracle.py` looks longer than CI does;
such a run is random (`--hypothesis-seed=n` repeats it). `CREWLINE_ORACLE_SHRINK=1` looks for the shortest way to a
difference, which takes minutes; without it the first one found is told.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from redis import Redis

from coordinator.machine import commands as c
from coordinator.wire.channels import client_reply, inbox
from coordinator.wire.names import RunStatus
from coordinator.wire.names import TaskState as S
from tests.support.builders import digest, planned, submit, task, text
from tests.support.lockstep import Lockstep
from tests.support.oracle.readiness import ready
from tests.support.oracle.state import Run, Task
from tests.support.random_people import Grant, People, amounts, facts, payloads
from tests.support.random_teams import SIGNALS, mostly, rarely, teams

STEPS = int(os.environ.get("CREWLINE_ORACLE_STEPS", "4000"))
RANDOM = "CREWLINE_ORACLE_STEPS" in os.environ
SHRINK = "CREWLINE_ORACLE_SHRINK" in os.environ
STEPS_PER_EXAMPLE = 60
ROLES = ("clerk", "editor")

MUST_SEE = (
    "run completed", "run critical_failure", "run failed", "run budget_exhausted", "run paused", "run deadlock",
    "task awaiting", "task blocked", "task denied", "task needs_review", "task skipped",
    "word late_ignored", "word duplicate_result_ignored", "word over_budget", "word stale_lease", "word task_ended",
    "word run_parked",
    "task canceled", "CancelTask applied", "CancelRun applied", "ExpireCancel applied", "AnswerTask applied",
    "ResumeRun applied", "DecideReview applied", "StartAction applied", "EndAction applied",
    "DecideAction applied", "word cancel_confirmed", "word action_unknown", "word already_answered",
    "CollectTask applied", "HandBack applied", "LoseQueued applied", "UseBudget applied", "FireTimer applied",
)  # fmt: skip

RARE = ("DoubtAction applied", "word already_decided")
"""What only a long walk must have seen; tests/cases has both."""
MAY_MISS = 3
"""Of the rest, how many a walk of the default length may miss; a long one none."""

outcomes = st.sampled_from(
    ["succeeded"] * 12
    + ["transient"] * 3
    + ["missing_input"] * 2
    + ["permission", "permanent", "invalid_output", "who_knows", "canceled"]
)
spans = st.sampled_from([0, 1, 900, 900, 3_000, 10_000, 31_000, 60_000])


class Agreement(RuleBasedStateMachine, People):
    """Draws commands that mostly make sense and sometimes do not. One rule, so that none is ever switched off."""

    seen: ClassVar[Counter[str]] = Counter()
    redis: ClassVar[Redis]

    def __init__(self) -> None:
        super().__init__()
        self.redis.flushdb()
        self.both = Lockstep(self.redis)
        self.now = 1_000_000
        self.serial = 0
        self.name = ""
        self.grants: list[Grant] = []

    @property
    def run(self) -> Run:
        return self.both.oracle.runs[self.name]

    def teardown(self) -> None:
        Agreement.seen.update(self.both.counts)
        for run in self.both.oracle.runs.values():
            Agreement.seen.update([f"run {run.status}", *(f"task {t.state}" for t in run.tasks.values())])
            Agreement.seen.update(
                f"also {word.split(':')[0]}" for word in (run.stop.also_true if run.stop else ())
            )

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Submits a new run, whole or in parts."""
        self.serial += 1
        self.name = f"r{self.serial}"
        self.grants = []
        first, *rest = submit(data.draw(teams()), self.name, now=self.now, parts=data.draw(mostly(1, 2, 3)))
        self.both.apply(first)
        for command in rest:
            if data.draw(st.booleans()):
                self.both.apply(c.SignalRun(now=self.now, run=self.name, signal="go", source="me"))
            self.both.apply(command)
        if data.draw(rarely(6)):
            self.both.apply(first)

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One thing that may happen; what makes sense now is drawn more often."""
        choices: list[Callable[[st.DataObject], None]] = []
        for weight, action in self.actions():
            choices += [action] * weight
        data.draw(st.sampled_from(choices))(data)

    def actions(self) -> list[tuple[int, Callable[[st.DataObject], None]]]:
        """Each kind of command with its weight in the state that the run is in."""
        tasks = list(self.run.tasks.values())
        queued = any(t.state is S.QUEUED and t.role and not t.for_each for t in tasks)
        live = any(t.lease for t in tasks)
        external = any(t.external and t.state in (S.QUEUED, S.RUNNING) for t in tasks)
        spawning = any(t.for_each and not t.closed and t.state in (S.QUEUED, S.RUNNING) for t in tasks)
        collecting = any(t.for_each and t.closed and t.state is S.QUEUED for t in tasks)
        waiting = self.run.status is RunStatus.RUNNING and bool(ready(self.run))
        over = self.run.stopped
        parked = self.run.status is not RunStatus.RUNNING
        return [
            *self.weights(),
            (16 if waiting else 1, self.dispatch),
            (4 if waiting else 1, self.dispatch_task),
            (20 if queued else 1, self.grant),
            (24 if live else 2 if self.grants else 0, self.end),
            (3 if live else 1 if self.grants else 0, self.renew),
            (4 if live else 1 if self.grants else 0, self.use),
            (3 if queued or live else 1, self.hand_back),
            (2 if queued else 1, self.lose_queued),
            (8 if external else 1, self.report),
            (14 if spawning else 1 if any(t.for_each for t in tasks) else 0, self.spawn),
            (14 if collecting else 1 if any(t.for_each for t in tasks) else 0, self.collect),
            (8, self.tick),
            (1, self.fire_any),
            (1, self.signal),
            (8 if over else 2 if parked else 0, self.begin),
        ]

    # What may be done

    def dispatch(self, data: st.DataObject) -> None:
        self.both.apply(c.Dispatch(now=self.now, limit=data.draw(mostly(100, 1, 2))))

    def dispatch_task(self, data: st.DataObject) -> None:
        self.send(data, c.DispatchTask, task=self.pick(data, S.PENDING))

    def grant(self, data: st.DataObject) -> None:
        for _ in range(data.draw(mostly(1, 2, 3))):
            name = self.pick(data, S.QUEUED, external=False)
            found = self.run.tasks.get(name)
            attempt = (found.attempt if found else 1) - data.draw(rarely(10))
            role = self.role(data, found)
            self.serial += 1
            lease = f"lease-{self.serial}"
            reply = self.send(
                data, c.GrantLease, task=name, attempt=attempt, role=role, worker="w1", lease=lease
            )
            if reply.status == "applied":
                self.grants.append((name, attempt, lease, role))

    def renew(self, data: st.DataObject) -> None:
        name, attempt, lease, role = self.pick_grant(data)
        progress = data.draw(st.integers(0, 1))
        self.send(
            data,
            c.RenewLease,
            task=name,
            attempt=attempt,
            lease=lease,
            role=role,
            progress=progress,
            details="",
        )

    def use(self, data: st.DataObject) -> None:
        name, attempt, lease, role = self.pick_grant(data)
        self.send(
            data,
            c.UseBudget,
            task=name,
            attempt=attempt,
            lease=lease,
            role=role,
            tokens=data.draw(amounts),
            cost_micros=data.draw(amounts),
        )

    def end(self, data: st.DataObject, grant: Grant | None = None, outcome: str = "") -> None:
        name, attempt, lease, _ = grant or self.pick_grant(data)
        outcome, payload = outcome or data.draw(outcomes), data.draw(payloads)
        self.send(
            data,
            c.EndAttempt,
            task=name,
            attempt=attempt,
            role=self.role(data, self.run.tasks[name]),
            worker="w1",
            lease="no-such-lease" if data.draw(rarely(16)) else lease,
            outcome=outcome,
            payload=text(payload),
            digest=digest(payload),
            facts=data.draw(facts) if outcome == "succeeded" else "[]",
            error="" if outcome == "succeeded" else text({"class": outcome, "message": "it broke"}),
            retry_after_ms=data.draw(mostly(0, 7_000)),
            tokens=data.draw(amounts),
            cost_micros=data.draw(amounts),
        )

    def hand_back(self, data: st.DataObject) -> None:
        granted: bool = data.draw(st.booleans())
        if self.grants and granted:
            self.hand(data, *self.pick_grant(data))
            return
        name = self.pick(data, S.QUEUED, external=False)
        times = 12 if data.draw(rarely(8)) else 1
        for _ in range(times):
            found = self.run.tasks.get(name)
            self.hand(data, name, found.attempt if found else 1, "", self.role(data, found))
            if times > 1:
                self.both.apply(c.DispatchTask(now=self.now, run=self.name, task=name))

    def hand(self, data: st.DataObject, name: str, attempt: int, lease: str, role: str) -> None:
        self.send(
            data,
            c.HandBack,
            task=name,
            attempt=attempt,
            role=role,
            worker="w1",
            lease=lease,
            reason=data.draw(mostly("draining", "no_worker")),
        )

    def lose_queued(self, data: st.DataObject) -> None:
        name = self.pick(data, S.QUEUED, external=False)
        found = self.run.tasks.get(name)
        attempt = (found.attempt if found else 1) - data.draw(rarely(5))
        self.send(data, c.LoseQueued, task=name, attempt=attempt)

    def report(self, data: st.DataObject) -> None:
        payload = data.draw(payloads)
        self.send(
            data,
            c.ReportExternal,
            task=self.pick(data, S.QUEUED, S.RUNNING, S.SUCCEEDED, external=True),
            state=data.draw(st.sampled_from(["completed"] * 4 + ["working", "working", "failed", "resting"])),
            key=data.draw(mostly("", "k1", "k3")),
            payload=text(payload),
            digest=digest(payload),
            facts=data.draw(facts),
            error="",
            source="someone",
            tokens=data.draw(amounts),
            cost_micros=0,
        )

    def tick(self, data: st.DataObject) -> None:
        self.now += data.draw(spans)
        for run, name in self.both.due(self.now):
            self.both.apply(c.FireTimer(now=self.now, run=run, task=name))

    def fire_any(self, data: st.DataObject) -> None:
        self.now += data.draw(spans)
        if data.draw(rarely(4)):
            self.send(data, c.FireTimer, run="nobody", task="")
        self.send(data, c.FireTimer, task=self.pick(data, S.RUNNING, S.QUEUED))

    def signal(self, data: st.DataObject) -> None:
        self.send(data, c.SignalRun, signal=data.draw(st.sampled_from(SIGNALS)), source="someone")

    def spawn(self, data: st.DataObject) -> None:
        parent = self.pick_parent(data)
        made, known = len(parent.children), len(self.run.tasks)
        children = [
            self.child(parent, made + number, known + number)
            for number in range(data.draw(st.integers(0, 3)))
        ]
        self.send(
            data,
            c.SpawnTasks,
            task=parent.id,
            cursor=made + data.draw(rarely(8)),
            children=text(children),
            more=data.draw(mostly(0, 1)),
        )

    def collect(self, data: st.DataObject) -> None:
        parent = self.pick_parent(data)
        all_ended = all(self.run.tasks[name].ended for name in parent.children)
        outcome = data.draw(
            mostly("succeeded", "permanent", "transient") if all_ended else st.just("permanent")
        )
        payload = [data.draw(payloads)]
        self.send(
            data,
            c.CollectTask,
            task=parent.id,
            outcome=outcome,
            payload=text(payload),
            digest=digest(payload),
            facts=data.draw(facts) if outcome == "succeeded" else "[]",
            error="",
        )

    @invariant()
    def reservations_keep_the_limit(self) -> None:
        """I3: attempts that started, and those that may, never exceed the step budget."""
        for run in self.both.oracle.runs.values():
            limit = run.limit("step_budget")
            assert limit is None or run.used["step_budget"] + run.reserved["step_budget"] <= limit

    # How it is chosen

    def send(self, data: st.DataObject, kind: Any, **fields: Any) -> Any:
        """Applies a command, at times as an inbox entry, with a reply list, or twice."""
        gate: dict[str, str] = {}
        if data.draw(rarely(5)):
            box = inbox(self.both.namespace, "clerk")
            gate |= {"inbox": box, "entry": self.both.post(box)}
        if data.draw(rarely(5)):
            self.serial += 1
            gate |= {"reply_to": client_reply(self.both.namespace, "t"), "request": f"q{self.serial}"}
        command = kind(**{"now": self.now, "run": self.name} | fields | gate)
        reply = self.both.apply(command)
        if "entry" in gate and data.draw(st.booleans()):
            self.both.apply(command)
        return reply

    def pick(self, data: st.DataObject, *states: S, external: bool | None = None) -> str:
        """A task in one of the states; at times any other, or none of the run's."""
        tasks = self.run.tasks.values()
        fitting = [
            t.id for t in tasks if t.state in states and external in (None, t.external) and not t.for_each
        ]
        others = [*self.run.tasks, "nobody"]
        return str(data.draw(st.sampled_from(fitting * 12 + others if fitting else others)))

    def pick_grant(self, data: st.DataObject) -> Grant:
        """A lease, mostly one that is live."""
        leases = {t.lease for t in self.run.tasks.values() if t.lease}
        live = [grant for grant in self.grants if grant[2] in leases]
        return data.draw(st.sampled_from(live * 6 + self.grants))

    def pick_parent(self, data: st.DataObject) -> Task:
        parents = [t for t in self.run.tasks.values() if t.for_each]
        at_work = [t for t in parents if t.state in (S.QUEUED, S.RUNNING)]
        return data.draw(st.sampled_from(at_work * 8 + parents))

    def role(self, data: st.DataObject, found: Task | None) -> str:
        own = (found.role if found else "") or "clerk"
        return str(data.draw(st.sampled_from(ROLES))) if data.draw(rarely(12)) else own

    @staticmethod
    def child(parent: Task, number: int, index: int) -> dict[str, Any]:
        fields = {
            name: parent.spec[name] for name in ("role", "capability", "tokens", "cost_micros", "priority")
        }
        spec = task(f"{parent.id}[{number}]", required=0, max_attempts=2, parent=parent.id, **fields)
        return planned(spec, index)


@pytest.mark.timeout(3600 if STEPS > 20_000 else 180)
def test_the_machine_agrees_with_the_oracle(redis: Redis) -> None:
    Agreement.seen.clear()
    Agreement.redis = redis
    wanted = settings(
        max_examples=max(1, STEPS // STEPS_PER_EXAMPLE),
        stateful_step_count=STEPS_PER_EXAMPLE,
        deadline=None,
        database=None,
        derandomize=not RANDOM,
        phases=(Phase.generate, Phase.shrink) if SHRINK else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(Agreement, settings=wanted)
    print(sorted(Agreement.seen.items()))
    is_long = STEPS >= 20_000
    missed = [word for word in MUST_SEE + RARE * is_long if not Agreement.seen[word]]
    tame = f"the walk was too tame to be worth anything, it never saw {missed}"
    assert len(missed) <= (0 if is_long else MAY_MISS), tame
