"""Owns what an inbox entry means: one small function for each kind of entry turns it into the command that applies it.

Payloads are read here, once and strictly: what is no JSON, too large or against the task's schema becomes an end of
class `invalid_output` with an error document, and what passes gets its digest and the facts that rules ask for
(SPEC 3, 6). Must not judge a run's state: stale, late, duplicate and refused are the machine's words. What cannot be
read at all goes to the installation's ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from coordinator.machine import commands
from coordinator.runtime.teams import Teams
from coordinator.team.payloads import judge_result
from coordinator.wire import channels, reports
from coordinator.wire.digest import InvalidPayload, digest, parse_json
from coordinator.wire.errors import InputFault
from coordinator.wire.names import FailureClass, ReportState

LONGEST_TEXT = 16_384
"""Characters of a message or traceback that are kept; the rest is cut with a mark."""
LONGEST_RAW = 2_000
"""Characters of an unreadable entry that its ledger keeps."""
ERROR_TEXTS = ("class", "type", "message", "where", "traceback")
CUT = " […]"

Raw = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Source:
    """An inbox. role: the role that it belongs to, empty for those of a scope."""

    key: str
    scope: str
    role: str = ""


class Envelope(TypedDict):
    """The fields of every command (`commands.GATE_FIELDS`)."""

    now: int
    inbox: str
    entry: str
    reply_to: str
    request: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a payload: digest and facts, or why it is no result."""

    payload: str = ""
    digest: str = ""
    facts: str = "[]"
    fault: str = ""


class Translator:
    """Turns entries into commands. tokens: makes a lease token, unguessable in production. library: hash of the
    loaded Lua library, recorded with every run."""

    def __init__(self, namespace: str, teams: Teams, tokens: Callable[[], str], library: str) -> None:
        self._namespace = namespace
        self._teams = teams
        self._tokens = tokens
        self._library = library

    def command(self, source: Source, entry: str, raw: Raw, now: int) -> commands.Command:
        """The command that applies this entry; a RefuseEntry when it cannot be read."""
        try:
            if source.role:
                return self._role(source, entry, raw, now)
            if source.scope == "submit":
                return self._submit(source, entry, raw, now)
            if source.scope == "operate":
                return self._operate(source, entry, raw, now)
            raise reports.MalformedEntry("kind: unknown")
        except reports.MalformedEntry as fault:
            return self.refusal(source, entry, raw, now, str(fault))
        except InputFault as fault:
            return self.refusal(source, entry, raw, now, str(fault))

    def refusal(self, source: Source, entry: str, raw: Raw, now: int, reason: str) -> commands.RefuseEntry:
        """Sends the entry to the ledger, and the reason to its sender if it named a list of its own."""
        request = raw.get(b"request", b"").decode(errors="replace")[:64]
        reply_to = raw.get(b"reply_to", b"").decode(errors="replace")
        if source.role:
            own = channels.reply(self._namespace, source.role, "")
            allowed = reply_to.startswith(own) and ":" not in reply_to[len(own) :]
        else:
            allowed = reply_to == channels.client_reply(self._namespace, request)
        text = json.dumps({_text(name): _text(value) for name, value in raw.items()}, ensure_ascii=False)
        return commands.RefuseEntry(
            now=now,
            inbox=source.key,
            entry=entry,
            reply_to=reply_to if allowed and len(reply_to) <= 512 else "",
            request=request,
            reason=_cut(reason),
            raw=text[:LONGEST_RAW],
        )

    def _role(self, source: Source, entry: str, raw: Raw, now: int) -> commands.Command:
        report = reports.parse_role(self._namespace, source.role, raw)
        envelope = _envelope(source, entry, report, now)
        role = source.role
        match report:
            case reports.Renew():
                return _renew(report, role, envelope)
            case reports.Start():
                return _start(report, role, envelope, self._tokens())
            case reports.End():
                return self._end(report, role, envelope)
            case reports.HandBackReport():
                return _hand_back(report, role, envelope)
            case reports.Use():
                return _use(report, role, envelope)
            case reports.AskResults():
                return _results(report, role, envelope)

    def _submit(self, source: Source, entry: str, raw: Raw, now: int) -> commands.Command:
        request = reports.parse_submit(self._namespace, raw)
        submission = self._teams.submission(request.run, request.team, request.inputs)
        return commands.SubmitRun(
            **_envelope(source, entry, request, now),
            run=request.run,
            digest=submission.digest,
            library=self._library,
            header=submission.header,
            items=submission.part(0),
            more=int(submission.more(0)),
            team=submission.team,
            inputs=submission.inputs,
        )

    def _operate(self, source: Source, entry: str, raw: Raw, now: int) -> commands.Command:
        report = reports.parse_operate(self._namespace, raw)
        envelope = _envelope(source, entry, report, now)
        match report:
            case reports.ExternalReport():
                return self._external(report, envelope)
            case reports.Signal():
                return commands.SignalRun(
                    **envelope, run=report.run, signal=report.signal, source=report.source
                )

    def _end(self, report: reports.End, role: str, envelope: Envelope) -> commands.EndAttempt:
        outcome, error = report.outcome, ""
        if outcome == reports.SUCCEEDED:
            judged = judge(self._teams, report.run, report.task, report.payload)
        elif outcome == FailureClass.MISSING_INPUT:
            judged = _question(report.payload)
        else:
            judged = Judged()
        if judged.fault:
            outcome = FailureClass.INVALID_OUTPUT.value
            error = _invalid_output(judged.fault)
        elif outcome != reports.SUCCEEDED:
            error = _error(outcome, report.error)
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

    def _external(self, report: reports.ExternalReport, envelope: Envelope) -> commands.Command:
        state, error, judged = report.state, "", Judged()
        if state == ReportState.COMPLETED:
            judged = judge(self._teams, report.run, report.task, report.payload or "null")
            if judged.fault:
                state, error = ReportState.FAILED.value, _invalid_output(judged.fault)
        elif state == ReportState.FAILED:
            error = _error(FailureClass.PERMANENT, report.error)
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


