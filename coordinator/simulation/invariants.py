"""Owns the invariants that hold after every step of every run (cases.md I1-I7, SPEC 3-5): what `explore`
looks at.

Pure: gets what is stored, says what is wrong with it. Must not repair or guess. Counters are computed again
from the tasks and the events, never taken from the machine's own words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.simulation.exploration.graph_view import GraphView
from coordinator.wire.names import ENDED, FINAL, TaskState

Fields = Mapping[str, str]

_IN_FLIGHT = frozenset({TaskState.QUEUED, TaskState.RUNNING})
_UNFINISHED = _IN_FLIGHT | {TaskState.PENDING, TaskState.AWAITING}
_BUDGETS = (("step_budget", ""), ("tokens", "held_tokens"), ("cost", "held_cost_micros"))
_FIXED = (
    "status",
    "stop_reason",
    "stop_rule",
    "stop_task",
    "stop_seq",
    "stop_at",
    "used_step_budget",
    "ended_at",
)
_DECISIONS = frozenset({"task_conflicted"})
"""Events that may move a task that has ended (a conflict is a recorded fact that a person decides on)."""
_RECORDS = frozenset({"refused", "late_ignored", "duplicate_result_ignored"})
"""Events that record a report which had no effect (I5)."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant: its name (`I3`, `counters`, ...) and what was found."""

    invariant: str
    found: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.found}"


@dataclass(frozen=True, slots=True)
class Stored:
    """A run as it stands in Redis. tasks: in file order. timers: tasks that have one ("": the run's own)."""

    run: Fields
    tasks: Mapping[str, Fields]
    events: Sequence[Fields]
    """Only those that came since the last look."""
    timers: frozenset[str]


@dataclass(slots=True)
class Watch:
    """Looks at one run again and again; keeps what it must remember between two looks."""

    graph: GraphView
    seq: int = 0
    version: int = 0
    states: dict[str, str] = field(default_factory=dict)
    """States rebuilt from the events alone (I7)."""
    accepted: Counter[str] = field(default_factory=Counter)
    started: Counter[str] = field(default_factory=Counter)
    records: int = 0
    final: dict[str, str] = field(default_factory=dict)

    def look(self, stored: Stored, refused: int) -> list[Violation]:
        """Checks everything; gives what is broken, in a fixed order. refused: how many reports were, so far."""
        found = [*self._read_events(stored.events)]
        run = stored.run
        if int(run.get("seq", "0")) != self.seq:
            found.append(Violation("I5", f"run.seq is {run.get('seq')}, the last event is {self.seq}"))
        if int(run.get("state_version", "0")) != self.version:
            found.append(
                Violation("I6", f"run.state_version is {run.get('state_version')}, events {self.version}")
            )
        if self.records != refused:
            found.append(Violation("I5", f"{refused} reports were refused, {self.records} events say so"))
        found += self._replayed(stored)
        found += self._stopped(stored)
        found += budgets(stored)
        found += counters(stored)
        found += timers(stored)
        if not run.get("batch"):
            found += self._fixed_point(stored)
        return found

    # -- events --------------------------------------------------------------------------------------------

    def _read_events(self, events: Iterable[Fields]) -> Iterable[Violation]:
        for event in events:
            seq, version = int(event["seq"]), int(event["state_version"])
            if seq != self.seq + 1:
                yield Violation("I5", f"event {seq} follows {self.seq}")
            moved = bool(event.get("to"))
            if version != self.version + moved:
                yield Violation(
                    "I6", f"event {seq} ({event['kind']}) has version {version} after {self.version}"
                )
            self.seq, self.version = seq, version
            self.records += event["kind"] in _RECORDS
            if moved and not event["kind"].startswith("run_"):
                yield from self._move(event)

    def _move(self, event: Fields) -> Iterable[Violation]:
        task, kind, to = event["task_id"], event["kind"], event["to"]
        before = self.states.get(task, TaskState.PENDING)
        if event["from"] != before:
            yield Violation("I7", f"event {event['seq']} moves {task} from {event['from']}, it was {before}")
        if before in ENDED and kind not in _DECISIONS:
            yield Violation("I2", f"event {event['seq']} ({kind}) moves {task}, which had ended {before}")
        self.states[task] = to
        if to == TaskState.SUCCEEDED:
            self.accepted[task] += 1
            if self.accepted[task] > 1:
                yield Violation("I1", f"{task} has {self.accepted[task]} accepted results")
        if to == TaskState.QUEUED:
            for other, how in self.graph.may_start(task, self.states):
                yield Violation(
                    "readiness", f"event {event['seq']} queues {task}, but {how} {other} is not met"
                )

    def _replayed(self, stored: Stored) -> Iterable[Violation]:
        for name, task in stored.tasks.items():
            rebuilt = self.states.get(name, TaskState.PENDING)
            if stored_state(task) != rebuilt:
                yield Violation("I7", f"{name} is stored {stored_state(task)}, its events say {rebuilt}")

    def _fixed_point(self, stored: Stored) -> Iterable[Violation]:
        if stored.run.get("status") in FINAL:
            for name, task in stored.tasks.items():
                if task.get("state") in _UNFINISHED:
                    yield Violation("I4", f"the run is {stored.run['status']} and {name} is {task['state']}")
            return
        states = {name: stored_state(task) for name, task in stored.tasks.items()}
        for blocked, why in self.graph.must_block(states):
            yield Violation("blocking", f"{blocked} is {states[blocked]}, but {why}")

    # -- stop ----------------------------------------------------------------------------------------------

    def _stopped(self, stored: Stored) -> Iterable[Violation]:
        run = stored.run
        if run.get("status") not in FINAL:
            if self.final:
                yield Violation("I2", f"the run was {self.final['status']} and is {run.get('status')} again")
            return
        now = {name: run.get(name, "") for name in _FIXED}
        if self.final and now != self.final:
            changed = [name for name in _FIXED if now[name] != self.final[name]]
            yield Violation("I2", f"after the stop these changed: {', '.join(changed)}")
        self.final = now


