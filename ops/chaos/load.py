"""Owns the work of a chaos run: submits teams, so that some are always open, and speaks as operators and outsiders.

It says everything by entries in the inboxes, like any client, without waiting for answers: what became of each is read
in Redis' journal afterwards. Must not do anything to a process.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadRun, ReadTask
from coordinator.team.compile import document_text
from coordinator.team.loader import make_team
from coordinator.wire import channels
from coordinator.wire.errors import MachineFault
from coordinator.wire.names import RunStatus, TaskState
from coordinator.wire.reports import Cancel, Entry, ExternalReport, Submit
from ops.chaos.teams import draw_team

NAMESPACE = channels.DEFAULT_NAMESPACE


class Load:
    """The open runs. open_runs: how many are kept open; most: runs in all."""

    def __init__(self, redis: Redis, random: Random, open_runs: int, most: int) -> None:
        self._redis = redis
        self._machine = Machine(redis, NAMESPACE)
        self._random = random
        self._open_runs = open_runs
        self._most = most
        self.submitting = True
        self.open: dict[str, dict[str, Any]] = {}
        """Runs that may still move, with their documents."""
        self.done: Counter[str] = Counter()
        self._count = 0
        self._asks = 0

    def tick(self) -> None:
        """Looks at the open runs, and adds some. What Redis does not take now is said again later."""
        try:
            self._look()
            while self.submitting and len(self.open) < self._open_runs and self._count < self._most:
                self._submit()
        except (RedisError, MachineFault):
            with suppress(RedisError, MachineFault):
                self._machine.load()  # the functions may be gone, and coordinators need not be of this version

    def cancel(self, *, whole: bool) -> bool:
        """An operator cancels some open run, or some task of it; False when nobody could hear it."""
        if not self.open:
            return False
        run = self._random.choice(sorted(self.open))
        task = "" if whole else self._random.choice(sorted(self.open[run]["tasks"]))
        self._asks += 1
        entry = Cancel(run=run, task=task, ask=f"ask-{self._asks}", reason="chaos", source="operator")
        try:
            self._say("operate", entry)
            if self._random.random() < 0.3:
                self._say("operate", entry)  # told twice: the request id makes it one
        except RedisError:
            return False
        return True

    def scrawl(self) -> None:
        """Something that nobody can read comes into an inbox."""
        self._redis.xadd(channels.inbox(NAMESPACE, "inline"), {"kind": "end", "task": b"\xff"})

    def _submit(self) -> None:
        document = draw_team(self._random)
        run = f"run-{self._count + 1}"
        self._say("submit", Submit(run=run, team=document_text(make_team(document)), inputs="{}"))
        self._count += 1
        self.done["runs submitted"] += 1
        self.open[run] = document

    def _look(self) -> None:
        runs = list(self.open)
        if not runs:
            return
        records = self._machine.read_many([ReadRun(run) for run in runs])
        for run, record in zip(runs, records, strict=True):
            if record and record["status"] != RunStatus.RUNNING:
                del self.open[run]
            elif record and "outside" in self.open[run]["tasks"]:
                self._speak_outside(run)

    def _speak_outside(self, run: str) -> None:
        """The outside system of an `external` team: reports, sometimes twice, sometimes another word."""
        task = self._machine.read(ReadTask(run, "outside"))
        state = task.get("state")
        if state == TaskState.QUEUED and self._random.random() < 0.3:
            self._report(run, "working")
        elif state in (TaskState.QUEUED, TaskState.RUNNING):
            self._report(run, self._random.choice(("completed", "completed", "completed", "failed")))
            if self._random.random() < 0.3:
                self._report(run, "completed")

    def _report(self, run: str, state: str) -> None:
        payload = json.dumps({"word": self._random.choice("aaab")}) if state == "completed" else ""
        key = "outside-key" if state == "completed" else ""
        self._say(
            "operate",
            ExternalReport(run=run, task="outside", state=state, payload=payload, key=key, source="outside"),
        )
        self.done["external reports sent"] += 1

    def _say(self, scope: str, entry: Entry) -> None:
        self._redis.xadd(channels.scope_inbox(NAMESPACE, scope), dict(entry.fields().items()))