def judge(teams: Teams, run: str, task: str, payload: str) -> Judged:
    """Holds a result against its task's contract. A task or run that is not known has none; the machine refuses what
    is said of it."""
    team = teams.of_run(run)
    if team is None:
        return Judged()
    judgement = judge_result(team, task, payload)
    if judgement.fault or not judgement.digest:
        return Judged(fault=judgement.fault)
    facts = json.dumps(judgement.facts) if judgement.facts else "[]"
    return Judged(payload=payload, digest=judgement.digest, facts=facts)


def size(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def _question(payload: str) -> Judged:
    text = payload or "null"
    try:
        return Judged(payload=text, digest=digest(parse_json(text)))
    except InvalidPayload as fault:
        return Judged(fault=f"the question: {fault}")


def _envelope(source: Source, entry: str, report: reports.Entry, now: int) -> Envelope:
    return {
        "now": now,
        "inbox": source.key,
        "entry": entry,
        "reply_to": report.reply_to,
        "request": report.request,
    }


def _start(report: reports.Start, role: str, envelope: Envelope, lease: str) -> commands.GrantLease:
    return commands.GrantLease(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        worker=report.worker,
        lease=lease,
    )


def _renew(report: reports.Renew, role: str, envelope: Envelope) -> commands.RenewLease:
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


def _hand_back(report: reports.HandBackReport, role: str, envelope: Envelope) -> commands.HandBack:
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


def _use(report: reports.Use, role: str, envelope: Envelope) -> commands.UseBudget:
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


def _results(report: reports.AskResults, role: str, envelope: Envelope) -> commands.SendResults:
    return commands.SendResults(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        lease=report.lease,
        page=report.page,
    )


def error_document(failure: str, kind: str, message: str) -> str:
    """An error as it is kept with an attempt: {class, type, message, where, traceback}."""
    return _dump({"class": failure, "type": kind, "message": _cut(message), "where": "", "traceback": ""})


def _invalid_output(fault: str) -> str:
    return error_document(FailureClass.INVALID_OUTPUT, "InvalidOutput", fault)


def _error(outcome: str, text: str) -> str:
    """The sender's error document with the known fields alone, each of bounded length; the class is the outcome's."""
    try:
        given: Any = parse_json(text) if text else {}
    except InvalidPayload:
        given = {"message": text}
    if not isinstance(given, dict):
        given = {"message": json.dumps(given, ensure_ascii=False)}
    document = {name: _cut(str(given.get(name) or "")) for name in ERROR_TEXTS}
    document["class"] = outcome
    return _dump(document)


def _dump(document: dict[str, str]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - len(CUT)] + CUT


def _text(raw: bytes) -> str:
    return raw[:LONGEST_RAW].decode(errors="replace")
