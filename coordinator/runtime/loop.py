"""Owns the coordinator's step: the inboxes, then what is due, then dispatch and launch (SPEC 3, DESIGN 1).

Production and simulation run this same step over the same Lua; the clock, the tokens and the launcher of attempts
are given to it. It holds no state of a run: after a crash at any point the next step goes on from Redis. Must not
decide states, sleep, or catch the loss of Redis (`service.py` does).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from redis import Redis

from coordinator.machine.commands import Command, Dispatch
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import DueGraces, DueTimers, ListRoles, NextTimer, OpenBatches, ReadInternal
from coordinator.runtime.inbox import Drained, Inboxes
from coordinator.runtime.leader import Deposed, Fenced
from coordinator.runtime.outbox import Launcher
from coordinator.runtime.teams import Teams
from coordinator.runtime.translation.translator import Translator
from coordinator.runtime.upkeep.due import Batches, Timers, batch_subject, grace_subject, timer_subject
from coordinator.runtime.upkeep.fan_out import FanOut, internal_subject
from coordinator.runtime.upkeep.quarantine import Quarantine
from coordinator.runtime.upkeep.vanished import Vanished
from coordinator.wire.errors import MachineFault

DISPATCHING = ("dispatch", "")
"""What dispatching is called when the machine fails on it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one step does of each thing, so that none keeps the others waiting.

    page: entries read from an inbox at once; pages: of each inbox. dispatches, launches: at once; rounds: of each.
    sweep_ms: how often dispatch and outbox are looked at although nothing happened.
    """

    page: int = 500
    pages: int = 10
    timers: int = 200
    batches: int = 32
    internal: int = 16
    dispatches: int = 40
    launches: int = 500
    rounds: int = 10
    sweep_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step did. entries: inbox entries that are gone; waiting: left, because their run has an open batch.

    more: the next step has work at once. wake_at: when the next timer is due (ms), None without one. deposed: another
    coordinator leads, nothing was done after that was known.
    """

    entries: int = 0
    waiting: int = 0
    timers: int = 0
    pieces: int = 0
    dispatched: int = 0
    launched: int = 0
    vanished: int = 0
    more: bool = False
    wake_at: int | None = None
    deposed: bool = False

    @property
    def idle(self) -> bool:
        """Whether the step found nothing to do."""
        return not (
            self.entries or self.timers or self.pieces or self.dispatched or self.launched or self.vanished
        )


@dataclass(slots=True)
class _Tally:
    drained: Drained = field(default_factory=Drained)
    timers: int = 0
    pieces: int = 0
    dispatched: int = 0
    launched: int = 0
    vanished: int = 0
    more: bool = False

    dispatched_since_look: bool = False

    @property
    def changed(self) -> bool:
        """Whether something may have become ready."""
        return bool(self.drained.done or self.timers or self.pieces)

    @property
    def changed_since_look(self) -> bool:
        """Whether what was seen behind the entries may no longer be so."""
        return bool(self.timers or self.pieces or self.vanished or self.dispatched_since_look)


class _Seen(NamedTuple):
    """What the machine has to do: timers due, graces passed, open batches, for_each parents; when the next timer is
    due."""

    due: list[tuple[str, str]]
    graces: list[tuple[str, str, str]]
    batches: list[tuple[str, str, str]]
    internal: list[tuple[str, str, str, str, str]]
    next_timer: int | None


