"""Owns a worker that says on the wire what real ones say, word for word as the test wants it.

Must not stand in for the workers' own code: that has tests of its own.
"""

from __future__ import annotations

import json
from typing import Any

from redis import Redis

from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadTask
from coordinator.wire import channels
from coordinator.wire.reports import ActionStart, End, Entry, Start
from tests.support.waiting import until

WORK: dict[str, Any] = {
    "team": "pay",
    "roles": {"clerk": {"capabilities": ["pay"]}},
    "tasks": {"pay": {"max_attempts": 3, "backoff": 0}, "mail": {"external": True, "requires": ["pay"]}},
}
"""A Team of one task for the worker, `pay`, and one outside, `mail`."""


class Worker:
    """Says on the wire what a worker of role clerk says."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.machine = Machine(redis, channels.DEFAULT_NAMESPACE)

    def _ask(self, entry: Entry) -> dict[str, Any]:
        key = channels.reply(channels.DEFAULT_NAMESPACE, "clerk", "w1")
        addressed = entry.model_copy(update={"reply_to": key, "request": "q"})
        self.redis.xadd(channels.inbox(channels.DEFAULT_NAMESPACE, "clerk"), dict(addressed.fields().items()))
        found = self.redis.blpop([key], timeout=30)
        assert found
        answer: dict[str, Any] = json.loads(found[1])
        return answer

    def start(self, run: str, attempt: int = 1) -> str:
        """Takes the attempt when it is queued; gives the lease."""

        def is_queued() -> bool:
            task = self.machine.read(ReadTask(run=run, task="pay"))
            return bool(task["state"] == "queued" and task["attempt"] == str(attempt))

        until(is_queued, f"attempt {attempt} is queued")
        lease: str = self._ask(Start(run=run, task="pay", attempt=attempt, worker="w1"))["lease"]
        return lease

    def act(self, run: str, lease: str, key: str) -> dict[str, Any]:
        """Starts an action."""
        return self._ask(
            ActionStart(
                run=run, task="pay", attempt=1, worker="w1", lease=lease, key=key, payload='{"amount": 120}'
            )
        )

    def end(self, run: str, lease: str, outcome: str, attempt: int = 1, payload: str = "null") -> None:
        """Ends the attempt."""
        self._ask(
            End(
                run=run,
                task="pay",
                attempt=attempt,
                worker="w1",
                lease=lease,
                outcome=outcome,
                payload=payload,
            )
        )
