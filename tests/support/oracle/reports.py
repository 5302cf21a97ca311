"""Owns the verdicts on task reports, in the order of SPEC 6, and what an accepted end does.

Must not know leases' timing or how commands arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coordinator.machine.commands import EndAttempt, ReportExternal
from coordinator.wire.names import FailureClass, Refusal, ReportState, Verdict
from coordinator.wire.names import TaskState as S
from tests.support.oracle import budget
from tests.support.oracle.flow import advance, retry
from tests.support.oracle.readiness import results_at_hand
from tests.support.oracle.state import KeyRecord, Run, Task, add_evidence, open_review, tell_to_end

Refused = tuple[str, str]


@dataclass(frozen=True)
class Report:
    """A task report, whoever sent it."""

    task: str
    outcome: str
    """`succeeded`, a failure class, `working`, or a word that nobody knows."""
    key: str
    """Empty: this report can neither repeat nor contradict another."""
    given: bool
    """The key was given, by the Team or the reporter, so it spans attempts and late results count."""
    live: bool
    """It comes from the one that may report now."""
    digest: str
    facts: frozenset[str]
    used: dict[str, int]
    retry_after: int = 0
    role: str = ""

    @property
    def success(self) -> bool:
        return self.outcome == "succeeded"


def end_attempt(run: Run, command: EndAttempt, facts: Any) -> Refused:
    """A worker's report (SPEC 6)."""
    task = run.tasks.get(command.task)
    if task and task.role != command.role:
        return "refused", Refusal.WRONG_ROLE
    report = Report(
        task=command.task,
        outcome=command.outcome,
        key=str(task.spec.get("key") or f"{task.id}/{command.attempt}") if task else "",
        given=bool(task and task.spec.get("key")),
        live=bool(task and not run.stopped and holds_lease(task, command.attempt, command.lease)),
        digest=command.digest,
        facts=frozenset(facts),
        used={"tokens": command.tokens, "cost": command.cost_micros},
        retry_after=command.retry_after_ms,
        role=command.role,
    )
    owner = bool(task and holds_lease(task, command.attempt, command.lease))
    told = run.cancellations.get((command.task, command.attempt))
    if told and told.outcome in ("requested", "unconfirmed"):
        told.until = None
        if report.outcome == "canceled":
            told.outcome = "confirmed"
            return "applied", "cancel_confirmed"
        told.outcome = "completed_anyway"
    return _early_verdict(run, task, report, owner) or _worker_verdict(run, task, report)


def report_external(run: Run, command: ReportExternal, facts: Any) -> Refused:
    """An outside system's report (SPEC 3, 6)."""
    task = run.tasks.get(command.task)
    words = {ReportState.COMPLETED: "succeeded", ReportState.FAILED: FailureClass.PERMANENT}
    reported = next((state for state in ReportState if state == command.state), None)
    key = command.key or str(task.spec.get("key") or "" if task else "")
    owner = bool(task and task.external and task.state in (S.QUEUED, S.RUNNING))
    report = Report(
        task=command.task,
        outcome=str(words.get(reported, command.state)) if reported else command.state,
        key=key,
        given=bool(key),
        live=owner and not run.stopped,
        digest=command.digest,
        facts=frozenset(facts),
        used={"tokens": command.tokens, "cost": command.cost_micros},
    )
    known = task if task and task.external else None
    verdict = _early_verdict(run, known, report, owner)
    return verdict or _external_verdict(run, task, report, reported)


def holds_lease(task: Task, attempt: int, lease: str) -> bool:
    return task.state is S.RUNNING and task.attempt == attempt and bool(lease) and task.lease == lease


def _early_verdict(run: Run, task: Task | None, report: Report, owner: bool) -> Refused | None:
    """Verdicts (1) and (2); `owner`: it would be live had the run not stopped."""
    if task and report.success and report.key:
        word = _by_key(run, task, report)
        if word:
            return "applied" if word == Verdict.CONFLICT else "refused", word
    if run.stopped:
        run.would_change += report.success and owner
        _late(run, task, report)
        return "refused", Verdict.LATE
    return None