class Loop:
    """The coordinator's work, one step at a time. tokens: makes lease tokens, unguessable in production."""

    def __init__(
        self,
        machine: Machine,
        redis: Redis,
        namespace: str,
        *,
        launcher: Launcher,
        tokens: Callable[[], str],
        bounds: Bounds | None = None,
        allow_cycle: bool = False,
        took: Callable[[int, float], None] | None = None,
    ) -> None:
        """allow_cycle: a submitted Team may have a cycle (only a simulation's may). took: told how many commands took
        how many seconds."""
        self._machine = machine
        self._bounds = bounds or Bounds()
        self._launcher = launcher
        self._fenced = Fenced(machine, took)
        self.teams = Teams(machine, allow_cycle=allow_cycle)
        translator = Translator(machine, self.teams, tokens)
        self.inboxes = Inboxes(
            redis, namespace, translator, self._fenced, self._bounds.page, self._bounds.pages
        )
        self._quarantine = Quarantine()
        self._timers = Timers(self._fenced, self._quarantine, self._bounds.timers)
        self._batches = Batches(self._fenced, self._quarantine, self.teams)
        self._fan_out = FanOut(machine, self._fenced, self._quarantine, self.teams)
        self._vanished = Vanished(machine, self._fenced, launcher)
        self._epoch = 0
        self._led_since: int | None = None
        """When the inboxes had been read to their end under this lead; None before."""
        self._roles: list[str] | None = None
        self._sweep_at = 0
        self._work_waits = True
        self._next_timer: int | None = None

    def step(self, now: int) -> StepResult:
        """One bounded step at the instant `now` (ms, never less than before).

        Raises what Redis' client raises when Redis cannot be used; every entry is then applied or still there.
        """
        tally = _Tally()
        try:
            wake_at = self._step(now, tally)
        except Deposed:
            return self._result(tally, None, deposed=True)
        return self._result(tally, wake_at)

    def sweep_next(self) -> None:
        """The next step writes something even if nothing happened, and so learns whether it still may."""
        self._sweep_at = 0

    def _step(self, now: int, tally: _Tally) -> int | None:
        if self._machine.epoch != self._epoch:
            self._begin_lead()
        if self._roles is None:
            self._listen()
        tally.drained = self.inboxes.drain(now, self._may_follow(now))
        followed = self._dispatched(tally.drained.followed, tally)
        if self._led_since is None and not tally.drained.more:
            self._led_since = now
        seen = self._look(now)
        self._fire(now, seen, tally)
        tally.pieces = self._batches.advance(now, seen.batches) + self._fan_out.work(now, seen.internal)
        if tally.changed or now >= self._sweep_at:
            finished = self._hand_out(now, tally, followed and not (tally.timers or tally.pieces))
            self._sweep_at = now + self._bounds.sweep_ms if finished else now
            tally.more = tally.more or not finished
        if tally.changed_since_look:
            seen = self._look(now)
        if tally.drained.submits:
            self._listen()
        return self._look_ahead(now, seen, tally)

    def _begin_lead(self) -> None:
        """Under a new epoch nothing is taken from memory: others may have led since."""
        self._epoch = self._machine.epoch
        self._led_since = None
        self._roles = None
        self._work_waits = True
        self._sweep_at = 0
        self.inboxes.forget()
        self._vanished.forget()

    def _fire(self, now: int, seen: _Seen, tally: _Tally) -> None:
        """A new leader fires nothing before it has read the inboxes to their end: what is due may be answered there
        (SPEC 7)."""
        if self._led_since is None:
            return
        fired, more_timers = self._timers.fire(now, self._led_since, seen.due)
        expired, more_graces = self._timers.expire(now, seen.graces)
        tally.timers, tally.more = fired + expired, more_timers or more_graces

    def _may_follow(self, now: int) -> list[Command]:
        """Dispatch right behind the entries saves a round trip; but timers that are due come in between, and so does
        other work that waits."""
        quiet = not self._work_waits and (self._next_timer is None or self._next_timer > now)
        return self._dispatches(now) if quiet else []

    def _look_ahead(self, now: int, seen: _Seen, tally: _Tally) -> int | None:
        """When the loop has to wake by itself; and whether it should go on at once."""
        self._work_waits = bool(seen.batches or seen.internal)
        self._next_timer = seen.next_timer
        released = tally.drained.waiting and tally.pieces
        tally.more = bool(tally.more or tally.drained.more or self._work_waits or released)
        next_timer = seen.next_timer
        if next_timer is not None and not self._quarantine.is_empty:
            next_timer = max(next_timer, now + self._bounds.sweep_ms)
        instants = [instant for instant in (next_timer, self._vanished.next_at) if instant is not None]
        return min(instants, default=None)

    def _look(self, now: int) -> _Seen:
        """What is to be done, in one round trip; without what the machine has just failed on."""
        bounds, quarantine = self._bounds, self._quarantine
        due, graces, batches, internal, next_timer = self._fenced.read_many(
            [
                DueTimers(now=now, limit=quarantine.window(bounds.timers)),
                DueGraces(now=now, limit=quarantine.window(bounds.timers)),
                OpenBatches(limit=quarantine.window(bounds.batches)),
                ReadInternal(limit=quarantine.window(bounds.internal)),
                NextTimer(),
            ]
        )
        return _Seen(
            quarantine.healthy(now, due, timer_subject, bounds.timers),
            quarantine.healthy(now, graces, grace_subject, bounds.timers),
            quarantine.healthy(now, batches, batch_subject, bounds.batches),
            quarantine.healthy(now, internal, internal_subject, bounds.internal),
            next_timer,
        )

    def _hand_out(self, now: int, tally: _Tally, dispatched: bool) -> bool:
        """Dispatch until nothing is left to dispatch, then launch what stands in the outbox. False: there is more.

        dispatched: nothing was left behind the entries, and nothing happened since.
        """
        sweep = now >= self._sweep_at
        finished = dispatched or self._dispatch(now, tally)
        if tally.dispatched or sweep:
            for _ in range(self._bounds.rounds):
                launched = self._launcher.launch(self._bounds.launches)
                tally.launched += launched
                if launched < self._bounds.launches:
                    break
            else:
                return False
            if self._vanished.is_due(now):
                tally.vanished = self._vanished.look(now, self._roles or [])
        return finished and not tally.vanished

    def _dispatch(self, now: int, tally: _Tally) -> bool:
        """False when the bound was reached first."""
        for _ in range(self._bounds.rounds):
            before = tally.dispatched
            try:
                replies = self._fenced.apply_many(self._dispatches(now))
            except MachineFault as fault:
                self._say_stuck(now, fault)
                return True
            finished = self._dispatched(replies, tally)
            tally.dispatched_since_look = tally.dispatched > before or tally.dispatched_since_look
            if finished:
                return True
        return False

    def _say_stuck(self, now: int, fault: MachineFault) -> None:
        """Nothing is dispatched, but what runs goes on. It is tried again all the time, and said from time to time."""
        if not self._quarantine.rests(now, DISPATCHING):
            self._quarantine.rest(now, DISPATCHING, str(fault))

    def _dispatches(self, now: int) -> list[Command]:
        """Two at once: mostly the second one finds nothing, and that is what ends it."""
        return [Dispatch(now=now, limit=self._bounds.dispatches)] * 2

    @staticmethod
    def _dispatched(replies: list[Reply] | None, tally: _Tally) -> bool:
        """Counts what two dispatches did; True when the second one found nothing."""
        if replies is None:
            return False
        first, second = (int(reply.data) for reply in replies)
        tally.dispatched += first + second
        return second == 0

    def _listen(self) -> None:
        """Runs name roles when they are submitted; before that nobody can have reported in a role's inbox."""
        [self._roles] = self._fenced.read_many([ListRoles()])
        self.inboxes.listen_to(self._roles or ())

    def _result(self, tally: _Tally, wake_at: int | None, deposed: bool = False) -> StepResult:
        return StepResult(
            entries=tally.drained.done,
            waiting=tally.drained.waiting,
            timers=tally.timers,
            pieces=tally.pieces,
            dispatched=tally.dispatched,
            launched=tally.launched,
            vanished=tally.vanished,
            more=tally.more,
            wake_at=wake_at,
            deposed=deposed,
        )
