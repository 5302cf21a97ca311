"""Owns waiting in tests for what cannot announce itself: a condition is asked until it holds.

Must not be used where an event can be waited for (a reply list, a process' end, a stream).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(
    ask: Callable[[], T], what: str, *, seconds: float = 30.0, ignore: tuple[type[Exception], ...] = ()
) -> T:
    """Asks until the answer is true and gives it; errors in `ignore` count as no. Raises AssertionError in the end.

    what: what is waited for, as a sentence. seconds: after which the wait has failed.
    """
    end = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < end:
        try:
            if answer := ask():
                return answer
            last = answer
        except ignore as error:
            last = error
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds:g} s: {what} (last: {last!r})")
