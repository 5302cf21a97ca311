"""Owns the small world of the kill sweep: one run of three tasks, a coordinator that may be cut, workers that may not.

The workers and the client speak the wire by a client of their own. After a cut a coordinator is there again as its
supervisor, or its own loop, would bring it back, and nobody gives it a nudge. Must not judge the end.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from redis import Redis
from redis.exceptions import ConnectionError

from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadEvents, ReadMetrics, ReadRun, ReadTasks
from coordinator.runtime.leader import Leader
from coordinator.runtime.loop import Loop
from coordinator.runtime.outbox import Outbox
from coordinator.wire import channels
from coordinator.wire.channels import JobId
from coordinator.wire.names import FINAL
from coordinator.wire.reports import End, Entry, Start, Submit
from tests.chaos.scalpel import Killed, Scalpel
from tests.runtime.harness import NAMESPACE, ROLE, START, team

RUN, WORKER = "r1", "w1"
MOST_TURNS = 400
TEAM = team(
    {"a": {}, "b": {"requires": ["a"]}, "c": {"max_attempts": 2, "backoff": 0}},
    limits={"step_budget": 4},
)
"""`c` fails once, so that a retry is among what is swept over."""
COUNTED = (
    "stops:",
    "tasks:",
    "attempts:",
    "stopped:",
    "late",
    "duplicate",
    "conflict",
    "malformed",
    "cancellations:",
)


@dataclass
class Ended:
    """What stands at the end, without anything that depends on when it was done."""

    run: dict[str, str]
    tasks: list[tuple[str, ...]]
    events: Counter[tuple[str, str, str]]
    counters: dict[str, str]
    started: Counter[tuple[str, int]]
    """Grants that reached a worker, by task and attempt."""
    left: list[str] = field(default_factory=list)


class World:
    """One run from its submit to its end. redis: for everybody but the coordinator; its server is emptied."""

    def __init__(self, redis: Redis, url: str, scalpel: Scalpel) -> None:
        redis.flushall()
        self._redis, self._scalpel = redis, scalpel
        self._socket = unquote(urlsplit(url).path)
        self._reader = Machine(redis, NAMESPACE)
        self._reader.load()
        self._now = START
        self._names = 0
        self._tokens = 0
        self._started: Counter[tuple[str, int]] = Counter()

    def play(self) -> Ended:
        """Plays to the end; raises AssertionError when the run does not get there by itself."""
        self._say(
            channels.scope_inbox(NAMESPACE, "submit"), Submit(run=RUN, team=json.dumps(TEAM), inputs="{}")
        )
        leader, loop = self._begin()
        for _ in range(MOST_TURNS):
            self._now += 1
            try:
                if leader.hold():
                    loop.step(self._now)
            except (Killed, ConnectionError):
                leader, loop = self._begin()
            self._work()
            if self._reader.read(ReadRun(RUN)).get("status") in FINAL and not self._left():
                return self._ended()
        raise AssertionError(f"the run never ends: {self._reader.read(ReadRun(RUN))}, left: {self._left()}")

    def _begin(self) -> tuple[Leader, Loop]:
        """A coordinator's process starts, or connects again. It may be cut down while it does."""
        while True:
            client = self._scalpel.client(self._socket)
            self._names += 1
            machine = Machine(client, NAMESPACE)
            leader = Leader(machine, f"c{self._names}", lambda: self._now, ttl_ms=1)
            try:
                machine.load()
                loop = Loop(
                    machine,
                    client,
                    NAMESPACE,
                    launcher=Outbox(machine, client, NAMESPACE),
                    tokens=self._token,
                )
                return leader, loop
            except (Killed, ConnectionError):
                continue

    def _token(self) -> str:
        self._tokens += 1
        return f"lease-{self._tokens}"

    def _work(self) -> None:
        """Workers take what is queued, ask for leases, and report at once on what they are granted."""
        queue = f"rq:queue:{channels.queue_name(NAMESPACE, ROLE)}"
        reply = channels.reply(NAMESPACE, ROLE, WORKER)
        inbox = channels.inbox(NAMESPACE, ROLE)
        while isinstance(raw := self._redis.lpop(queue), bytes):
            job = JobId.parse(raw.decode())
            identity: dict[str, Any] = {
                "run": job.run,
                "task": job.task,
                "attempt": job.attempt,
                "worker": WORKER,
            }
            self._say(inbox, Start(**identity, request="s", reply_to=reply))
        while isinstance(raw := self._redis.lpop(reply), bytes):
            grant: dict[str, Any] = json.loads(raw)
            if grant["kind"] != "grant":
                continue
            identity = {name: grant[name] for name in ("run", "task", "attempt", "lease")}
            self._started[grant["task"], grant["attempt"]] += 1
            fails = grant["task"] == "c" and grant["attempt"] == 1
            outcome = "transient" if fails else "succeeded"
            payload = json.dumps({"of": grant["results"]})
            self._say(inbox, End(**identity, worker=WORKER, outcome=outcome, payload=payload))

    def _say(self, stream: str, entry: Entry) -> None:
        self._redis.xadd(stream, dict(entry.fields().items()))

    def _left(self) -> list[str]:
        streams = [channels.scope_inbox(NAMESPACE, "submit"), channels.inbox(NAMESPACE, ROLE)]
        lists = [f"{NAMESPACE}:outbox", f"rq:queue:{channels.queue_name(NAMESPACE, ROLE)}"]
        return [key for key in streams if self._redis.xlen(key)] + [
            key for key in lists if self._redis.llen(key)
        ]

    def _ended(self) -> Ended:
        run = self._reader.read(ReadRun(RUN))
        names = (
            "status",
            "state_version",
            "seq",
            "reports",
            "used_step_budget",
            "reserved_step_budget",
            "stop_reason",
        )
        tasks = self._reader.read(ReadTasks(RUN, 0, 100))
        counters = self._reader.read(ReadMetrics())
        return Ended(
            {name: run.get(name, "") for name in names},
            [
                tuple(task.get(name, "") for name in ("id", "state", "attempt", "granted", "digest"))
                for task in tasks
            ],
            Counter(
                (e["kind"], e["task_id"], e["attempt"]) for e in self._reader.read(ReadEvents(RUN, 0, 1_000))
            ),
            {name: value for name, value in counters.items() if name.startswith(COUNTED)},
            self._started,
        )
