"""Owns the budget as the history tells it: reservations and use are added up event by event, in plain Python.

No reservation may be granted that makes used + reserved exceed a limit, at any version (SPEC 5, I3); what a run says of
itself in the end must be what its events add up to. Must not take a number of the run but its limits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from coordinator.wire.names import TaskState
from ops.chaos.checker.evidence import Evidence, Fields, RunEvidence, Violation

AMOUNTS = {"tokens": "tokens", "cost": "cost_micros"}
"""Budget, and how a task's reserve and a report's use of it are called."""
NAMES = ("step_budget", *AMOUNTS)
ENDED_BY_ITSELF = frozenset({"task_succeeded", "task_denied", "task_awaiting", "attempt_failed"})
CLASSES = frozenset({"transient", "invalid_output", "permanent"})

Attempt = tuple[str, int]


def check_budgets(evidence: Evidence) -> Iterable[Violation]:
    """All runs, those without limits too: their books must be right as well."""
    for run in evidence.runs.values():
        yield from _Books(run).read()


@dataclass(slots=True)
class _Held:
    """What one queued or running attempt holds."""

    amounts: dict[str, int]
    granted: bool = False


@dataclass
class _Books:
    run: RunEvidence
    used: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    held: dict[str, _Held] = field(default_factory=dict)
    """By task."""

    def __post_init__(self) -> None:
        self._tasks = {task["id"]: task for task in self.run.tasks}
        self._ends: dict[Attempt, dict[str, int]] = {}
        self._said: dict[Attempt, list[tuple[int, dict[str, int]]]] = defaultdict(list)
        granted: dict[Attempt, set[str]] = defaultdict(set)
        for name, at, said in self.run.commands:
            attempt = (said.get("task", ""), int(said.get("attempt") or 1))
            lease, given = said.get("lease", ""), granted[attempt]
            if name == "grant_lease":
                given.add(lease)  # that of a refused question reached nobody, so nobody can report by it
            elif _is_end(name, said, given):
                self._ends.setdefault(attempt, _amounts(said))
            elif name == "use_budget" and lease in given:
                self._said[attempt].append((at, _amounts(said)))

    def read(self) -> Iterator[Violation]:
        stopped = False
        for event in self.run.events:
            if event["kind"] == "run_stopped":
                stopped = True
            if event["to"] and event["task_id"] in self._tasks and not stopped:
                yield from self._move(event, self._tasks[event["task_id"]])
        for name in NAMES:
            used, reserved = self.used[name], self._reserved(name)
            said = int(self.run.run.get(f"used_{name}") or 0), int(self.run.run.get(f"reserved_{name}") or 0)
            if (used, reserved) != said:
                what = f"{name}: the run says {said} used and reserved, its events {(used, reserved)}"
                yield Violation("books differ", self.run.id, what)

    def _move(self, event: Fields, task: Fields) -> Iterator[Violation]:
        name, kind = task["id"], event["kind"]
        if kind == "task_queued" and task.get("for_each") != "1":
            amounts = {budget: int(task.get(field) or 0) for budget, field in AMOUNTS.items()}
            self.held[name] = _Held({"step_budget": 1, **amounts})
            yield from self._over(event)
        elif kind == "attempt_started":
            yield from self._begin(event, name)
        elif event["from"] in (TaskState.QUEUED, TaskState.RUNNING) and name in self.held:
            self._end(event, name)

    def _begin(self, event: Fields, name: str) -> Iterator[Violation]:
        held = self.held.get(name)
        if held is None:
            what = f"event {event['seq']} starts an attempt of {name} that holds no reservation"
            yield Violation("books differ", self.run.id, what)
            return
        held.granted = True
        held.amounts["step_budget"] = 0
        self.used["step_budget"] += 1

    def _end(self, event: Fields, name: str) -> None:
        held = self.held.pop(name)
        if not held.granted:
            return
        if event["kind"] == "attempt_never_started" or event["reason"] == "never_started":
            self.used["step_budget"] -= 1
            return
        attempt = (name, int(event["attempt"] or 1))
        said = [amounts for at, amounts in self._said[attempt] if at <= int(event["at"])]
        itself = event["kind"] in ENDED_BY_ITSELF or (
            event["kind"] in ("task_failed", "task_conflicted") and event["reason"] in CLASSES | {"conflict"}
        )
        for budget in AMOUNTS:
            least = max((amounts[budget] for amounts in said), default=0)
            told = self._ends[attempt][budget] if itself and attempt in self._ends else held.amounts[budget]
            self.used[budget] += max(told, least)

    def _over(self, event: Fields) -> Iterator[Violation]:
        for name in NAMES:
            limit = self.run.run.get(f"limit_{name}", "")
            total = self.used[name] + self._reserved(name)
            if limit and total > int(limit):
                what = f"event {event['seq']} ({event['task_id']}) makes {name} {total} of {limit}"
                yield Violation("over budget", self.run.id, what)

    def _reserved(self, name: str) -> int:
        return sum(held.amounts[name] for held in self.held.values())


def _amounts(said: Mapping[str, str]) -> dict[str, int]:
    return {budget: int(said.get(field) or 0) for budget, field in AMOUNTS.items()}


def _is_end(name: str, said: Mapping[str, str], leases: set[str]) -> bool:
    if name == "end_attempt":
        return said["lease"] in leases
    return name == "report_external" and said["state"] != "working"
