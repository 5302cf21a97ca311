"""Owns what the edge knows of the installation: reading it through the machine, and speaking to it through inboxes.

Must not write state, and must not decide: what is sent goes to the inbox of its scope, and what the coordinator
answers is passed on (SPEC 12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError
from redis import Redis
from redis.exceptions import NoPermissionError, ResponseError

from coordinator.api.problems import NotFound, accepted
from coordinator.client import ANSWER_SECONDS, Client
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ListRuns, Query, ReadLeader, ReadRecords, ReadRun
from coordinator.machine.snapshot import RunSnapshot, snapshot
from coordinator.wire.channels import queue_name
from coordinator.wire.connection import guard
from coordinator.wire.errors import InputFault
from coordinator.wire.grants import Answer
from coordinator.wire.reports import Entry

PAGE = 200
"""Records a read."""
MOST_SCANNED = 20_000
"""Runs that a filtered list looks through."""


class Place:
    """An installation: its Redis, its namespace. Used by many threads at once."""

    def __init__(self, redis: Redis, namespace: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Raises Unreachable."""
        self.redis = redis
        self.namespace = namespace
        self.client = Client(redis, namespace, answer_seconds=answer_seconds)
        self._machine = Machine(redis, namespace)
        with guard(redis):
            redis.ping()
        self._load()

    def _load(self) -> None:
        """A user that may not load functions relies on those that a leader of this version has loaded."""
        with guard(self.redis):
            try:
                self._machine.load()
            except NoPermissionError:
                return

    def read(self, query: Query) -> Any:
        """Asks the machine one question. Raises Unreachable."""
        return self.read_many([query])[0]

    def read_many(self, queries: Sequence[Query]) -> list[Any]:
        """Asks the machine several questions in one round trip. Raises Unreachable."""
        with guard(self.redis):
            try:
                return self._machine.read_many(queries)
            except ResponseError as error:  # a server that came back empty
                if "Function not found" not in str(error):
                    raise
            self._load()
            return self._machine.read_many(queries)

    def run(self, run: str) -> dict[str, str]:
        """The record of a run. Raises NotFound, Unreachable."""
        record: dict[str, str] = self.read(ReadRun(run=run))
        if not record:
            raise NotFound(f"there is no run {run[:128]}")
        return record

    def picture(self, run: str) -> RunSnapshot:
        """Everything recorded of a run. Raises NotFound, Unreachable."""
        self.run(run)
        with guard(self.redis):
            found = snapshot(self._machine, run)
        if found is None:
            raise NotFound(f"there is no run {run[:128]}")
        return found

    def records(self, run: str, kind: str) -> list[dict[str, Any]]:
        """The `cancellations`, `actions` or `reviews` of a run. Raises NotFound, Unreachable."""
        self.run(run)
        found: list[dict[str, Any]] = self.read(ReadRecords(run=run, kind=kind))
        return found

    def runs(self, offset: int, status: str = "", team: str = "") -> Iterator[tuple[int, dict[str, str]]]:
        """(place in the list, run), newest first, from an offset on. Raises Unreachable."""
        start = offset
        while page := self.read(ListRuns(offset=offset, limit=PAGE)):
            for row in page:
                offset += 1
                if status in ("", row["status"]) and team.lower() in row["team"].lower():
                    yield offset - 1, row
            if len(page) < PAGE or offset - start >= MOST_SCANNED:
                return

    def workers(self, tasks: Sequence[dict[str, str]]) -> dict[str, int]:
        """Live workers by role, as RQ has registered them for the queues of these tasks' roles."""
        found = {}
        with guard(self.redis):
            for role in sorted({task["role"] for task in tasks if task.get("role")}):
                names = self.redis.smembers(f"rq:workers:{queue_name(self.namespace, role)}")
                found[role] = int(self.redis.exists(*names)) if names else 0
        return found

    def leader(self) -> dict[str, str]:
        """Who leads the installation; empty when nobody has. Raises Unreachable."""
        found: dict[str, str] = self.read(ReadLeader())
        return found

    def say(self, scope: str, kind: type[Entry], **fields: Any) -> Answer:
        """Puts an entry into a scope's inbox; the coordinator's answer, unless it is a refusal.

        Raises InputFault for fields that no entry can have, and what `accepted` raises; Unanswered, Unreachable.
        """
        try:
            entry = kind(kind=kind.model_fields["kind"].default, **fields)
        except ValidationError as error:
            faults = error.errors(include_input=False, include_url=False, include_context=False)
            raise InputFault(
                [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults]
            ) from None
        return accepted(self.client.ask(scope, entry))