def stored_state(task: Fields) -> str:
    """The state as it was last moved; `state` shows what a stop left unfinished as canceled."""
    return task["was"]


def budgets(stored: Stored) -> Iterable[Violation]:
    """I3: used + reserved within the limit, unless an overrun was recorded; reservations equal those of the tasks."""
    run = stored.run
    for name, held in _BUDGETS:
        used, reserved = int(run.get(f"used_{name}", "0")), int(run.get(f"reserved_{name}", "0"))
        limit = run.get(f"limit_{name}", "")
        if limit and used + reserved > int(limit) and run.get(f"overrun_{name}", "0") != "1":
            yield Violation("I3", f"{name}: {used} used + {reserved} reserved exceed {limit}")
        holders = [task for task in stored.tasks.values() if task.get("reserved") == "1"]
        if held:
            expected = sum(int(task.get(held, "0")) for task in holders)
        else:
            expected = sum(stored_state(task) == TaskState.QUEUED for task in holders)
        if reserved != expected:
            yield Violation("I3", f"{name}: {reserved} reserved, the tasks hold {expected}")
    for name, task in stored.tasks.items():
        if task.get("reserved") == "1" and stored_state(task) not in _IN_FLIGHT:
            yield Violation("I3", f"{name} is {stored_state(task)} and still holds a reservation")


def counters(stored: Stored) -> Iterable[Violation]:
    """The run's counters equal what the tasks add up to."""
    run, tasks = stored.run, list(stored.tasks.values())
    states = Counter(stored_state(task) for task in tasks)
    expected = {f"n_{state}": states[state] for state in TaskState}
    expected["open_tasks"] = sum(state not in ENDED for state in map(stored_state, tasks))
    expected["ready"] = sum(task.get("ready") == "1" for task in tasks)
    expected["in_flight"] = sum(
        stored_state(task) in _IN_FLIGHT or task.get("waiting") == "1" for task in tasks
    )
    required = [task for task in tasks if task.get("required") == "1"]
    done = (TaskState.SUCCEEDED, TaskState.SKIPPED)
    expected["required_open"] = sum(stored_state(task) not in done for task in required)
    for counter, number in expected.items():
        if int(run.get(counter, "0")) != number:
            yield Violation("counters", f"run.{counter} is {run.get(counter, '0')}, the tasks say {number}")


def timers(stored: Stored) -> Iterable[Violation]:
    """Each task has at most its one timer, and has it exactly when something of it can fall due."""
    if stored.run.get("status") in FINAL:
        return  # they are taken away one by one as they fall due
    for name, task in stored.tasks.items():
        marked = task.get("timer") == "1"
        if marked != (name in stored.timers):
            yield Violation(
                "timers", f"{name} says timer={task.get('timer', '')}, the set says {name in stored.timers}"
            )
        waits = task.get("waiting") == "1" or (
            stored_state(task) == TaskState.RUNNING and bool(task.get("lease"))
        )
        if waits and not marked:
            yield Violation("timers", f"{name} ({stored_state(task)}) waits for a time and has no timer")
    for name in sorted(stored.timers):
        if name and name not in stored.tasks:
            yield Violation("timers", f"a timer of {name}, which is no task of the run")
