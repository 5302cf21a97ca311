"""Owns side effects: started durably before, confirmed after, unknown in between, and who decides then (SPEC 7).

Must not judge how an attempt ended otherwise (reports.py).
"""

from __future__ import annotations

from coordinator.machine.commands import DecideAction, DoubtAction, EndAction, StartAction
from coordinator.wire.names import Refusal
from coordinator.wire.names import TaskState as S
from tests.support.oracle import budget
from tests.support.oracle.flow import advance
from tests.support.oracle.people import go_on, rerun
from tests.support.oracle.reports import holds_lease
from tests.support.oracle.state import Action, Run, Task, open_review

Said = tuple[str, str]
OPEN = ("started", "unknown")
ENDS = ("confirmed", "failed")


def refused(word: Refusal) -> Said:
    return "refused", str(word)


def start_action(run: Run, task: Task, command: StartAction) -> Said:
    if not holds_lease(task, command.attempt, command.lease):
        return refused(Refusal.STALE_LEASE)
    known = run.actions.get((task.id, command.key))
    if known and known.state == "confirmed":
        return "applied", "action_confirmed"
    if known and known.state in OPEN and known.attempt != command.attempt and not command.again:
        known.state = "unknown"
        return "applied", "action_unknown"
    run.actions[task.id, command.key] = Action(command.attempt, "started")
    return "applied", "action_started"


def end_action(run: Run, command: EndAction) -> Said:
    task = run.tasks.get(command.task)
    if task is None:
        return refused(Refusal.UNKNOWN_TASK)
    if task.role != command.role:
        return refused(Refusal.WRONG_ROLE)
    known = run.actions.get((task.id, command.key))
    if known and known.attempt == command.attempt:
        if (known.state, known.receipt) == (command.state, command.digest):
            return "repeated", ""
        if known.state in OPEN and command.state in ENDS:
            known.state, known.receipt = command.state, command.digest
            return "applied", ""
    return refused(Refusal.UNKNOWN_ACTION)


def doubt_action(run: Run, task: Task, command: DoubtAction) -> Said:
    """The handler was left: nobody knows whether it was done, so the attempt does not count."""
    if not holds_lease(task, command.attempt, command.lease):
        return refused(Refusal.STALE_LEASE)
    known = run.actions.get((task.id, command.key))
    if known is None or known.state != "unknown":
        return refused(Refusal.UNKNOWN_ACTION)
    budget.settle(run, task, {"tokens": command.tokens, "cost": command.cost_micros})
    task.outcome = "awaiting"
    task.granted -= 1
    run.move(task, S.NEEDS_REVIEW)
    open_review(run, task, "unknown_action", command.key)
    advance(run, task.id)
    return "applied", ""


def decide_action(run: Run, command: DecideAction) -> Said:
    task = run.tasks.get(command.task)
    if task is None:
        return refused(Refusal.UNKNOWN_TASK)
    known = run.actions.get((task.id, command.key))
    if known and (known.state, known.receipt) == (command.state, command.digest):
        return "repeated", ""
    working = known and task.state is S.RUNNING and task.attempt == known.attempt and not run.stopped
    if known is None or working or known.state not in OPEN or command.state not in ENDS:
        return refused(Refusal.UNKNOWN_ACTION)
    known.state, known.receipt = command.state, command.digest
    review = run.opened_reviews.get(task.review)
    if review and review.kind == "unknown_action" and review.key == command.key:
        review.decision, task.review = command.state, ""
        rerun(run, task)
        if not run.stopped:
            go_on(run)
    advance(run, task.id)
    return "applied", ""
