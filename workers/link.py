"""Owns the worker's side of Redis: what it pops, what it appends to inboxes, and where it waits for answers.

Few commands a task, many tasks in one pipeline. Jobs are popped from RQ's queues by (B)LMPOP and never lie on RQ's
`:intermediate` list, whose cleanup would fail what runs for more than a minute; a job popped by a worker that then
dies is found by the coordinator (`never_started`, SPEC 3). Only ids are read of a job. Must not judge an attempt, and
must not turn trouble with Redis into an outcome: it is retried or raised.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from redis import Redis, RedisError

from coordinator.wire import channels
from coordinator.wire.channels import JobId
from coordinator.wire.grants import CancelNotice, MalformedMessage, Message, Page, parse_message
from coordinator.wire.reports import AskResults, RoleEntry, Start
from workers.attempt import Attempt

SUSPENDED = "rq:suspended"
"""RQ's key that stands while `rq suspend` holds."""
FIRST_BACKOFF_S, LAST_BACKOFF_S = 0.05, 5.0
"""Waits between attempts to reach Redis again."""
RECEIVE = 64
"""Most messages taken from a list at once."""

log = structlog.get_logger("crewline.worker")

Report = tuple[str, RoleEntry]
"""A role and what to append to its inbox."""


@dataclass(frozen=True, slots=True)
class Post:
    """The names that a worker uses for one of its roles."""

    role: str
    inbox: str
    reply: str
    control: str
    queue: str
    """Redis key of the role's RQ queue."""


