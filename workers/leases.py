"""Owns how a worker comes to leases: it asks for those of the jobs that it popped, and hands back what it cannot do.

How old a grant can be is judged by this machine's clock alone: it is no older than the question, and no older than the
last moment at which its list was known to be empty (C-05). Must not run anything.
"""

from __future__ import annotations

import time
from collections.abc import Collection

import structlog
from redis import RedisError

from coordinator.wire.channels import JobId
from coordinator.wire.grants import Answer, Grant
from coordinator.wire.reports import HandBackReport
from workers.attempt import Attempt
from workers.link import FIRST_BACKOFF_S, LAST_BACKOFF_S, Link
from workers.modes.stopping import Stopping

ANSWER_S = 1.0
"""Longest wait for grants in one command, and so the longest doubt about the age of one."""
ASK_AGAIN_S = 30.0
"""After so long without an answer the lease is asked for again."""
PATIENCE_S = 2.0
"""How long a stopping worker waits for grants that it asked for, to hand them back."""
PAGES_S = 30.0
"""How long the pages of a large grant may take."""

log = structlog.get_logger("crewline.worker")


class Leases:
    """A worker's requests for leases. For the worker's main thread only."""

    def __init__(self, link: Link, worker: Stopping, capabilities: Collection[str]) -> None:
        self._link, self._worker = link, worker
        self._capabilities = capabilities
        self._empty_at = dict.fromkeys(link.posts, 0.0)

    def take(self, jobs: list[JobId]) -> list[Attempt]:
        """Asks for the leases of jobs, waits for all the answers, and gives the attempts that can run here."""
        asked = {self._link.next_request(): job for job in jobs}
        asked_at = time.monotonic()
        granted: list[Attempt] = []
        self._ask(asked)
        ask_again = asked_at + ASK_AGAIN_S
        while asked and not self._out_of_patience(asked_at):
            if time.monotonic() > ask_again:
                self._ask(asked)
                ask_again = time.monotonic() + ASK_AGAIN_S
            try:
                granted += self._receive(asked, asked_at)
            except RedisError as error:
                # Answers may have been lost with the connection: ask again soon, and take what comes.
                log.warning("redis_lost", doing="ask", fault=str(error))
                time.sleep(FIRST_BACKOFF_S)
                ask_again = min(ask_again, time.monotonic() + ANSWER_S)
            self._worker.keep_alive()
        self._return_unanswered(asked.values())
        return [attempt for attempt in granted if self._complete(attempt)]

    def hand_back(self, attempt: Attempt, reason: str) -> None:
        """Returns an attempt whose handler did not begin."""
        self._link.offer([(attempt.role, attempt.hand_back(reason))], self._worker.keep_offering)

    def _out_of_patience(self, asked_at: float) -> bool:
        return self._worker.draining() and time.monotonic() > asked_at + PATIENCE_S

    def _ask(self, asked: dict[str, JobId]) -> None:
        wait = FIRST_BACKOFF_S
        while not self._worker.draining():
            try:
                self._link.ask(asked.items())
                return
            except RedisError as error:
                log.warning("redis_lost", doing="ask", wait_s=wait, fault=str(error))
                time.sleep(wait)
                wait = min(wait * 2, LAST_BACKOFF_S)

    def _receive(self, asked: dict[str, JobId], asked_at: float) -> list[Attempt]:
        """One wait for answers; what was answered leaves `asked`."""
        began = time.monotonic()
        messages = self._link.receive(ANSWER_S)
        received = time.monotonic()
        granted = []
        for role, message in messages:
            job = asked.pop(message.request, None)
            if isinstance(message, Grant):
                not_before = max(asked_at, self._empty_at[role])
                attempt = Attempt(role, self._link.worker, message, not_before, received)
                if job is None:
                    self.hand_back(attempt, "refused_start")  # asked for by a question that was given up
                else:
                    granted.append(attempt)
            elif isinstance(message, Answer) and job is not None:
                log.info("lease_refused", run=job.run, task=job.task, attempt=job.attempt, word=message.word)
        for role in {role for role, _ in messages} or self._empty_at:
            self._empty_at[role] = began
        return granted

    def _complete(self, attempt: Attempt) -> bool:
        """Whether the attempt can run here and now; fetches the results that the grant did not carry."""
        grant = attempt.grant
        if grant.capability not in self._capabilities:
            log.warning("no_handler", capability=grant.capability, run=grant.run, task=grant.task)
            self.hand_back(attempt, "no_worker")
            return False
        if self._worker.draining():
            self.hand_back(attempt, "draining")
            return False
        if not grant.pages:
            return True
        try:
            found = self._link.fetch_pages(attempt, PAGES_S)
        except (RedisError, ValueError) as error:
            log.warning("redis_lost", doing="results", fault=str(error))
            found = None
        if found is None:
            self.hand_back(attempt, "refused_start")
            return False
        attempt.grant = grant.model_copy(update=found)
        return True

    def _return_unanswered(self, jobs: Collection[JobId]) -> None:
        """Jobs that were asked for and never answered: the coordinator is told that nothing was begun."""
        if jobs:
            self._link.offer(
                [(job.role, self._nothing_begun(job)) for job in jobs], self._worker.keep_offering
            )

    def _nothing_begun(self, job: JobId) -> HandBackReport:
        return HandBackReport(
            run=job.run, task=job.task, attempt=job.attempt, worker=self._link.worker, reason="draining"
        )
