"""Owns the work as Celery does it: group, chain and chord. Usage: celery_driver.py URL.

Must not wait through Celery's result consumer: the ends are read from the backend's keys, as with the other systems.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from celery import chain, group
from celery_app import noop
from line_loop import all_exist, serve
from redis import Redis

DIAMOND_ARMS = 4


def main() -> None:
    """Serves orders until the input ends."""
    waiter = Redis.from_url(sys.argv[1])

    def submit(shape: str, count: int) -> tuple[int, Callable[[], bool]]:
        tasks, last = SHAPES[shape](count)
        keys = [f"celery-task-meta-{task}" for task in last]
        return tasks, lambda: all_exist(waiter, keys)

    serve(waiter, submit)


def independent(count: int) -> tuple[int, list[str]]:
    """`count` tasks that need nothing."""
    result = group(noop.si() for _ in range(count)).apply_async()
    return count, [each.id for each in result.results]


def diamonds(count: int) -> tuple[int, list[str]]:
    """`count` times a chain of a task, a chord of four, and the chord's body."""
    ends = [_join(DIAMOND_ARMS) for _ in range(count)]
    return count * (DIAMOND_ARMS + 2), ends


def fan(count: int) -> tuple[int, list[str]]:
    """A chain of a task, a chord of `count`, and the chord's body."""
    return count + 2, [_join(count)]


def _join(arms: int) -> str:
    flow = chain(noop.si(), group(noop.si() for _ in range(arms)), noop.si())
    return str(flow.apply_async().id)


SHAPES = {"independent": independent, "diamonds": diamonds, "fan": fan}

if __name__ == "__main__":
    main()