def _by_key(run: Run, task: Task, report: Report) -> str:
    """Verdict (1): duplicate, conflict, or empty when the key decides nothing."""
    record = run.keys.get((task.id, report.key))
    if record is None:
        return ""
    if report.live and not record.accepted:
        if record.digests == [report.digest]:
            return ""
    elif report.digest in record.digests:
        run.verdicts[Verdict.DUPLICATE] += 1
        add_evidence(run, task)
        return Verdict.DUPLICATE
    if report.digest not in record.digests:
        record.digests.append(report.digest)
    run.verdicts[Verdict.CONFLICT] += 1
    add_evidence(run, task)
    _conflict(run, task, report)
    return Verdict.CONFLICT


def _conflict(run: Run, task: Task, report: Report) -> None:
    if task.state is S.RUNNING and not run.stopped:
        if report.live:
            budget.settle(run, task, report.used)
        else:
            budget.settle_unknown(run, task)
            tell_to_end(run, task)
        task.outcome = "conflicted"
    elif task.state is not S.SUCCEEDED:
        return
    run.move(task, S.NEEDS_REVIEW)
    task.digest, task.trust = "", "conflicted"
    task.facts = set()
    open_review(run, task, "conflict")
    advance(run, task.id)


def _late(run: Run, task: Task | None, report: Report) -> None:
    run.verdicts[Verdict.LATE] += 1
    if task and report.success and report.given:
        record = run.keys.setdefault((task.id, report.key), KeyRecord())
        if report.digest not in record.digests:
            record.digests.append(report.digest)


def _worker_verdict(run: Run, task: Task | None, report: Report) -> Refused:
    """Verdicts (3), (4) and (6)."""
    if task is None:
        return "refused", Refusal.UNKNOWN_TASK
    if not report.live:
        _late(run, task, report)
        return "refused", Verdict.LATE
    _accept(run, task, report)
    return "applied", ""


def _external_verdict(run: Run, task: Task | None, report: Report, reported: ReportState | None) -> Refused:
    """Verdicts (3), (5) and (6)."""
    if task is None:
        return "refused", Refusal.UNKNOWN_TASK
    if reported is None:
        return "refused", Refusal.UNKNOWN_STATE
    if not task.external:
        return "refused", Refusal.NOT_EXTERNAL
    if task.ended:
        return "refused", Refusal.TASK_ENDED
    if not report.live:
        return "refused", Refusal.WRONG_STATE
    if task.state is S.QUEUED:
        budget.start_step(run, task)
        task.granted += 1
        task.started_at = run.now
        task.based_on = results_at_hand(run, task)
        run.move(task, S.RUNNING)
    if reported is ReportState.WORKING:
        run.reports += 1
        advance(run, task.id)
    else:
        _accept(run, task, report)
    return "applied", ""


def _accept(run: Run, task: Task, report: Report) -> None:
    """Verdict (6): the end takes effect."""
    run.reports += 1
    budget.settle(run, task, report.used)
    task.never_started = task.no_worker = 0
    match report.outcome:
        case "succeeded":
            succeed(run, task, report.digest, report.facts)
            if report.key:
                record = run.keys.setdefault((task.id, report.key), KeyRecord([report.digest]))
                record.accepted = True
        case FailureClass.TRANSIENT:
            task.outcome = "failed"
            retry(run, task, report.retry_after)
        case FailureClass.INVALID_OUTPUT if task.number("retry_invalid"):
            task.outcome = "failed"
            retry(run, task, report.retry_after)
        case FailureClass.MISSING_INPUT:
            task.outcome = "awaiting"
            task.question = report.digest
            task.granted -= 1
            run.move(task, S.AWAITING)
        case FailureClass.PERMISSION:
            task.outcome = "denied"
            run.move(task, S.DENIED)
        case _:
            task.outcome = "failed"
            run.move(task, S.FAILED)
    advance(run, task.id, report.role)


def succeed(run: Run, task: Task, digest: str, facts: frozenset[str]) -> None:
    task.outcome = "" if task.for_each else "succeeded"
    task.digest, task.trust, task.facts = digest, "trusted", set(facts)
    run.move(task, S.SUCCEEDED)
