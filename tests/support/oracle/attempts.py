"""Owns what happens to attempts short of a report: dispatch, grant, renewal, use, hand-back, timers, children.

Must not judge reports (reports.py) or runs (stop.py).
"""

from __future__ import annotations

import json
from typing import Any

from coordinator.machine.commands import (
    CollectTask,
    FireTimer,
    GrantLease,
    HandBack,
    LoseQueued,
    RenewLease,
    SpawnTasks,
    UseBudget,
)
from coordinator.wire.names import Refusal, RunStatus
from coordinator.wire.names import TaskState as S
from tests.support.oracle import budget
from tests.support.oracle.flow import advance, cancel, never_started, queue, retry
from tests.support.oracle.readiness import children_decided, ready, requirements_met, results_at_hand
from tests.support.oracle.reports import holds_lease, succeed
from tests.support.oracle.state import Run, Task, tell_to_end

Said = tuple[str, str]
APPLIED: Said = ("applied", "")


def refused(word: Refusal) -> Said:
    return "refused", str(word)


def dispatch(run: Run, room: int) -> int:
    """Dispatches ready tasks in order while there is room; says how many."""
    done = 0
    for task in ready(run):
        if done >= room or run.status is not RunStatus.RUNNING:
            break
        if task.state is S.PENDING and not budget.missing(run, task):
            queue(run, task)
            advance(run, task.id)
            done += 1
    return done


def dispatch_task(run: Run, task: Task) -> Said:
    if task.state is not S.PENDING:
        return refused(Refusal.WRONG_STATE)
    if task.due is not None or not requirements_met(run, task):
        return refused(Refusal.NOT_READY)
    if budget.missing(run, task):
        return refused(Refusal.OVER_BUDGET)
    queue(run, task)
    advance(run, task.id)
    return APPLIED


def grant_lease(run: Run, task: Task, command: GrantLease) -> Said:
    if task.attempt != command.attempt:
        return refused(Refusal.STALE_ATTEMPT)
    if task.state is not S.QUEUED or task.for_each:
        return refused(Refusal.WRONG_STATE)
    budget.start_step(run, task)
    run.reports += 1
    task.granted += 1
    task.lease = command.lease
    task.started_at = task.shown_at = run.now
    task.lease_until = run.now + task.number("heartbeat_ms")
    task.based_on = results_at_hand(run, task)
    run.move(task, S.RUNNING)
    advance(run, task.id, command.role)
    return APPLIED


def renew_lease(run: Run, task: Task, command: RenewLease) -> Said:
    if not holds_lease(task, command.attempt, command.lease):
        return refused(Refusal.STALE_LEASE)
    task.lease_until = run.now + task.number("heartbeat_ms")
    if command.progress:
        task.shown_at = run.now
    return APPLIED


def use_budget(run: Run, task: Task, command: UseBudget) -> Said:
    if not holds_lease(task, command.attempt, command.lease):
        return refused(Refusal.STALE_LEASE)
    covered = budget.use(run, task, {"tokens": command.tokens, "cost": command.cost_micros})
    return APPLIED if covered else refused(Refusal.OVER_BUDGET)


def hand_back(run: Run, task: Task, command: HandBack) -> Said:
    if command.lease:
        if not holds_lease(task, command.attempt, command.lease):
            return refused(Refusal.STALE_LEASE)
    elif task.attempt != command.attempt:
        return refused(Refusal.STALE_ATTEMPT)
    elif task.state is not S.QUEUED or task.for_each:
        return refused(Refusal.WRONG_STATE)
    never_started(run, task, wait=command.reason == "no_worker")
    advance(run, task.id)
    return APPLIED


def lose_queued(run: Run, task: Task, command: LoseQueued) -> Said:
    if task.attempt != command.attempt:
        return refused(Refusal.STALE_ATTEMPT)
    if task.state is not S.QUEUED or task.external or task.for_each:
        return refused(Refusal.WRONG_STATE)
    never_started(run, task)
    advance(run, task.id)
    return APPLIED


def timers(task: Task) -> list[tuple[int, int, str]]:
    """What may fire for a task: instant, rank among equals, what; what was due first fires."""
    found: list[tuple[int, int, str]] = []
    if task.state is S.RUNNING and not task.for_each:
        found.append((task.started_at + task.number("timeout_ms"), 0, "timed_out"))
        if task.number("progress_timeout_ms"):
            found.append((task.shown_at + task.number("progress_timeout_ms"), 1, "timed_out"))
        if not task.external:
            found.append((task.lease_until, 2, "lost"))
    if task.state is S.QUEUED and task.number("queue_timeout_ms"):
        found.append((task.queued_at + task.number("queue_timeout_ms"), 0, "queue_timeout"))
    if task.state is S.PENDING and task.due:
        found.append((task.due[0], 0, "backoff"))
    return sorted(found)


def fire_timer(run: Run, task: Task | None, command: FireTimer) -> Said:
    """An empty task: the run's own timers, which only make it be judged."""
    if task is None:
        before = run.status
        advance(run)
        return APPLIED if run.status is not before else refused(Refusal.NOT_DUE)
    due = [what for instant, _, what in timers(task) if instant <= run.now]
    if not due:
        return refused(Refusal.NOT_DUE)
    match due[0]:
        case "backoff":
            task.due = None
        case "queue_timeout":
            task.outcome = "timed_out"
            budget.release(run, task, started=False)
            run.move(task, S.FAILED)
        case what:
            task.outcome = what
            task.never_started = task.no_worker = 0
            tell_to_end(run, task)
            budget.settle_unknown(run, task)
            retry(run, task)
    advance(run, task.id)
    return APPLIED


def spawn_tasks(run: Run, task: Task, command: SpawnTasks) -> Said:
    """A part of a for_each parent's children; the last part parks the parent."""
    if not task.for_each or task.closed or task.state not in (S.QUEUED, S.RUNNING):
        return refused(Refusal.WRONG_STATE)
    if command.cursor != len(task.children):
        return refused(Refusal.STALE_VERSION)
    if task.state is S.QUEUED:
        task.based_on = results_at_hand(run, task)
        run.move(task, S.RUNNING)
    specs: list[dict[str, Any]] = json.loads(command.children)
    for spec in specs:
        child = Task(spec=spec, index=len(run.tasks))
        run.tasks[child.id] = child
        task.children.append(child.id)
    if not command.more:
        task.closed = True
        run.move(task, S.AWAITING)
    advance(run, task.id)
    return APPLIED


def collect_task(run: Run, task: Task, command: CollectTask, facts: Any) -> Said:
    """The parent's end, decided by the coordinator from its children's results, or because none can be made."""
    good = command.outcome == "succeeded"
    if (
        not task.for_each
        or task.state not in (S.QUEUED, S.RUNNING)
        or (good and not children_decided(run, task))
    ):
        return refused(Refusal.WRONG_STATE)
    if task.state is S.QUEUED:
        run.move(task, S.RUNNING)
    if good:
        task.based_on |= {name for name in task.children if run.tasks[name].state is S.SUCCEEDED}
        succeed(run, task, command.digest, frozenset(facts))
    else:
        run.move(task, S.FAILED)
        for name in task.children:
            cancel(run, run.tasks[name])
    advance(run, task.id)
    return APPLIED
