"""Owns the work as RQ does it: `depends_on`, every other setting at RQ's default. Usage: rq_driver.py URL.

Must not help RQ with anything that a user of `depends_on` would not write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from line_loop import serve
from redis import Redis
from rq import Queue
from rq.registry import FinishedJobRegistry, ReadyJobRegistry

QUEUE = "bench"
NOOP = "drivers.rq_noop.noop"
DIAMOND_ARMS = 4


def main() -> None:
    """Serves orders until the input ends."""
    url = sys.argv[1]
    waiter = Redis.from_url(url)
    queue = Queue(QUEUE, connection=Redis.from_url(url))
    finished = FinishedJobRegistry(QUEUE, connection=waiter).key

    def submit(shape: str, count: int) -> tuple[int, Callable[[], bool]]:
        before = waiter.zcard(finished)
        tasks = SHAPES[shape](queue, count)
        return tasks, Progress(waiter, finished, before + tasks).ended

    serve(waiter, submit)


class Progress:
    """Waits for a number of finished jobs, and does RQ's own maintenance at once when RQ would wait for it.

    RQ 3.0.0 leaves a dependent whose registry changed under it (two workers, short jobs) in its ready registry, for
    the maintenance that workers do every ten minutes. Without this no round with dependencies would end in time.
    """

    def __init__(self, waiter: Redis, finished: str, wanted: int) -> None:
        self._waiter, self._finished, self._wanted = waiter, finished, wanted
        self._ready = ReadyJobRegistry(QUEUE, connection=waiter)
        self._last = -1

    def ended(self) -> bool:
        """Whether as many jobs have finished as are wanted."""
        number = self._waiter.zcard(self._finished)
        if number == self._last:
            self._ready.cleanup()
        self._last = number
        return number >= self._wanted


def independent(queue: Queue, count: int) -> int:
    """`count` jobs that need nothing, in RQ's fastest way."""
    queue.enqueue_many([Queue.prepare_data(NOOP) for _ in range(count)])
    return count


def diamonds(queue: Queue, count: int) -> int:
    """`count` times: one job, four that need it, one that needs the four."""
    for _ in range(count):
        _join(queue, DIAMOND_ARMS)
    return count * (DIAMOND_ARMS + 2)


def fan(queue: Queue, count: int) -> int:
    """One job, `count` that need it, one that needs them all."""
    _join(queue, count)
    return count + 2


def _join(queue: Queue, arms: int) -> None:
    top = queue.enqueue(NOOP)
    queue.enqueue(NOOP, depends_on=[queue.enqueue(NOOP, depends_on=top) for _ in range(arms)])


SHAPES = {"independent": independent, "diamonds": diamonds, "fan": fan}

if __name__ == "__main__":
    main()
