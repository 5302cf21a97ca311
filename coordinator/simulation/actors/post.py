"""Owns how scripted workers and outside systems reach the coordinator: by the same inboxes and reply lists as
real ones.

Must not know what a message means. `explore` puts a carrier that loses and doubles messages in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from redis import Redis

from coordinator.wire import channels
from coordinator.wire.reports import Entry


class Post:
    """Carries entries to inboxes and answers back, on a private Redis."""

    def __init__(self, redis: Redis, namespace: str) -> None:
        self._redis = redis
        self.namespace = namespace
        self._held: list[tuple[str, Entry]] | None = None
        self.sent = 0
        """How many entries were sent so far."""

    def to_role(self, role: str, entry: Entry) -> None:
        """A worker of `role` says something."""
        self._carry(channels.inbox(self.namespace, role), entry)

    def to_scope(self, scope: str, entry: Entry) -> None:
        """A client or an outside system says something in the inbox of its scope."""
        self._carry(channels.scope_inbox(self.namespace, scope), entry)

    def reply_list(self, role: str, worker: str) -> str:
        """Where a worker wants its answers."""
        return channels.reply(self.namespace, role, worker)

    def answers(self, lists: Sequence[str]) -> list[bytes]:
        """Takes everything out of these reply lists, list by list, oldest first."""
        with self._redis.pipeline(transaction=True) as pipe:
            for key in lists:
                pipe.lrange(key, 0, -1)
            pipe.delete(*lists)
            *found, _ = pipe.execute()
        return [raw for answers in found for raw in answers]

    def answer(self, request: str) -> bytes | None:
        """Takes the answer to a client's request; None when there is none yet."""
        raw = self._redis.lpop(channels.client_reply(self.namespace, request))
        return raw if isinstance(raw, bytes) else None

    @contextmanager
    def bundled(self) -> Iterator[None]:
        """What is said within the block goes out together at its end, in its order."""
        self._held = []
        try:
            yield
            with self._redis.pipeline(transaction=False) as pipe:
                for stream, entry in self._held:
                    pipe.xadd(stream, dict(entry.fields().items()))
                pipe.execute()
        finally:
            self._held = None

    def _carry(self, stream: str, entry: Entry) -> None:
        self.sent += 1
        if self._held is None:
            self._redis.xadd(stream, dict(entry.fields().items()))
        else:
            self._held.append((stream, entry))
