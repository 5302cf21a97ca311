"""Owns the seeded choice of what happens next in an exploration: steps, messages, faults, time.

After a number of free choices the faults end and the run is played out fairly, so that what hangs is seen too. Must not
judge: it hands what is stored to `invariants` after every choice.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from coordinator.simulation.actors.workers import ScriptedAttempt
from coordinator.simulation.clock import Happening
from coordinator.simulation.exploration.stored import read_stored
from coordinator.simulation.exploration.witness import Witness
from coordinator.simulation.faults import CoordinatorDied, Fault, FaultyMachine, FaultyPost
from coordinator.simulation.invariants import Stored, Violation, Watch
from coordinator.simulation.playground import Playground
from coordinator.simulation.scene import Scene
from coordinator.simulation.stage import Stage
from coordinator.simulation.verify import Verdict, verify
from coordinator.wire.channels import JobId
from coordinator.wire.errors import MachineFault
from coordinator.wire.names import FINAL, RunStatus
from coordinator.wire.reports import ExternalReport, Signal

MOST_CHOICES = 300
"""After so many free choices the faults end."""
MOST_AFTER_THE_STOP = 6
"""Choices after the run has stopped: what comes late is to be seen too."""
MOST_FAULTS = 8
"""At most so many faults meet one seed, so that runs also get somewhere."""
MOST_FAIR_STEPS = 1000
"""After so many steps without faults nobody waits for the end any more."""
LONGEST_WAIT_MS = 40_000

Act = Callable[[], object]
Choice = tuple[float, str, Act]


class Driver:
    """Plays one seed. trace: what was chosen; faults: how often each was; status: how the run ended."""

    def __init__(
        self, ground: Playground, scene: Scene, seed: int, machine_type: type[FaultyMachine] = FaultyMachine
    ) -> None:
        self.trace: list[str] = []
        self.faults: Counter[str] = Counter()
        self.status = ""
        self._random = random.Random(seed)
        self._ground = ground
        self._machine_type = machine_type
        self._namespace = scene.namespace
        self._roles = sorted(scene.team.roles)
        self._witness = Witness(scene.run)
        self._post = FaultyPost(ground.redis, scene.namespace)
        self._stage = Stage(
            ground.redis, scene, post=self._post, make_machine=self._make_machine, deliver=self._deliver
        )
        self._watch = Watch(scene.graph)
        self._stored: Stored | None = None
        self._budget = self._random.randrange(MOST_FAULTS + 1)

    def play(self) -> list[Violation]:
        """Plays the seed to its end; gives what did not hold at the first look at which something did not."""
        self._post.copies = self._random.choice((1, 1, 1, 2))
        self._stage.submit()
        self._post.copies = 1
        left = MOST_CHOICES
        while left > 0:
            if self._stage.status in FINAL:
                left = min(left, MOST_AFTER_THE_STOP)
            left -= 1
            label, act = self._choose()
            self.trace.append(f"{self._stage.clock.now} {label}")
            if found := self._happen(act):
                return found
        return self._play_out()

    def _play_out(self) -> list[Violation]:
        """The rest without faults: whatever can still happen happens, in its order."""
        self._budget = 0
        self.trace.append(f"{self._stage.clock.now} the rest comes in its time")
        for _ in range(MOST_FAIR_STEPS):
            if found := self._happen(self._stage.fair_step):
                return found
            if self._stage.is_over or self._stage.is_idle:
                break
        self.status = self._stage.status
        return self._hanging() or self._unlike_its_commands()

    def _unlike_its_commands(self) -> list[Violation]:
        """The recorded commands alone lead to the same end."""
        result = verify(self._stage.machine, self._stage.scene.run, self._ground.empty)
        return [Violation("verify", result.differs)] if result.verdict is Verdict.DIFFERS else []

    def _hanging(self) -> list[Violation]:
        if self.status != RunStatus.RUNNING or not self._stage.is_idle or self._waits_for_others():
            return []
        return [Violation("liveness", "the run is running, nothing is going to happen, and nobody was lost")]

    def _waits_for_others(self) -> bool:
        """An outside system that said nothing, or whose word was lost, may be waited for as long as it takes."""
        tasks = self._stored.tasks.values() if self._stored else ()
        return any(task.get("external") == "1" and task["was"] in ("queued", "running") for task in tasks)

    def _happen(self, act: Act) -> list[Violation]:
        try:
            act()
        except CoordinatorDied:
            self._stage.restart_coordinator()
            self._stage.attend()
        except MachineFault as fault:
            return [Violation("fault", str(fault))]
        finally:
            self._post.copies = 1
        return self._look() if self._stage.stepped else []

    def _look(self) -> list[Violation]:
        self._stage.stepped = False
        self._stored = read_stored(self._stage.machine, self._stage.scene.run, self._stage.take_news())
        found, self._witness.found = self._witness.found, []
        return found + (self._watch.look(self._stored, self._witness.refused) if self._stored else [])

    def _make_machine(self) -> FaultyMachine:
        machine = self._machine_type(self._ground.redis, self._namespace)
        machine.witness = self._witness
        return machine

    # -- choices ---------------------------------------------------------------------------------------

    def _choose(self) -> tuple[str, Act]:
        choices = list(self._choices())
        weights = [weight for weight, _, _ in choices]
        _, label, act = self._random.choices(choices, weights)[0]
        return label, act

    def _choices(self) -> Iterator[Choice]:
        yield 0.3 if self._stage.rests else 5, "step", self._stage.step
        now = self._stage.clock.now
        yield 0.1 if self._stage.agenda.is_due(now) else 1.5, "the clock moves on", self._stage.pass_time
        for happening in self._stage.agenda.entries():
            yield (
                3 if happening.at <= now else 0.2,
                happening.label,
                partial(self._stage.let_happen, happening),
            )
        for attempt in self._stage.workers.working():
            if attempt.grant:
                yield 0.1, f"{attempt.name} says what it used", partial(self._stage.workers.use, attempt)
        yield 0.05, "somebody signals", self._signal
        if self._budget > 0:
            yield from self._faults()

    def _faults(self) -> Iterator[Choice]:
        for happening in self._stage.agenda.entries():
            yield 0.1, f"{happening.label}: lost", partial(self._carry, happening, 0)
            yield 0.2, f"{happening.label}: twice", partial(self._carry, happening, 2)
        for attempt in self._stage.workers.working():
            yield 0.1, f"{attempt.name} dies", partial(self._die, attempt)
            yield 0.1, f"{attempt.name} is handed back", partial(self._drain, attempt)
        yield 0.1, "an unreadable entry comes", self._scrawl
        yield 0.1, "a report on an unknown task comes", self._report_unknown
        yield 0.2, "time passes", self._time_passes
        yield 0.3, "the leader changes", self._leader_changes
        for fault in (Fault.ANSWER_LOST, Fault.DIED_BEFORE, Fault.DIED_BETWEEN, Fault.DIED_AFTER):
            yield 0.2, f"step: {fault}", partial(self._step_with, fault)

    def _count(self, fault: Fault) -> None:
        self.faults[fault] += 1
        self._budget -= 1

    def _carry(self, happening: Happening, copies: int) -> None:
        self._count(Fault.MESSAGE_DOUBLED if copies else Fault.MESSAGE_LOST)
        self._post.copies = copies
        self._stage.let_happen(happening)

    def _signal(self) -> None:
        self._post.to_scope("operate", Signal(run=self._stage.scene.run, signal="go", source="somebody"))

    def _scrawl(self) -> None:
        self._count(Fault.ENTRY_MALFORMED)
        if self._roles:
            self._post.scrawl(self._random.choice(self._roles))

    def _report_unknown(self) -> None:
        self._count(Fault.ENTRY_FOREIGN)
        self._post.to_scope(
            "operate", ExternalReport(run=self._stage.scene.run, task="nobody", state="working")
        )

    def _drain(self, attempt: ScriptedAttempt) -> None:
        self._count(Fault.WORKER_DRAINED)
        self._stage.workers.drain(attempt)

    def _die(self, attempt: ScriptedAttempt) -> None:
        self._count(Fault.WORKER_DIED)
        self._stage.workers.die(attempt)

    def _time_passes(self) -> None:
        self._count(Fault.TIME_PASSED)
        self._stage.clock.advance_to(self._stage.clock.now + self._random.randrange(1, LONGEST_WAIT_MS))

    def _leader_changes(self) -> None:
        """A second coordinator takes over; the first one wakes up and goes on as if nothing had happened."""
        self._count(Fault.LEADER_CHANGED)
        old = self._stage.replace_leader()
        self._stage.step_of_old_leader(old)
        self._stage.attend()

    def _step_with(self, fault: Fault) -> None:
        self._count(fault)
        machine = self._stage.machine
        if isinstance(machine, FaultyMachine):
            machine.cut = self._random.randrange(8)
            machine.armed = fault
        self._stage.step()

    def _deliver(self, jobs: list[JobId]) -> list[JobId]:
        """What becomes of jobs on their way to the workers: some vanish, some are popped twice."""
        delivered: list[JobId] = []
        for job in jobs:
            chance = self._random.random() if self._budget > 0 else 1.0
            if chance < 0.06:
                self._count(Fault.JOB_VANISHED)
            elif chance < 0.12:
                self._count(Fault.JOB_DOUBLED)
                delivered += [job, job]
            else:
                delivered.append(job)
        return delivered
