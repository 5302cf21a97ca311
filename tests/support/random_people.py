"""Owns what people and side effects do in a random walk: cancels, answers, resumption, decisions, actions.

Must not compare anything; the walk in tests/machine/test_against_oracle.py mixes this in.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from coordinator.machine import commands as c
from coordinator.wire.names import RunStatus
from coordinator.wire.names import TaskState as S
from tests.support.builders import digest, text
from tests.support.lockstep import Lockstep
from tests.support.oracle.state import Run
from tests.support.random_teams import FACTS, mostly, rarely

Grant = tuple[str, int, str, str]
DECISIONS = ("accept", "accept", "supply", "reject", "rerun")
TAINTED = ("keep", "rerun")
RAISABLE = ("limit_step_budget", "limit_max_steps", "limit_tokens", "limit_cost")

payloads = st.sampled_from([{"v": 1}] * 4 + [{"v": 2}])
facts = st.lists(st.sampled_from(FACTS), unique=True).map(text)
amounts = st.sampled_from([0, 0, 5, 10, 10, 25, 60])
action_keys = st.sampled_from(["pay", "pay", "mail"])
ends = mostly("confirmed", "failed", "forgotten")


class People:
    """Moves of people. The walk gives `both`, `now`, `send` and the pickers."""

    both: Lockstep
    now: int
    serial: int
    grants: list[Grant]

    @property
    def run(self) -> Run:
        raise NotImplementedError

    def send(self, data: st.DataObject, kind: Any, **fields: Any) -> Any:
        raise NotImplementedError

    def pick(self, data: st.DataObject, *states: S, external: bool | None = None) -> str:
        raise NotImplementedError

    def pick_grant(self, data: st.DataObject) -> Grant:
        raise NotImplementedError

    def weights(self) -> list[tuple[int, Any]]:
        """Each move with its weight in the state that the run is in."""
        tasks = list(self.run.tasks.values())
        awaiting = any(t.state is S.AWAITING and not t.for_each for t in tasks)
        reviews = any(not review.decision for review in self.run.opened_reviews.values())
        answered = any(t.answer for t in tasks)
        live = any(t.lease for t in tasks)
        parked = self.run.status in (RunStatus.PAUSED, RunStatus.NEEDS_REVIEW)
        told = any(record.until is not None for record in self.run.cancellations.values())
        doubt = any(a.state in ("started", "unknown") for a in self.run.actions.values())
        return [
            (2, self.cancel_task),
            (6 if live else 0, self.doubt),
            (4 if live else 0, self.question),
            (6 if self.succeeded() else 0, self.contradict),
            (1, self.cancel_run),
            (8 if told else 1 if self.run.cancellations else 0, self.expire_cancel),
            (8 if told else 0, self.confirm),
            (16 if awaiting else 8 if answered else 0, self.answer),
            (8 if parked else 0, self.resume),
            (14 if reviews else 1 if self.run.opened_reviews else 0, self.decide),
            (
                30 if self.in_doubt("started", "unknown") else 8 if live else 1 if self.grants else 0,
                self.start_action,
            ),
            (3 if doubt and self.grants else 0, self.end_action),
            (14 if self.in_doubt() else 1 if live and doubt else 0, self.doubt_action),
            (3 if doubt else 0, self.decide_action),
        ]

    def succeeded(self) -> list[Grant]:
        """Leases of attempts whose result was accepted."""
        return [
            grant
            for grant in self.grants
            if self.run.tasks[grant[0]].state is S.SUCCEEDED and self.run.tasks[grant[0]].attempt == grant[1]
        ]

    def contradict(self, data: st.DataObject) -> None:
        """Who had succeeded says so again, mostly with another result."""
        if data.draw(st.booleans()):
            self.end(data, data.draw(st.sampled_from(self.succeeded())), "succeeded")

    def live(self, data: st.DataObject) -> Grant:
        """A lease that is live."""
        leases = {task.lease for task in self.run.tasks.values() if task.lease}
        return data.draw(st.sampled_from([grant for grant in self.grants if grant[2] in leases]))

    def doubt(self, data: st.DataObject) -> None:
        """A side effect is begun, the attempt fails, and the next one does not know what became of it."""
        grant = self.live(data)
        self.act(data, grant, "pay", 0)
        self.end(data, grant, "transient")
        task = self.run.tasks[grant[0]]
        if task.due:
            self.now = max(self.now, task.due[1])
            self.both.apply(c.FireTimer(now=self.now, run=self.run.id, task=task.id))
        self.both.apply(c.DispatchTask(now=self.now, run=self.run.id, task=task.id))
        if task.state is not S.QUEUED:
            return
        self.serial += 1
        second = (task.id, task.attempt, f"lease-{self.serial}", grant[3])
        name, attempt, lease, role = second
        self.both.apply(
            c.GrantLease(
                now=self.now, run=self.run.id, task=name, attempt=attempt, role=role, worker="w1", lease=lease
            )
        )
        self.grants.append(second)
        self.act(data, second, "pay", data.draw(mostly(0, 1)))

    def question(self, data: st.DataObject) -> None:
        """A task asks, is answered, and is answered otherwise."""
        grant = self.live(data)
        self.end(data, grant, "missing_input")
        for answer in data.draw(st.sampled_from([[1], [1, 2], [1, 1, 2]])):
            self.reply(data, grant[0], "", answer)

    def in_doubt(self, *states: str) -> list[tuple[Grant, str]]:
        """Live leases with the key of an action that an earlier attempt of the task began."""
        found = []
        for grant in self.grants:
            task = self.run.tasks[grant[0]]
            begun = [(key, a) for (name, key), a in self.run.actions.items() if name == task.id]
            keys = [
                key for key, a in begun if a.state in (states or ("unknown",)) and a.attempt < task.attempt
            ]
            found += [(grant, key) for key in keys if task.lease == grant[2]]
        return found

    def ask(self, data: st.DataObject) -> str:
        """A request id, now and then one that was used before, or none."""
        self.serial += 1
        return str(data.draw(st.sampled_from([f"ask-{self.serial}"] * 6 + ["ask", ""])))

    def cancel_task(self, data: st.DataObject) -> None:
        name = self.pick(data, S.PENDING, S.QUEUED, S.RUNNING, S.AWAITING)
        parents = [t.id for t in self.run.tasks.values() if t.for_each and not t.ended]
        chosen: bool = data.draw(rarely(3))
        if parents and chosen:
            name = data.draw(st.sampled_from(parents))
        self.send(data, c.CancelTask, task=name, ask=self.ask(data), reason="enough", source="ann")

    def cancel_run(self, data: st.DataObject) -> None:
        if data.draw(rarely(8)):
            self.send(data, c.CancelRun, ask=self.ask(data), reason="enough", source="ann")

    def expire_cancel(self, data: st.DataObject) -> None:
        name, attempt = data.draw(st.sampled_from(sorted(self.run.cancellations)))
        self.now += data.draw(mostly(31_000, 0))
        self.send(data, c.ExpireCancel, task=name, attempt=attempt + data.draw(rarely(8)))

    def confirm(self, data: st.DataObject) -> None:
        """Who was told to end says how it ended."""
        told = [grant for grant in self.grants if grant[:2] in self.run.cancellations]
        if told:
            self.end(
                data,
                data.draw(st.sampled_from(told)),
                data.draw(mostly("canceled", "succeeded", "permanent")),
            )

    def end(self, data: st.DataObject, grant: Grant | None = None, outcome: str = "") -> None:
        raise NotImplementedError

    def answer(self, data: st.DataObject) -> None:
        name = self.pick(data, S.AWAITING, external=False)
        answered = [t.id for t in self.run.tasks.values() if t.answer]
        chosen: bool = data.draw(st.booleans())
        if answered and chosen:
            name = data.draw(st.sampled_from(answered))
        found = self.run.tasks.get(name)
        answer = data.draw(st.sampled_from([1, 2] if found and found.answer else [1]))
        question = found.question if found and data.draw(st.booleans()) else ""
        self.reply(data, name, "another" if data.draw(rarely(8)) else question, answer)

    def reply(self, data: st.DataObject, name: str, question: str, answer: int) -> None:
        self.send(
            data,
            c.AnswerTask,
            task=name,
            question=question,
            payload=text({"v": answer}),
            digest=digest({"v": answer}),
            source="ann",
        )

    def resume(self, data: st.DataObject) -> None:
        known = [name for name in RAISABLE if self.run.limit(LIMIT_OF[name]) is not None]
        raises = []
        for name in known:
            if data.draw(st.booleans()):
                raises.append([name, data.draw(st.sampled_from([5, 20, 60])), 1])
        self.send(data, c.ResumeRun, raises=text(raises), source="ann")

    def decide(self, data: st.DataObject) -> None:
        names = sorted(self.run.opened_reviews)
        still_open = [name for name in names if not self.run.opened_reviews[name].decision]
        name = data.draw(st.sampled_from(still_open * 8 + names)) if names else "t0.1"
        review = self.run.opened_reviews.get(name)
        payload = data.draw(payloads)
        self.send(
            data,
            c.DecideReview,
            review=name,
            decision=data.draw(st.sampled_from(DECISIONS)),
            payload=text(payload),
            digest=digest(payload),
            facts=data.draw(facts),
            version=(review.version if review else 1) - data.draw(rarely(8)),
            tainted=data.draw(st.sampled_from(TAINTED)),
            reason="looked",
            source="ann",
        )

    def start_action(self, data: st.DataObject) -> None:
        grant, key = self.pick_grant(data), data.draw(action_keys)
        begun = self.in_doubt("started", "unknown")
        chosen: bool = data.draw(rarely(4))
        if begun and not chosen:
            grant, key = data.draw(st.sampled_from(begun))
        self.act(data, grant, key, data.draw(mostly(0, 1)))

    def act(self, data: st.DataObject, grant: Grant, key: str, again: int) -> None:
        name, attempt, lease, role = grant
        self.send(
            data,
            c.StartAction,
            task=name,
            attempt=attempt,
            role=role,
            worker="w1",
            lease=lease,
            key=key,
            payload="",
            digest="",
            again=again,
        )

    def end_action(self, data: st.DataObject) -> None:
        name, attempt, lease, role = self.pick_grant(data)
        self.send(
            data,
            c.EndAction,
            task=name,
            attempt=attempt,
            role=role,
            worker="w1",
            lease=lease,
            key=data.draw(action_keys),
            state=data.draw(ends),
            payload=text("r"),
            digest=digest("r"),
        )

    def doubt_action(self, data: st.DataObject) -> None:
        grant, key = self.pick_grant(data), data.draw(action_keys)
        if self.in_doubt():
            grant, key = data.draw(st.sampled_from(self.in_doubt()))
        name, attempt, lease, role = grant
        self.send(
            data,
            c.DoubtAction,
            task=name,
            attempt=attempt,
            role=role,
            worker="w1",
            lease=lease,
            key=key,
            tokens=data.draw(amounts),
            cost_micros=0,
        )

    def decide_action(self, data: st.DataObject) -> None:
        name, key = data.draw(st.sampled_from(sorted(self.run.actions)))
        self.send(
            data,
            c.DecideAction,
            task=name,
            key=key,
            state=data.draw(ends),
            payload=text("p"),
            digest=digest("p"),
            reason="looked",
            source="ann",
        )


LIMIT_OF = {
    "limit_step_budget": "step_budget",
    "limit_max_steps": "max_steps",
    "limit_tokens": "tokens",
    "limit_cost": "cost_micros",
}
