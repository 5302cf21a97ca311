"""Owns what operators, reviewers and outside systems say: one small function for each kind of entry.

Must not judge whether it may be done: parked, decided, answered or stopped are the machine's words.
"""

from __future__ import annotations

import json

from coordinator.machine import commands
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadPayloads, ReadRecords
from coordinator.runtime.teams import Teams
from coordinator.runtime.translation.envelope import Envelope
from coordinator.runtime.translation.payloads import Judged, document, invalid_output, judge, sent_error
from coordinator.wire import reports
from coordinator.wire.digest import InvalidPayload, parse_json
from coordinator.wire.names import FailureClass, ReportState

RAISABLE = frozenset(
    {
        "limit_step_budget",
        "limit_max_steps",
        "limit_tokens",
        "limit_cost",
        "limit_deadline_ms",
        "limit_no_progress_ms",
        "limit_no_progress_steps",
    }
)
"""Fields of a run that `resume` may raise (SPEC 5); money is in micro-units."""


def external(report: reports.ExternalReport, envelope: Envelope, teams: Teams) -> commands.ReportExternal:
    """An outside system reports on a task of its own."""
    state, error, judged = report.state, "", Judged()
    if state == ReportState.COMPLETED:
        judged = judge(teams, report.run, report.task, report.payload or "null")
        if judged.fault:
            state, error = ReportState.FAILED.value, invalid_output(judged.fault)
    elif state == ReportState.FAILED:
        error = sent_error(FailureClass.PERMANENT, report.error)
    return commands.ReportExternal(
        **envelope,
        run=report.run,
        task=report.task,
        state=state,
        key=report.key,
        payload=judged.payload,
        digest=judged.digest,
        facts=judged.facts,
        error=error,
        source=report.source,
        tokens=report.tokens,
        cost_micros=report.cost_micros,
    )


def signal(report: reports.Signal, envelope: Envelope) -> commands.SignalRun:
    """A named signal for the rules."""
    return commands.SignalRun(**envelope, run=report.run, signal=report.signal, source=report.source)


def cancel(report: reports.Cancel, envelope: Envelope) -> commands.CancelRun | commands.CancelTask:
    """Ends a run, or one task of it."""
    if report.task:
        return commands.CancelTask(
            **envelope,
            run=report.run,
            task=report.task,
            ask=report.ask,
            reason=report.reason,
            source=report.source,
        )
    return commands.CancelRun(
        **envelope, run=report.run, ask=report.ask, reason=report.reason, source=report.source
    )


def resume(report: reports.Resume, envelope: Envelope) -> commands.ResumeRun:
    """Lets a parked run go on. Raises MalformedEntry for raises that cannot be read."""
    return commands.ResumeRun(**envelope, run=report.run, raises=_raises(report.raises), source=report.source)


def answer(report: reports.AnswerQuestion, envelope: Envelope) -> commands.AnswerTask:
    """Answers a task's question. Raises MalformedEntry when it is no JSON."""
    given = _document(report.payload)
    return commands.AnswerTask(
        **envelope,
        run=report.run,
        task=report.task,
        question=report.question,
        payload=given.payload,
        digest=given.digest,
        source=report.source,
    )


def decide_action(report: reports.ActionDecide, envelope: Envelope) -> commands.DecideAction:
    """How an action ended of which nobody knew. Raises MalformedEntry for a receipt that is no JSON."""
    receipt = _document(report.payload) if report.payload else Judged()
    return commands.DecideAction(
        **envelope,
        run=report.run,
        task=report.task,
        key=report.key,
        state=report.state,
        payload=receipt.payload,
        digest=receipt.digest,
        reason=report.reason,
        source=report.source,
    )


def decide(
    report: reports.Decide, envelope: Envelope, machine: Machine, teams: Teams
) -> commands.DecideReview:
    """A person closes a review. Raises MalformedEntry when what is supplied is no result of the task."""
    chosen = _chosen(report, machine, teams)
    return commands.DecideReview(
        **envelope,
        run=report.run,
        review=report.review,
        decision=report.decision,
        payload=chosen.payload,
        digest=chosen.digest,
        facts=chosen.facts,
        version=report.version,
        tainted=report.tainted,
        reason=report.reason,
        source=report.source,
    )


def _chosen(report: reports.Decide, machine: Machine, teams: Teams) -> Judged:
    """The result that is decided for, with its facts; of an accepted one the payload is known by its digest."""
    if report.decision not in ("accept", "supply"):
        return Judged()
    task = _task_of(report.run, report.review, machine)
    payload: str | None = report.payload
    if report.decision == "accept":
        [payload] = machine.read(ReadPayloads(run=report.run, digests=(report.digest,)))
    if not task or payload is None:
        return Judged(
            digest=report.digest
        )  # there is no such review, or nobody sent this: the machine refuses it
    judged = judge(teams, report.run, task, payload)
    if judged.fault:
        raise reports.MalformedEntry(f"payload: {judged.fault}")
    return judged


def _task_of(run: str, review: str, machine: Machine) -> str:
    records = machine.read(ReadRecords(run=run, kind="reviews"))
    return next((str(record["task"]) for record in records if record["id"] == review), "")


def _document(text: str) -> Judged:
    given = document(text, "payload")
    if given.fault:
        raise reports.MalformedEntry(given.fault)
    return given


def _raises(text: str) -> str:
    try:
        given = parse_json(text)
    except InvalidPayload as fault:
        raise reports.MalformedEntry(f"raises: {fault}") from None
    if not isinstance(given, list) or not all(map(_is_raise, given)):
        raise reports.MalformedEntry("raises: expected a list of [limit field, value, 0 or 1]")
    return json.dumps(given, separators=(",", ":"))


def _is_raise(entry: object) -> bool:
    match entry:
        case [str(field), int(value), int(is_added)]:
            whole = not isinstance(value, bool) and not isinstance(is_added, bool)
            return field in RAISABLE and whole and 0 <= value <= reports.MAX_NUMBER and is_added in (0, 1)
    return False