class Link:
    """A worker's connection with Redis, for all its roles; for any thread, where nothing else is said."""

    def __init__(self, redis: Redis, ns: str, roles: Sequence[str], worker: str) -> None:
        self.redis: Any = redis
        self.worker = worker
        self.posts = {
            role: Post(
                role,
                channels.inbox(ns, role),
                channels.reply(ns, role, worker),
                channels.control(ns, role, worker),
                f"rq:queue:{channels.queue_name(ns, role)}",
            )
            for role in roles
        }
        self._by_queue = {post.queue: post for post in self.posts.values()}
        self._queues = [post.queue for post in self.posts.values()]
        self._replies = [post.reply for post in self.posts.values()]
        self._controls = [post.control for post in self.posts.values()]
        self._requests = itertools.count(1)

    def pop(self, count: int, block_s: float) -> list[JobId]:
        """Waits up to block_s for jobs, and takes up to `count` of one queue; the queues take turns."""
        queues = self._take_turns()
        return self._read_jobs(
            self.redis.blmpop(block_s, len(queues), *queues, direction="LEFT", count=count)
        )

    def exchange(self, reports: Sequence[Report], count: int) -> tuple[bool, list[JobId]]:
        """Appends reports and takes up to `count` jobs in one pipeline; gives (suspended, jobs). Raises RedisError.

        After an error nobody knows what of it was done: offer the reports again, jobs taken are found as never started.
        """
        pipe = self.redis.pipeline(transaction=False)
        for role, entry in reports:
            pipe.xadd(self.posts[role].inbox, entry.fields())
        pipe.exists(SUSPENDED)
        queues = self._take_turns()
        pipe.lmpop(len(queues), *queues, direction="LEFT", count=count)
        *_, suspended, popped = pipe.execute()
        return bool(suspended), self._read_jobs(popped)

    def suspended(self) -> bool:
        """Whether `rq suspend` holds."""
        return bool(self.redis.exists(SUSPENDED))

    def push_back(self, jobs: Sequence[JobId]) -> None:
        """Puts jobs that were not asked for back to the front of their queues, in order."""
        pipe = self.redis.pipeline(transaction=False)
        for job in reversed(jobs):
            pipe.lpush(self.posts[job.role].queue, str(job))
        pipe.execute()

    def _take_turns(self) -> list[str]:
        if len(self._queues) > 1:
            self._queues.append(self._queues.pop(0))
        return self._queues

    def _read_jobs(self, popped: Any) -> list[JobId]:
        if not popped:
            return []
        queue, ids = popped
        post = self._by_queue[queue.decode()]
        jobs = []
        for raw in ids:
            job = self._own_job(post, raw)
            if job is None:
                log.warning("job_not_ours", queue=post.queue, job=raw[:200].decode("utf-8", "replace"))
            else:
                jobs.append(job)
        return jobs

    def _own_job(self, post: Post, raw: bytes) -> JobId | None:
        """The job of that id, or None for what is none of ours: whoever may write to the queue can push anything."""
        try:
            job = JobId.parse(raw.decode())
            self._start(job, "")
        except ValueError:
            return None
        return job if job.role == post.role else None

    def _start(self, job: JobId, request: str) -> Start:
        return Start(
            run=job.run,
            task=job.task,
            attempt=job.attempt,
            worker=self.worker,
            reply_to=self.posts[job.role].reply if request else "",
            request=request,
        )

    def ask(self, jobs: Iterable[tuple[str, JobId]]) -> None:
        """Asks for the leases of jobs, each with its request id, and deletes the jobs; one pipeline."""
        pipe = self.redis.pipeline(transaction=False)
        keys = []
        for request, job in jobs:
            pipe.xadd(self.posts[job.role].inbox, self._start(job, request).fields())
            keys.append(f"rq:job:{job}")
        pipe.unlink(*keys)
        pipe.execute()

    def receive(self, block_s: float) -> list[tuple[str, Message]]:
        """Waits up to block_s for answers to `ask`, and gives all that are there, with their roles. One thread only."""
        return self._read_messages(self._replies, block_s)

    def notices(self, block_s: float) -> list[CancelNotice]:
        """Waits up to block_s for what the worker is told while it works. One thread only."""
        messages = self._read_messages(self._controls, block_s)
        return [message for _, message in messages if isinstance(message, CancelNotice)]

    def _read_messages(self, keys: list[str], block_s: float) -> list[tuple[str, Message]]:
        popped = self.redis.blmpop(block_s, len(keys), *keys, direction="LEFT", count=RECEIVE)
        if not popped:
            return []
        role = list(self.posts)[keys.index(popped[0].decode())]
        messages: list[tuple[str, Message]] = []
        for raw in popped[1]:
            try:
                messages.append((role, parse_message(raw)))
            except MalformedMessage as error:
                log.error("message_unreadable", role=role, fault=str(error))
        return messages

    def next_request(self) -> str:
        """A correlation id, new for this worker."""
        return str(next(self._requests))

    def own_list(self, role: str, request: str) -> str:
        """The reply list of one request, for a thread that waits for it alone."""
        return f"{self.posts[role].reply}:{request}"

    def answer(self, key: str, block_s: float) -> Message | None:
        """Waits up to block_s for the message on a request's own list."""
        popped = self.redis.blpop([key], timeout=block_s)
        return parse_message(popped[1]) if popped else None

    def fetch_pages(self, attempt: Attempt, wait_s: float) -> dict[str, dict[str, Any]] | None:
        """Results and states of the requirements, where a grant did not carry them; None if they did not come."""
        post, (run, task, number) = self.posts[attempt.role], attempt.identity
        request = self.next_request()
        key = self.own_list(attempt.role, request)
        pipe = self.redis.pipeline(transaction=False)
        for page in range(attempt.grant.pages):
            entry = AskResults(
                run=run, task=task, attempt=number, worker=self.worker, lease=attempt.grant.lease,
                page=page, reply_to=key, request=request,
            )  # fmt: skip
            pipe.xadd(post.inbox, entry.fields())
        pipe.execute()
        found: dict[str, dict[str, Any]] = {"results": {}, "states": {}}
        ends = time.monotonic() + wait_s
        for _ in range(attempt.grant.pages):
            message = self.answer(key, max(0.1, ends - time.monotonic()))
            if not isinstance(message, Page):
                return None
            found["results"].update(message.results)
            found["states"].update(message.states)
        return found

    def send(self, reports: Sequence[Report]) -> None:
        """Appends reports to their inboxes in one pipeline; raises RedisError."""
        pipe = self.redis.pipeline(transaction=False)
        for role, entry in reports:
            pipe.xadd(self.posts[role].inbox, entry.fields())
        pipe.execute()

    def offer(self, reports: Sequence[Report], keep_on: Callable[[float], bool]) -> bool:
        """Appends reports, again and again until they are stored; gives False when `keep_on` said to give up.

        keep_on: asked before each wait with the seconds since the first try. A report whose answer was lost may be
        stored twice; the coordinator takes one of them (SPEC 6).
        """
        first, wait = time.monotonic(), FIRST_BACKOFF_S
        while True:
            try:
                self.send(reports)
                return True
            except RedisError as error:
                passed = time.monotonic() - first
                if not keep_on(passed):
                    log.error(
                        "reports_dropped", count=len(reports), after_s=round(passed, 1), fault=str(error)
                    )
                    return False
                log.warning("redis_lost", doing="report", wait_s=wait, fault=str(error))
            time.sleep(wait)
            wait = min(wait * 2, LAST_BACKOFF_S)

    def forget(self) -> None:
        """Deletes the worker's own lists when it ends."""
        self.redis.unlink(*self._replies, *self._controls)
