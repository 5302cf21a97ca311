"""Owns what only the answers show: that every entry took effect once, and that an old leader is not obeyed.

Pure: it is told each command and its answer. Must not know what is stored (`invariants` does).
"""

from __future__ import annotations

from coordinator.machine.commands import Command, FireTimer, TakeLead
from coordinator.machine.machine import Reply
from coordinator.simulation.invariants import Violation
from coordinator.wire.names import Refusal, ReplyStatus

_GONE = (ReplyStatus.APPLIED, ReplyStatus.REFUSED)
"""Answers after which an inbox entry must be gone."""


class Witness:
    """Sees all answers of all coordinators of a run.

    refused: how many commands of the run were refused so far (a timer that is not due is no refusal).
    """

    def __init__(self, run: str) -> None:
        self.refused = 0
        self.found: list[Violation] = []
        self._run = run
        self._epoch = 0
        self._gone: set[tuple[str, str]] = set()

    def see(self, epoch: int, command: Command, reply: Reply) -> None:
        """Takes one answer; what is wrong with it is added to `found`."""
        if isinstance(command, TakeLead):
            self._epoch = max(self._epoch, int(reply.data or 0))
            return
        fenced = reply.word == Refusal.OLD_EPOCH
        if fenced != (epoch < self._epoch):
            self.found.append(
                Violation(
                    "fencing",
                    f"{command.name()} under epoch {epoch} of {self._epoch}: {reply.status} {reply.word}",
                )
            )
        if fenced or reply.status not in _GONE:
            return
        if reply.status == ReplyStatus.REFUSED and not isinstance(command, FireTimer):
            self.refused += getattr(command, "run", "") == self._run
        if not command.entry:
            return
        place = (command.inbox, command.entry)
        if place in self._gone:
            self.found.append(
                Violation("once", f"{command.name()} took effect twice for the entry {command.entry}")
            )
        self._gone.add(place)
