"""Owns what a worker's entry means: one small function for each kind turns it into the command that applies it.

The role comes from the inbox alone (SPEC 12). Must not judge a run's state: stale, late, duplicate and refused are the
machine's words.
"""

from __future__ import annotations

from coordinator.machine import commands
from coordinator.runtime.teams import Teams
from coordinator.runtime.translation.envelope import Envelope
from coordinator.runtime.translation.payloads import Judged, document, invalid_output, judge, sent_error
from coordinator.wire import reports
from coordinator.wire.names import FailureClass


def start(report: reports.Start, role: str, envelope: Envelope, lease: str) -> commands.GrantLease:
    """lease: the token that proves it, if it is granted."""
    return commands.GrantLease(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        worker=report.worker,
        lease=lease,
        asked=report.request,
    )


def renew(report: reports.Renew, role: str, envelope: Envelope) -> commands.RenewLease:
    """The handler lives."""
    return commands.RenewLease(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        lease=report.lease,
        progress=report.progress,
        details=report.details,
    )


def end(report: reports.End, role: str, envelope: Envelope, teams: Teams) -> commands.EndAttempt:
    """What is no JSON, too large or against the task's schema becomes an end of class `invalid_output`."""
    outcome, error = report.outcome, ""
    if outcome == reports.SUCCEEDED:
        judged = judge(teams, report.run, report.task, report.payload)
    elif outcome == FailureClass.MISSING_INPUT:
        judged = document(report.payload or "null", "the question")
    else:
        judged = Judged()
    if judged.fault:
        outcome = FailureClass.INVALID_OUTPUT.value
        error = invalid_output(judged.fault)
    elif outcome not in (reports.SUCCEEDED, reports.CHILDREN):
        error = sent_error(outcome, report.error)
    return commands.EndAttempt(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        worker=report.worker,
        lease=report.lease,
        outcome=outcome,
        payload=judged.payload,
        digest=judged.digest,
        facts=judged.facts,
        error=error,
        retry_after_ms=report.retry_after_ms,
        tokens=report.tokens,
        cost_micros=report.cost_micros,
    )


def hand_back(report: reports.HandBackReport, role: str, envelope: Envelope) -> commands.HandBack:
    """The handler did not begin."""
    return commands.HandBack(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        worker=report.worker,
        lease=report.lease,
        reason=report.reason,
    )


def use(report: reports.Use, role: str, envelope: Envelope) -> commands.UseBudget:
    """What was used so far."""
    return commands.UseBudget(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        lease=report.lease,
        tokens=report.tokens,
        cost_micros=report.cost_micros,
    )


def ask_results(report: reports.AskResults, role: str, envelope: Envelope) -> commands.SendResults:
    """One page of the requirements' results."""
    return commands.SendResults(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        lease=report.lease,
        page=report.page,
    )


def start_action(report: reports.ActionStart, role: str, envelope: Envelope) -> commands.StartAction:
    """A side effect is about to be performed. Raises MalformedEntry for details that are no JSON."""
    details = _document(report.payload, "payload")
    return commands.StartAction(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        worker=report.worker,
        lease=report.lease,
        key=report.key,
        payload=details.payload,
        digest=details.digest,
        again=report.again,
    )


def end_action(report: reports.ActionEnd, role: str, envelope: Envelope) -> commands.EndAction:
    """How a side effect ended. Raises MalformedEntry for a receipt that is no JSON."""
    receipt = _document(report.payload, "payload")
    return commands.EndAction(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        worker=report.worker,
        lease=report.lease,
        key=report.key,
        state=report.state,
        payload=receipt.payload,
        digest=receipt.digest,
    )


def doubt_action(report: reports.ActionDoubt, role: str, envelope: Envelope) -> commands.DoubtAction:
    """Nobody knows whether it was done."""
    return commands.DoubtAction(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        worker=report.worker,
        lease=report.lease,
        key=report.key,
        tokens=report.tokens,
        cost_micros=report.cost_micros,
    )


def _document(text: str, name: str) -> Judged:
    judged = document(text, name) if text else Judged()
    if judged.fault:
        raise reports.MalformedEntry(judged.fault)
    return judged
