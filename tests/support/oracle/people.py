"""Owns what operators and reviewers decide: cancels, answers, resumption, reviews, and a person's word on actions.

Must not judge reports (reports.py).
"""

from __future__ import annotations

import json
from typing import Any

from coordinator.machine.commands import (
    AnswerTask,
    CancelRun,
    CancelTask,
    DecideReview,
    ExpireCancel,
    ResumeRun,
)
from coordinator.wire.names import PARKED, Refusal, RunStatus
from coordinator.wire.names import TaskState as S
from tests.support.oracle import budget
from tests.support.oracle.flow import advance, cancel, queue
from tests.support.oracle.readiness import ready
from tests.support.oracle.state import KeyRecord, Run, StopRecord, Task
from tests.support.oracle.stop import enter, true_beside_a_cancel

Said = tuple[str, str]
APPLIED: Said = ("applied", "")
LIMITS = {"limit_step_budget": "step_budget", "limit_max_steps": "max_steps", "limit_tokens": "tokens",
          "limit_cost": "cost_micros"}  # fmt: skip


def refused(word: Refusal) -> Said:
    return "refused", str(word)


def asked_before(run: Run, ask: str) -> bool:
    """An operator's request counts once."""
    known = ask in run.requests
    return bool(ask) and known


def cancel_run(run: Run, command: CancelRun) -> Said:
    if asked_before(run, command.ask):
        return "repeated", ""
    if run.stopped:
        return refused(Refusal.RUN_STOPPED)
    run.requests.add(command.ask)
    beside = true_beside_a_cancel(run)
    enter(run, RunStatus.CANCELED, StopRecord(reason="canceled", also_true=beside))
    return APPLIED


def cancel_task(run: Run, command: CancelTask) -> Said:
    if asked_before(run, command.ask):
        return "repeated", ""
    task = run.tasks.get(command.task)
    if run.stopped or task is None:
        return refused(Refusal.RUN_STOPPED if run.stopped else Refusal.UNKNOWN_TASK)
    if task.ended:
        return refused(Refusal.TASK_ENDED)
    if task.state is S.NEEDS_REVIEW:
        return refused(Refusal.WRONG_STATE)
    run.requests.add(command.ask)
    cancel(run, task)
    advance(run, task.id)
    return APPLIED


def expire_cancel(run: Run, command: ExpireCancel) -> Said:
    record = run.cancellations.get((command.task, command.attempt))
    if record is None or record.until is None or run.now < record.until:
        return refused(Refusal.NOT_DUE)
    record.outcome, record.until = "unconfirmed", None
    return APPLIED


def answer_task(run: Run, command: AnswerTask) -> Said:
    task = run.tasks.get(command.task)
    if run.stopped or task is None:
        return refused(Refusal.RUN_STOPPED if run.stopped else Refusal.UNKNOWN_TASK)
    asks = task.state is S.AWAITING and not task.for_each
    if not asks or command.question not in ("", task.question):
        if task.answer and task.answer == command.digest:
            return "repeated", ""
        return refused(Refusal.ALREADY_ANSWERED if task.answer else Refusal.WRONG_STATE)
    task.answer = command.digest
    run.move(task, S.PENDING)
    go_on(run)
    advance(run, task.id)
    return APPLIED


def go_on(run: Run) -> None:
    """A parked run is running again; the time for which it was parked does not count (SPEC 4)."""
    if run.status not in PARKED:
        return
    run.status, run.locked_reason, run.stop = RunStatus.RUNNING, "", None
    run.version += 1
    stood = run.now - run.parked_at
    run.parked_ms += stood
    run.progress_at = min(run.progress_at + stood, run.now)
    run.progress_reports = run.reports
    queue_externals(run)


def queue_externals(run: Run) -> None:
    """Externals that did not fit, or became ready while the run was parked, are queued if they fit now."""
    for task in ready(run):
        if task.external and task.opened and not budget.missing(run, task):
            queue(run, task)


def resume_run(run: Run, command: ResumeRun) -> Said:
    if run.stopped:
        return refused(Refusal.RUN_STOPPED)
    if run.status is RunStatus.RUNNING:
        return refused(Refusal.NOT_PARKED)
    limits = run.header.setdefault("limits", {})
    for name, value, added in json.loads(command.raises):
        known = limits.get(LIMITS[name])
        if known is not None:
            limits[LIMITS[name]] = value + (known if added else 0)
    if run.stop and run.stop.rule:
        run.passed.add(run.stop.rule)
    go_on(run)
    advance(run)
    return APPLIED


def decide_review(run: Run, command: DecideReview, facts: Any) -> Said:
    review = run.opened_reviews.get(command.review)
    if review is None:
        return refused(Refusal.UNKNOWN_REVIEW)
    if review.decision:
        return refused(Refusal.ALREADY_DECIDED)
    if command.version != review.version:
        return refused(Refusal.STALE_VERSION)
    task = run.tasks[review.task]
    if command.decision == "accept" and command.digest not in evidence(run, task):
        return refused(Refusal.UNKNOWN_DIGEST)
    review.decision, task.review = command.decision, ""
    _decide(run, task, command, frozenset(facts))
    _follow(run, task, command.tainted == "rerun")
    if not run.stopped:
        go_on(run)
    advance(run, task.id)
    return APPLIED


def evidence(run: Run, task: Task) -> set[str]:
    """Digests of all successes that were said of a task in conflict."""
    return {digest for (name, _), record in run.keys.items() if name == task.id for digest in record.digests}


def _decide(run: Run, task: Task, command: DecideReview, facts: frozenset[str]) -> None:
    match command.decision:
        case "accept" | "supply":
            task.digest, task.trust, task.facts = command.digest, "reviewed", set(facts)
            run.move(task, S.SUCCEEDED)
            remember(run, task, command.digest)
        case "reject":
            task.trust = "rejected"
            run.move(task, S.FAILED)
        case "rerun":
            rerun(run, task)


def remember(run: Run, task: Task, digest: str) -> None:
    """What a person took for the result is the one that repeats repeat and others contradict."""
    key = str(task.spec.get("key") or ("" if task.external else f"{task.id}/{task.attempt}"))
    if key:
        record = run.keys.setdefault((task.id, key), KeyRecord())
        if digest not in record.digests:
            record.digests.append(digest)
    for (name, _), record in run.keys.items():
        if name == task.id:
            record.accepted = True


def rerun(run: Run, task: Task) -> None:
    """A new attempt answers anew, whatever was said before."""
    task.digest, task.trust, task.facts = "", "", set()
    for place in [place for place in run.keys if place[0] == task.id]:
        del run.keys[place]
    run.move(task, S.PENDING)


def _follow(run: Run, task: Task, again: bool) -> None:
    """What had started from the old result stands, or is run again; what the review blocked is free (SPEC 6)."""
    for other in run.tasks.values():
        if task.id not in other.tainted_by:
            continue
        other.tainted_by.discard(task.id)
        other.based_on.discard(task.id)
        if again and other.state in (S.SUCCEEDED, S.FAILED):
            rerun(run, other)
