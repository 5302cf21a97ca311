"""The other side of the wire for worker tests: a scripted coordinator in a thread, on a real Redis.

It reads the inbox of one role as the coordinator does (an entry that it took is deleted), grants or refuses every
start by the test's script, and keeps all entries for the test to look at.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError
from rq import Queue
from rq.serializers import JSONSerializer

from coordinator.wire import channels, reports
from coordinator.wire.channels import JobId
from coordinator.wire.connection import connect

ROLE = "clerk"
WAIT_S = 15.0


class Peer:
    """Answers the workers of one role. grant: makes changes to a task's grant, or refuses it by giving None."""

    def __init__(self, url: str, namespace: str, role: str = ROLE) -> None:
        self.redis: Any = connect(url)
        self.namespace, self.role = namespace, role
        self.entries: list[reports.RoleReport] = []
        self.tasks: dict[str, dict[str, Any]] = {}
        self.answer: Callable[[reports.RoleReport], dict[str, Any] | None] = self.grant
        self.over_budget_at: int | None = None
        self.pages: list[dict[str, Any]] = []
        self.child_state = ""
        self.paused = threading.Event()
        self.relaunches = False
        self._heard = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def task(self, name: str, capability: str, **changes: Any) -> None:
        """Says what a task's grant looks like."""
        self.tasks[name] = {"capability": capability, **changes}

    def launch(self, *names: str, attempt: int = 1) -> None:
        """Puts a job for each of the tasks into RQ's queue, in order."""
        queue = Queue(
            channels.queue_name(self.namespace, self.role), connection=self.redis, serializer=JSONSerializer
        )
        jobs = [
            Queue.prepare_data(
                "crewline.attempt", job_id=str(JobId(self.role, "r1", name, attempt)), timeout=-1
            )
            for name in names
        ]
        with self.redis.pipeline() as pipe:
            queue.enqueue_many(jobs, pipeline=pipe)
            pipe.execute()

    def grant(self, start: reports.RoleReport) -> dict[str, Any] | None:
        """The grant of a start, as the machine words it."""
        now = int(time.time() * 1000)
        task = self.tasks[start.task]
        return {
            "v": 1, "kind": "grant", "request": start.request, "run": start.run, "task": start.task,
            "attempt": start.attempt, "lease": f"lease-{start.task}-{start.attempt}", "key": f"{start.task}/1",
            "heartbeat_ms": 30_000, "timeout_at": now + 3_600_000, "now": now, "output_bytes": 1 << 20,
            "input": None, "inputs": None, "results": {}, "states": {}, "pages": 0, **task,
        }  # fmt: skip

    def cancel(self, start: reports.RoleReport, reason: str = "run_stopped") -> None:
        """Tells the worker of `start` that its attempt is to end."""
        notice = {"v": 1, "kind": "cancel", "run": start.run, "task": start.task, "attempt": start.attempt,
                  "lease": f"lease-{start.task}-{start.attempt}", "reason": reason}  # fmt: skip
        self.redis.rpush(channels.control(self.namespace, self.role, start.worker), json.dumps(notice))

    def wait(self, kind: str, count: int = 1, task: str | None = None, timeout: float = WAIT_S) -> Any:
        """Waits for the count-th entry of a kind (and task) and gives it."""
        deadline = time.monotonic() + timeout
        with self._heard:
            while True:
                found = [e for e in self.entries if e.kind == kind and task in (None, e.task)]
                if len(found) >= count:
                    return found[count - 1]
                left = deadline - time.monotonic()
                if left <= 0 or not self._heard.wait(left):
                    heard = [(e.kind, e.task, getattr(e, "reason", "")) for e in self.entries[-30:]]
                    raise AssertionError(f"no {kind} of {task or 'any task'} ({count}) among {heard}")

    def count(self, kind: str, task: str | None = None) -> int:
        """How many entries of a kind came so far."""
        with self._heard:
            return len([e for e in self.entries if e.kind == kind and task in (None, e.task)])

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join(timeout=5)
        self.redis.close()

    def _work(self) -> None:
        inbox = channels.inbox(self.namespace, self.role)
        while not self._stop.is_set():
            if self.paused.is_set():
                self._stop.wait(0.01)
                continue
            try:
                for _, items in self.redis.xread({inbox: "0-0"}, block=50) or []:
                    for entry_id, raw in items:
                        self._apply(inbox, entry_id, raw)
            except ConnectionError:
                self._stop.wait(0.05)  # Redis is away, as a test wants it

    def _apply(self, inbox: str, entry_id: bytes, raw: dict[bytes, bytes]) -> None:
        entry = reports.parse_role(self.namespace, self.role, raw)
        reply: dict[str, Any] | None = None
        if isinstance(entry, reports.Start):
            reply = self.answer(entry) or self._other(entry, "refused", "stale_attempt")
        elif isinstance(entry, reports.Use):
            over = self.over_budget_at is not None and entry.tokens > self.over_budget_at
            reply = (
                self._other(entry, "refused", "over_budget") if over else self._other(entry, "applied", "")
            )
        elif isinstance(entry, reports.Spawn) and self.child_state:
            reply = {"v": 1, "kind": "child", "request": entry.request, "child": f"{entry.task}[0]",
                     "state": self.child_state}  # fmt: skip
        elif isinstance(entry, reports.AskResults):
            reply = {
                "v": 1,
                "kind": "page",
                "request": entry.request,
                "page": entry.page,
                **self.pages[entry.page],
            }
        with self.redis.pipeline() as pipe:
            pipe.xdel(inbox, entry_id)
            if reply is not None and entry.reply_to:
                pipe.rpush(entry.reply_to, json.dumps(reply))
            pipe.execute()
        if isinstance(entry, reports.HandBackReport) and self.relaunches:
            self.launch(entry.task, attempt=entry.attempt + 1)
        with self._heard:
            self.entries.append(entry)
            self._heard.notify_all()

    def _other(self, entry: reports.RoleReport, status: str, word: str) -> dict[str, Any]:
        return {
            "v": 1,
            "kind": "reply",
            "request": entry.request,
            "status": status,
            "word": word,
            "run": entry.run,
        }


def keys_of(redis: Redis) -> set[str]:
    """All keys, for tests that look at what is left."""
    client: Any = redis
    return {key.decode() for key in client.keys("*")}
