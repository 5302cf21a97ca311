"""Owns what the modes share: what they ask of the worker, and the outcome of an attempt that was stopped.

Must not run anything.
"""

from __future__ import annotations

from typing import Protocol

from coordinator.wire.names import FailureClass
from workers.attempt import Attempt
from workers.outcomes import Outcome, canceled, failed

LEAVE = "leave"
"""Reason of a cancel: the worker has to end."""
TIMEOUT = "timeout"
"""Reason of a cancel: the attempt's own time is over."""


class Stopping(Protocol):
    """What the worker knows of its own end."""

    cancel_grace_s: float

    def draining(self) -> bool:
        """Whether it takes no new work."""

    def must_leave(self) -> bool:
        """Whether running handlers are to be stopped now."""

    def keep_offering(self, passed: float) -> bool:
        """Whether reports that could not be stored for so many seconds are to be offered again."""

    def deregister(self) -> None:
        """Says that the worker is gone; never raises."""

    def keep_alive(self) -> None:
        """Tells RQ from time to time that the worker lives."""

    def horse(self, pid: int) -> None:
        """Tells RQ which child works, 0 for none, so that `kill-horse` finds it."""


def stopped(attempt: Attempt, leaving: bool = False) -> Outcome:
    """The outcome of an attempt whose handler was stopped, or stopped itself when told to."""
    if leaving or attempt.cancel_reason == LEAVE:
        return failed(FailureClass.TRANSIENT, "WorkerStopped", "the worker had to end before the handler did")
    if attempt.cancel_reason == TIMEOUT:
        return failed(
            FailureClass.TRANSIENT, "TimedOut", "the handler ran beyond its timeout and was stopped"
        )
    return canceled(f"the handler was stopped: {attempt.cancel_reason or 'canceled'}")
