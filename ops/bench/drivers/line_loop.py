"""Owns the conversation of a driver with the benchmark: one JSON line in, one out, until the input ends.

Must not know any of the systems. Imported by name from the driver's own folder, without the package.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from redis import Redis

POLL_SECONDS = 0.01
Submit = Callable[[str, int], tuple[int, Callable[[], bool]]]
"""(shape, count) -> number of tasks, and whether all of them have ended by now."""


def serve(waiter: Redis, submit: Submit) -> None:
    """Announces the waiter's address (its polls are not counted), then answers one line after the other."""
    _say({"ready": True, "waiter": waiter.client_info()["addr"]})
    for line in sys.stdin:
        order = json.loads(line)
        started = time.perf_counter()
        tasks, ended = submit(order["shape"], order["count"])
        submitted = time.perf_counter()
        while not ended():
            time.sleep(POLL_SECONDS)
        seconds = time.perf_counter() - started
        _say({"seconds": seconds, "submit_seconds": submitted - started, "tasks": tasks})


def all_exist(waiter: Redis, keys: list[str]) -> bool:
    """Whether all keys exist; asks for the last few alone until those do, so that polling stays cheap."""
    tail = keys[-20:]
    return waiter.exists(*tail) == len(tail) and waiter.exists(*keys) == len(keys)


def _say(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)
