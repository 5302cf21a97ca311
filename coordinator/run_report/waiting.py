"""Owns what each open task of a live run waits for (SPEC 9, explain).

Pure, and a reading of the snapshot only: must not decide whether a task is ready
(`machine/lua/rules/readiness.lua` does). Where several things hold a task back, the one is named that must
change first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.run_report.fields import count, flag, money, number
from coordinator.run_report.wording import clean, names, span, when
from coordinator.team.loader import make_team
from coordinator.team.models import Reserve, Task, Team
from coordinator.wire.errors import InputFault
from coordinator.wire.names import ENDED, PARKED

if TYPE_CHECKING:
    from coordinator.machine.snapshot import RunSnapshot

_ENDED = frozenset(str(state) for state in ENDED)
_PARKED = frozenset(str(status) for status in PARKED)


@dataclass(frozen=True, slots=True)
class Wait:
    """What one open task waits for. kind: tasks, children, backoff, no_worker, worker, report, coordinator,
    budget, person, run, slot or nothing (it is running); text: the same for a person; on: the tasks in
    question.
    """

    task: str
    state: str
    kind: str
    text: str
    on: tuple[str, ...] = ()


def waits(snapshot: RunSnapshot, now: int, workers: Mapping[str, int] | None = None) -> list[Wait]:
    """Gives one Wait for each open task, in file order.

    now: ms. workers: live workers by role, if that is known.
    """
    if snapshot.run.get("status") not in ("running", *_PARKED):
        return []
    look = _Look(snapshot, now, workers or {})
    return [look.wait(task) for task in snapshot.tasks if task["state"] not in _ENDED]


_Cause = tuple[str, str, tuple[str, ...]]


class _Look:
    """One look at a run; a method for each state in which a task is open."""

    def __init__(self, snapshot: RunSnapshot, now: int, workers: Mapping[str, int]) -> None:
        self._snapshot = snapshot
        self._run = snapshot.run
        self._states = {task["id"]: task["state"] for task in snapshot.tasks}
        self._team = _team(snapshot.team)
        self._now = now
        self._workers = workers

    def wait(self, task: Mapping[str, str]) -> Wait:
        """What one open task waits for."""
        state = task["state"]
        by_state = {
            "pending": self._pending,
            "queued": self._queued,
            "running": self._running,
            "awaiting": self._awaiting,
        }
        kind, text, on = by_state.get(state, self._in_review)(task)
        return Wait(task["id"], state, kind, text, on)

    def _pending(self, task: Mapping[str, str]) -> _Cause:
        known = None if task.get("parent") or self._team is None else self._team.task_of(task["id"])
        unmet = tuple(_unmet(known, self._states)) if known else ()
        if unmet:
            shown = names([f"{name} ({self._states.get(name, 'unknown')})" for name in unmet])
            return "tasks", f"waits for {shown}", unmet
        if task.get("reason") == "no_worker":
            role, capability = clean(task.get("role", ""), 80), clean(task.get("capability", ""), 80)
            return "no_worker", f"no worker of role {role} has a handler for {capability}", ()
        if flag(task, "waiting"):
            due = count(task, "due_at")
            left = f", in {span(due - self._now)}" if due > self._now else ""
            after = f" after attempt {task.get('attempt', '')}" if count(task, "attempt") else ""
            return "backoff", f"tries again at {when(due)}{left}{after}", ()
        if short := self._over_budget(task):
            return "budget", short, ()
        if self._run.get("status") in _PARKED:
            return "run", f"the run is {self._run['status']}: nothing new starts", ()
        return "slot", "is ready and waits for a free place in the dispatch window", ()

    def _queued(self, task: Mapping[str, str]) -> _Cause:
        role = clean(task.get("role", ""), 80)
        if flag(task, "external"):
            return "report", "waits for a report from outside (crewline report-task)", ()
        if flag(task, "for_each"):
            return "coordinator", "waits for the coordinator to make its children", ()
        if self._workers.get(task.get("role", "")) == 0:
            return "no_worker", f"is in the queue of role {role}, which has no worker", ()
        return "worker", f"waits for a worker of role {role} to take it", ()

    def _running(self, task: Mapping[str, str]) -> _Cause:
        since = number(task, "started_at")
        lasting = f" for {span(max(self._now - since, 0))}" if since else ""
        who = f" by {clean(task['worker'], 80)}" if task.get("worker") else ""
        return "nothing", f"being worked on{who}{lasting}, attempt {task.get('attempt', '')}", ()

    def _awaiting(self, task: Mapping[str, str]) -> _Cause:
        if task.get("waits_for") == "children":
            children = [t["id"] for t in self._snapshot.tasks if t.get("parent") == task["id"]]
            still = tuple(name for name in children if self._states[name] not in _ENDED)
            return (
                "children",
                f"waits for {len(still)} of its {len(children)} children: {names(still)}",
                still,
            )
        question = self._snapshot.payloads.get(task.get("question_digest", ""))
        return "person", f"waits for an answer{': ' + clean(question) if question else ''}", ()

    def _in_review(self, task: Mapping[str, str]) -> _Cause:
        return "person", "waits for a reviewer's decision", ()

    def _over_budget(self, task: Mapping[str, str]) -> str | None:
        """Which limit the next attempt does not fit, if any; the same sum as rules/budget.lua does."""
        known = self._team.task_of(task["id"]) if self._team else None
        reserve = known.reserve if known else Reserve()
        needs = {"step_budget": 1, "tokens": reserve.tokens or 0, "cost": reserve.cost or 0}
        for limit, needed in needs.items():
            most = number(self._run, f"limit_{limit}")
            taken = count(self._run, f"used_{limit}") + count(self._run, f"reserved_{limit}")
            if most is not None and taken + needed > most:
                shown = money if limit == "cost" else str
                left = shown(max(most - taken, 0))
                return f"needs {shown(needed)} of {limit}, and {left} of {shown(most)} is left"
        return None


def _team(document: Any) -> Team | None:
    """The Team that the run was made from; None when this version cannot read it any more."""
    try:
        return make_team(document, allow_cycle=True)
    except InputFault:
        return None


def _unmet(task: Task, states: Mapping[str, str]) -> Iterator[str]:
    """The requirements that keep a task pending, in the order in which the Team file names them."""
    satisfied = ("succeeded", "skipped") if task.skipped_ok else ("succeeded",)
    yield from (name for name in task.requires if states.get(name) not in satisfied)
    yield from (name for name in task.after if states.get(name) not in _ENDED)
    if task.any_of:
        there = sum(states.get(name) in satisfied for name in task.any_of.tasks)
        if there < task.any_of.count:
            yield from (name for name in task.any_of.tasks if states.get(name) not in _ENDED)
