"""Owns the judgement of SPEC 4: the ordered conditions, the first that is true, and what else was.

Must not move tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.wire.names import FINAL, RunStatus
from coordinator.wire.names import TaskState as S
from tests.support.oracle import budget
from tests.support.oracle.readiness import in_flight, lost, ready
from tests.support.oracle.rules import holds
from tests.support.oracle.state import Run, StopRecord, Task, tell_to_end

ENDS = {
    "stopped": RunStatus.STOP_RULE,
    "completed": RunStatus.COMPLETED,
    "failed": RunStatus.FAILED,
    "paused": RunStatus.PAUSED,
}


@dataclass(frozen=True)
class Condition:
    """One condition that is true: its word, the status that it asks for, and particulars."""

    word: str
    status: RunStatus
    rule: str = ""
    limit: str = ""
    task: str = ""
    counts_beside: bool = True
    """Conditions 1-7; the last one is what is left when none of them is true."""


def judge(run: Run, trigger: str, role: str) -> None:
    """Sets the run's status by the first condition that holds; nothing for a run that is loading or has stopped."""
    if run.stopped or run.loading:
        return
    conditions = _conditions(run, trigger, role)
    if not conditions:
        return
    first, *rest = conditions
    if first.status is run.status:
        return
    record = StopRecord(
        reason=str(first.status),
        rule=first.rule,
        limit=first.limit,
        task=first.task,
        also_true=tuple(dict.fromkeys(c.word for c in rest)),
    )
    enter(run, first.status, record)


def enter(run: Run, status: RunStatus, record: StopRecord) -> None:
    """The run has another status: +1 version. After a stop whoever works is told to end (SPEC 4, 7)."""
    run.status, run.stop = status, record
    run.version += 1
    run.locked_reason = record.limit if status is RunStatus.PAUSED else ""
    run.parked_at = run.now
    for task in run.tasks.values() if run.stopped else ():
        tell_to_end(run, task)


def true_beside_a_cancel(run: Run) -> tuple[str, ...]:
    """Conditions 1-7 that are true when an operator cancels; his word is judged before them."""
    return tuple(dict.fromkeys(c.word for c in _conditions(run, "", "") if c.counts_beside))


def _conditions(run: Run, trigger: str, role: str) -> list[Condition]:
    running = run.status is RunStatus.RUNNING
    limits = _limits(run, trigger) if running else []
    found = [*_critical(run), *_completed(run, trigger), *_rules(run, trigger, role)]
    if limits and not found and required_done(run):
        found = [Condition("completed", RunStatus.COMPLETED, task=trigger)]
    found += limits
    if not running:
        return [c for c in found if c.status in FINAL]
    return found or _nothing_left(run, trigger)


def _failing_root(run: Run, task: Task, states: frozenset[S]) -> str:
    """The task that makes `task` a failure: itself, or a root cause of its block; else empty."""
    if task.state in states:
        return task.id
    roots = lost(run).get(task.id, set()) if task.state is S.BLOCKED else set()
    return min((r for r in roots if run.tasks[r].state in states), default="")


def _critical(run: Run) -> list[Condition]:
    if run.header.get("on_required_failure", "stop") != "stop":
        return []
    for task in run.tasks.values():
        root = _failing_root(run, task, frozenset({S.FAILED, S.DENIED})) if task.required else ""
        if root:
            return [Condition("critical_failure", RunStatus.CRITICAL_FAILURE, task=root)]
    return []


def required_done(run: Run) -> bool:
    required = [t for t in run.tasks.values() if t.required]
    return all(t.state in (S.SUCCEEDED, S.SKIPPED) and not t.tainted_by for t in required)


def _completed(run: Run, trigger: str) -> list[Condition]:
    """With drain it fires when nothing is left; before that only a limit ends the run, as completed."""
    busy = run.header.get("on_completion", "stop") == "drain" and (in_flight(run) or bool(ready(run)))
    if busy or not required_done(run):
        return []
    return [Condition("completed", RunStatus.COMPLETED, task=trigger)]


def _rules(run: Run, trigger: str, role: str) -> list[Condition]:
    """The first rule that is true; a rule that was passed over counts again only after it has been false."""
    true = [each for each in run.header.get("rules", []) if holds(run, each["rule"], role)]
    run.passed &= {each["name"] for each in true}
    found = [each for each in true if each["name"] not in run.passed][:1]
    return [Condition("stop_rule", ENDS[each["ends"]], rule=each["name"], task=trigger) for each in found]


def _limits(run: Run, trigger: str) -> list[Condition]:
    found: list[tuple[RunStatus, str]] = []
    deadline, most = run.limit("deadline_ms"), run.limit("max_steps")
    still, still_steps = run.limit("no_progress_ms"), run.limit("no_progress_steps")
    if deadline is not None and run.now >= run.created_at + run.parked_ms + deadline:
        found.append((RunStatus.DEADLINE_EXCEEDED, "deadline"))
    if most is not None and run.reports >= most:
        found.append((RunStatus.STEP_LIMIT, "max_steps"))
    if (still is not None and run.now >= run.progress_at + still) or (
        still_steps is not None and run.reports - run.progress_reports >= still_steps
    ):
        found.append((RunStatus.NO_PROGRESS, "no_progress"))
    waiting = ready(run)
    if waiting and not in_flight(run):
        lacks = [budget.missing(run, task) for task in waiting]
        if all(lacks):
            found.append((RunStatus.BUDGET_EXHAUSTED, lacks[0]))
    pause = run.header.get("on_limit", "stop") == "pause"
    return [
        Condition(str(word), RunStatus.PAUSED if pause else word, limit=limit, task=trigger)
        for word, limit in found
    ]


def _nothing_left(run: Run, trigger: str) -> list[Condition]:
    if in_flight(run) or ready(run):
        return []
    bad = frozenset({S.FAILED, S.DENIED, S.CANCELED})
    if run.reviews:
        status = RunStatus.NEEDS_REVIEW
    elif any(t.required and _failing_root(run, t, bad) for t in run.tasks.values()):
        status = RunStatus.FAILED
    elif any(t.state is S.AWAITING for t in run.tasks.values()):
        status = RunStatus.PAUSED
    else:
        status = RunStatus.DEADLOCK
    return [Condition(str(status), status, task=trigger, counts_beside=False)]
