"""Owns what goes on without anybody asking: timers, graces of cancels, open batches.

Each is read from the machine in bounded portions and put to it as a command; Lua judges whether it is really due.
Must not decide states.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.machine.commands import AddTasks, Command, ContinueBatch, ExpireCancel, FireTimer
from coordinator.runtime.leader import Fenced
from coordinator.runtime.teams import Teams
from coordinator.runtime.upkeep.quarantine import Quarantine, Subject
from coordinator.wire.errors import InputFault
from coordinator.wire.names import Refusal, ReplyStatus

PARTS_AT_ONCE = 4
"""Parts of one large run that are added in one pipeline."""


def timer_subject(due: tuple[str, str]) -> Subject:
    """What a timer is called when the machine fails on it."""
    return ("fire_timer", *due)


def grace_subject(due: tuple[str, str, str]) -> Subject:
    """What a grace is called when the machine fails on it."""
    return ("expire_cancel", *due)


def batch_subject(batch: tuple[str, str, str]) -> Subject:
    """What a batch is called when the machine fails on it."""
    return ("batch", batch[0])


class Timers:
    """Fires timers that are due, and ends graces that have passed."""

    def __init__(self, fenced: Fenced, quarantine: Quarantine, limit: int) -> None:
        self._fenced = fenced
        self._quarantine = quarantine
        self._limit = limit

    def fire(self, now: int, led_since: int, due: Sequence[tuple[str, str]]) -> tuple[int, bool]:
        """Fires those (run, task) that may be due. Gives how many took effect, and whether there may be more.

        led_since: when this leader had read the inboxes to their end; each lease has a full heartbeat from then on.
        """
        return self._apply(
            now,
            [timer_subject(item) for item in due],
            [FireTimer(now=now, run=run, task=task, led_since=led_since) for run, task in due],
        )

    def expire(self, now: int, due: Sequence[tuple[str, str, str]]) -> tuple[int, bool]:
        """Ends the graces of those (run, task, attempt); answers as `fire` does."""
        return self._apply(
            now,
            [grace_subject(item) for item in due],
            [ExpireCancel(now=now, run=run, task=task, attempt=int(attempt)) for run, task, attempt in due],
        )

    def _apply(self, now: int, subjects: list[Subject], commands: Sequence[Command]) -> tuple[int, bool]:
        sifted = self._quarantine.sift(now, subjects, self._fenced.apply_each(commands))
        applied = sum(reply.status == ReplyStatus.APPLIED for _, reply in sifted)
        return applied, applied > 0 and len(commands) >= self._limit


class Batches:
    """Does the next piece of every open batch: the rest of a large submit, a large cascade."""

    def __init__(self, fenced: Fenced, quarantine: Quarantine, teams: Teams) -> None:
        self._fenced = fenced
        self._quarantine = quarantine
        self._teams = teams

    def advance(self, now: int, batches: Sequence[tuple[str, str, str]]) -> int:
        """One piece for each of the given runs, so that all get on alike. Gives how many pieces were done."""
        subjects: list[Subject] = []
        pieces: list[Command] = []
        for batch in batches:
            run, kind, added = batch
            subject = batch_subject(batch)
            try:
                new = (
                    self._next_parts(run, int(added), now)
                    if kind == "add"
                    else [ContinueBatch(now=now, run=run)]
                )
            except InputFault as fault:
                self._quarantine.rest(now, subject, f"the stored Team cannot be read: {fault}")
                continue
            if not new:
                self._quarantine.rest(now, subject, "the run's documents are gone")
            pieces += new
            subjects += [subject] * len(new)
        sifted = self._quarantine.sift(now, subjects, self._fenced.apply_each(pieces))
        for subject, reply in sifted:
            if reply.status == ReplyStatus.REFUSED and reply.word != Refusal.STALE_VERSION:
                self._quarantine.wait(now, subject)
        return sum(reply.status == ReplyStatus.APPLIED for _, reply in sifted)

    def _next_parts(self, run: str, cursor: int, now: int) -> list[Command]:
        """The cursor of each part is known before the one in front of it is applied; if that fails, these do too.
        Empty when the run's documents are gone."""
        submission = self._teams.submission_of(run)
        if submission is None:
            return []
        parts: list[Command] = []
        while len(parts) < PARTS_AT_ONCE:
            more = submission.more(cursor)
            parts.append(
                AddTasks(now=now, run=run, cursor=cursor, items=submission.part(cursor), more=int(more))
            )
            if not more:
                break
            cursor = submission.after(cursor)
        return parts
