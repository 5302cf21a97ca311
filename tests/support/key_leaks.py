"""Owns the check for keys that a test leaves behind.

Must not delete anything: what it finds is a fault of the code or of the test. A key is foreign when it belongs neither
to the test's namespace nor to RQ. Once nothing runs any more, a namespace should hold no work either.
"""

from __future__ import annotations

from redis import Redis


def foreign_keys(redis: Redis, namespace: str) -> list[str]:
    """Keys outside the namespace and outside RQ's own, in order."""
    return [key for key in all_keys(redis) if not key.startswith((f"{namespace}:", "rq:"))]


def work_left(redis: Redis, namespace: str) -> list[str]:
    """Keys of work that nobody has done: inbox entries, replies, control messages, RQ jobs, queued ids, in order.

    For the end of a test in which every run has ended and every worker has stopped.
    """
    work = (
        f"{namespace}:inbox:",
        f"{namespace}:reply:",
        f"{namespace}:control:",
        f"rq:queue:{namespace}:",
        "rq:job:",
        "rq:execution",
        "rq:worker:",
    )
    return [key for key in all_keys(redis) if key.startswith(work) and not _is_empty(redis, key)]


def all_keys(redis: Redis) -> list[str]:
    """Every key of the server's database, in order."""
    return sorted(key.decode() for key in redis.scan_iter(count=1000))


def _is_empty(redis: Redis, key: str) -> bool:
    """A stream whose entries are all deleted stays as an empty key."""
    return redis.type(key) == b"stream" and redis.xlen(key) == 0
