"""Owns a coordinator for tests that is stepped by hand: real Lua, real RQ queues, a clock that moves when told.

Must not stand in for a worker's code: it says on the wire what workers and clients say, and reads what they are told.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from redis import Redis

from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadEvents, ReadRun, ReadTask, text
from coordinator.runtime.leader import Leader
from coordinator.runtime.loop import Bounds, Loop, StepResult
from coordinator.runtime.outbox import Outbox
from coordinator.wire import channels
from coordinator.wire.channels import JobId
from coordinator.wire.reports import AskResults, End, Entry, ExternalReport, Renew, Signal, Start, Submit, Use

START = 1_800_000_000_000
NAMESPACE = channels.DEFAULT_NAMESPACE
ROLE = "clerk"
WORKER = "w1"
MOST_STEPS = 2_000


def team(tasks: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A Team of one role that can do `work`; tasks without a capability of their own do that."""
    return {
        "team": "t",
        "roles": {ROLE: {"capabilities": ["work"]}},
        "tasks": {
            name: task if task.get("external") else {"capability": "work", **task}
            for name, task in tasks.items()
        },
        **more,
    }


class Stepped:
    """One coordinator, and the words of its workers and clients."""

    def __init__(
        self, redis: Redis, bounds: Bounds | None = None, machine_type: type[Machine] = Machine
    ) -> None:
        self.redis = redis
        self.now = START
        self.bounds = bounds
        self.machine = machine_type(redis, NAMESPACE)
        self.machine.load()
        self._tokens = itertools.count()
        self._requests = itertools.count()
        self.leases: dict[tuple[str, str], str] = {}
        self.restart()

    def restart(self) -> None:
        """The coordinator's process ends; another one leads from now on."""
        self.machine = type(self.machine)(self.redis, NAMESPACE)
        self.leader = Leader(self.machine, f"c{next(self._tokens)}", lambda: self.now, ttl_ms=1)
        while not self.leader.hold():
            self.now += 1
        self.loop = Loop(
            self.machine,
            self.redis,
            NAMESPACE,
            launcher=Outbox(self.machine, self.redis, NAMESPACE),
            tokens=lambda: f"lease-{next(self._tokens)}",
            bounds=self.bounds,
        )

    # -- time and steps ------------------------------------------------------------------------------------

    def step(self, later_ms: int = 0) -> StepResult:
        """One step, after time has passed."""
        self.now += later_ms
        return self.loop.step(self.now)

    def settle(self, later_ms: int = 0) -> StepResult:
        """Steps until a step has nothing left to do; gives the last one that did something."""
        self.now += later_ms
        result = last = self.loop.step(self.now)
        for _ in range(MOST_STEPS):
            if not result.more:
                return last
            result = self.loop.step(self.now)
            last = last if result.idle else result
        raise AssertionError("the loop does not come to rest")

    # -- what clients say ----------------------------------------------------------------------------------

    def submit(
        self, document: Mapping[str, Any], run: str = "r1", inputs: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Submits and settles; gives the answer."""
        return self.ask("submit", Submit(run=run, team=json.dumps(document), inputs=json.dumps(inputs or {})))

    def report(self, task: str, state: str, run: str = "r1", **more: Any) -> dict[str, Any]:
        """An outside system reports; gives the answer."""
        return self.ask("operate", ExternalReport(run=run, task=task, state=state, **more))

    def signal(self, name: str, run: str = "r1") -> dict[str, Any]:
        """An operator's signal; gives the answer."""
        return self.ask("operate", Signal(run=run, signal=name))

    def ask(self, scope: str, entry: Entry) -> dict[str, Any]:
        """Says something in a scope's inbox and steps until it is answered."""
        request = f"q{next(self._requests)}"
        key = channels.client_reply(NAMESPACE, request)
        addressed = entry.model_copy(update={"request": request, "reply_to": key})
        self.put(channels.scope_inbox(NAMESPACE, scope), addressed.fields())
        self.settle()
        return self.answer(key)

    # -- what workers say ----------------------------------------------------------------------------------

    def start(
        self, task: str, attempt: int = 1, run: str = "r1", worker: str = WORKER, role: str = ROLE
    ) -> dict[str, Any]:
        """A worker asks for the lease; gives the answer (a grant, mostly)."""
        key = channels.reply(NAMESPACE, role, worker)
        entry = Start(run=run, task=task, attempt=attempt, worker=worker, request="s", reply_to=key)
        self.say(entry, role)
        self.settle()
        answer = self.answer(key)
        if answer["kind"] == "grant":
            self.leases[run, task] = answer["lease"]
        return answer

    def end(
        self, task: str, payload: Any = None, attempt: int = 1, run: str = "r1", **more: Any
    ) -> StepResult:
        """The worker ends the attempt; payload: a value, or the JSON text itself as bytes."""
        sent = payload.decode() if isinstance(payload, bytes) else json.dumps(payload)
        more = {"outcome": "succeeded", "payload": sent, **more}
        entry = End(run=run, task=task, attempt=attempt, worker=WORKER, lease=self.leases[run, task], **more)
        self.say(entry)
        return self.settle()

    def work(self, task: str, payload: Any = None, attempt: int = 1, run: str = "r1") -> None:
        """Start and success."""
        self.start(task, attempt, run)
        self.end(task, payload, attempt, run)

    def renew(self, task: str, run: str = "r1", **more: Any) -> StepResult:
        """The worker's process lives."""
        lease = self.leases[run, task]
        self.say(Renew(run=run, task=task, attempt=1, worker=WORKER, lease=lease, **more))
        return self.settle()

    def leased(
        self, kind: type[Use] | type[AskResults], task: str, run: str = "r1", **more: Any
    ) -> dict[str, Any]:
        """Anything else that the holder of a lease asks; gives the answer."""
        key = channels.reply(NAMESPACE, ROLE, WORKER)
        lease = self.leases[run, task]
        self.say(
            kind(run=run, task=task, attempt=1, worker=WORKER, lease=lease, request="l", reply_to=key, **more)
        )
        self.settle()
        return self.answer(key)

    def say(self, entry: Entry, role: str = ROLE) -> None:
        """Puts an entry into a role's inbox; no step."""
        self.put(channels.inbox(NAMESPACE, role), entry.fields())

    def put(self, stream: str, fields: Mapping[Any, Any]) -> str:
        """Puts any fields into any inbox; gives the entry's id."""
        entry = self.redis.xadd(stream, dict(fields))
        assert isinstance(entry, bytes)
        return entry.decode()

    def answer(self, key: str) -> dict[str, Any]:
        """Takes the one answer that stands in a reply list."""
        raw = self.redis.lpop(key)
        assert isinstance(raw, bytes), f"no answer in {key}"
        found: dict[str, Any] = json.loads(raw)
        return found

    # -- what stands ---------------------------------------------------------------------------------------

    def run(self, run: str = "r1") -> dict[str, str]:
        """The run's record."""
        found: dict[str, str] = self.machine.read(ReadRun(run=run))
        return found

    def task(self, task: str, run: str = "r1") -> dict[str, str]:
        """A task's record."""
        found: dict[str, str] = self.machine.read(ReadTask(run=run, task=task))
        return found

    def state(self, task: str, run: str = "r1") -> str:
        """A task's stored state."""
        return self.task(task, run)["state"]

    def events(self, run: str = "r1") -> list[dict[str, str]]:
        """All events of a run."""
        found: list[dict[str, str]] = self.machine.read(ReadEvents(run=run, after=0, limit=100_000))
        return found

    def kinds(self, run: str = "r1") -> list[str]:
        """The kinds of all events of a run."""
        return [event["kind"] for event in self.events(run)]

    def jobs(self, role: str = ROLE) -> list[JobId]:
        """The jobs in the role's RQ queue, in order."""
        return [JobId.parse(text(raw)) for raw in self.redis.lrange(self.queue(role), 0, -1)]

    def pop_all(self, role: str = ROLE) -> list[JobId]:
        """Takes all jobs, as workers would."""
        jobs = self.jobs(role)
        self.redis.delete(self.queue(role))
        return jobs

    @staticmethod
    def queue(role: str = ROLE) -> str:
        """Key of the role's RQ queue."""
        return f"rq:queue:{channels.queue_name(NAMESPACE, role)}"

    def inbox_lengths(self) -> dict[str, int]:
        """Entries left in each inbox that has any."""
        streams = [channels.scope_inbox(NAMESPACE, scope) for scope in channels.SCOPES]
        streams.append(channels.inbox(NAMESPACE, ROLE))
        lengths = {stream: self.redis.xlen(stream) for stream in streams}
        return {stream: length for stream, length in lengths.items() if length}

    def ledger(self) -> list[dict[str, Any]]:
        """The installation's ledger of malformed entries, newest first."""
        return [json.loads(raw) for raw in self.redis.lrange(f"{NAMESPACE}:ledger", 0, -1)]
