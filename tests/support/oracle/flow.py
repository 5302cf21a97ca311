"""Owns what follows from a moved task: opening, blocking, tainting, judging; and the ends that several commands share.

Must not read commands.
"""

from __future__ import annotations

from coordinator.wire.names import RunStatus
from coordinator.wire.names import TaskState as S
from tests.support.oracle import budget
from tests.support.oracle.readiness import children_decided, held_by_review, lost, requirements_met, taint
from tests.support.oracle.rules import holds
from tests.support.oracle.state import Run, Task, tell_to_end
from tests.support.oracle.stop import judge

NEVER_STARTED_IN_A_ROW = 10


def advance(run: Run, trigger: str = "", role: str = "") -> None:
    """After a transition: open, block, unblock and taint to a fixed point, then judge (SPEC 3: move, block, judge)."""
    taint(run)
    while run.stopped and _unblock(run):
        pass
    if run.stopped or run.loading:
        return
    while _resume(run) or _let_in(run) or _block(run) or _unblock(run) or _open(run):
        taint(run)
    judge(run, trigger, role)


def _block(run: Run) -> bool:
    gone = lost(run)
    gone.update(held_by_review(run, gone))
    victims = [t for t in run.tasks.values() if t.id in gone and t.state in (S.PENDING, S.QUEUED)]
    for task in victims:
        if task.state is S.QUEUED:
            budget.release(run, task, started=False)
        run.move(task, S.BLOCKED)
    return bool(victims)


def _unblock(run: Run) -> bool:
    """What nothing blocks any more waits again: a person decided the review that did."""
    gone = lost(run)
    gone.update(held_by_review(run, gone))
    free = [t for t in run.tasks.values() if t.state is S.BLOCKED and t.id not in gone]
    for task in free:
        run.move(task, S.PENDING)
    return bool(free)


def _let_in(run: Run) -> bool:
    """As many children as may run at once: the first that have not ended, while the parent waits for them."""
    found = []
    for parent in run.tasks.values():
        if parent.for_each and parent.state is S.AWAITING:
            at_work = [run.tasks[name] for name in parent.children if not run.tasks[name].ended]
            found += [child for child in at_work[: parent.number("max_parallel")] if not child.let_in]
    for child in found:
        child.let_in = True
    return bool(found)


def _open(run: Run) -> bool:
    for task in sorted(run.tasks.values(), key=lambda t: (-t.number("priority"), t.index)):
        if task.opened or task.state is not S.PENDING or task.due or not requirements_met(run, task):
            continue
        task.opened = True
        capabilities = run.header["roles"].get(task.role, [])
        if "when" in task.spec and not holds(run, task.spec["when"]):
            run.move(task, S.SKIPPED)
        elif not task.external and task.spec["capability"] not in capabilities:
            run.move(task, S.DENIED)
        elif task.external and run.status is RunStatus.RUNNING and not budget.missing(run, task):
            queue(run, task)
        return True
    return False


def _resume(run: Run) -> bool:
    """for_each parents whose children have all ended go on."""
    parents = [
        t for t in run.tasks.values() if t.for_each and t.state is S.AWAITING and children_decided(run, t)
    ]
    for parent in parents:
        run.move(parent, S.PENDING)
    return bool(parents)


def queue(run: Run, task: Task) -> None:
    """Dispatch: pending -> queued with its reservation and a new attempt number."""
    budget.reserve(run, task)
    task.attempt += not task.for_each
    task.queued_at = run.now
    run.move(task, S.QUEUED)
    if not task.external and not task.for_each:
        run.launched.append((task.role, task.id, task.attempt))


def never_started(run: Run, task: Task, wait: bool = False) -> None:
    """The attempt did not begin: no cost, no step, a new attempt number next time (SPEC 3).

    wait: nobody can do it now, so it waits a while before it is offered again.
    """
    started = task.state is S.RUNNING
    budget.release(run, task, started)
    task.granted -= started
    run.reports -= started
    task.outcome = "never_started"
    if wait:
        task.no_worker += 1
        pause = min(1_000 * 2 ** (task.no_worker - 1), 30_000)
        run.move(task, S.PENDING)
        task.due = (run.now + pause, run.now + pause)
        return
    task.never_started += 1
    run.move(task, S.FAILED if task.never_started > NEVER_STARTED_IN_A_ROW else S.PENDING)


def retry(run: Run, task: Task, retry_after: int = 0) -> None:
    """A transient end: pending again after its backoff, or failed when the attempts are used up."""
    if task.granted >= task.number("max_attempts", 1):
        run.move(task, S.FAILED)
        return
    base = min(task.number("backoff_ms") * 2 ** (task.granted - 1), task.number("backoff_max_ms"))
    low, high = max(base, retry_after), max(base + base // 5 + 1 if base else 0, retry_after)
    run.move(task, S.PENDING)
    task.due = (run.now + low, run.now + high) if high else None


def cancel(run: Run, task: Task) -> None:
    """Ends a task that has not ended, and its children; a running attempt is told, and what it used is unknown."""
    if task.ended or task.state is S.NEEDS_REVIEW:
        return
    if task.state is S.RUNNING:
        tell_to_end(run, task)
        budget.settle_unknown(run, task)
        task.outcome = "canceled"
    elif task.state is S.QUEUED:
        budget.release(run, task, started=False)
    run.move(task, S.CANCELED)
    for name in task.children:
        cancel(run, run.tasks[name])
