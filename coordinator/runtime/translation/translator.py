"""Owns which command an inbox entry becomes: by its inbox and its kind, or the ledger when it cannot be read.

What each kind means stands in `workers.py`, `deeds.py` and `people.py`. Must not judge a run's state: stale, late,
duplicate and refused are the machine's words.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from coordinator.machine import commands
from coordinator.machine.machine import Machine
from coordinator.runtime.teams import Teams
from coordinator.runtime.translation import deeds, people, workers
from coordinator.runtime.translation.envelope import Raw, Source, envelope, unread_envelope
from coordinator.runtime.translation.payloads import cut
from coordinator.wire import reports
from coordinator.wire.errors import InputFault

LONGEST_RAW = 2_000
"""Characters of an unreadable entry that its ledger keeps."""


class Translator:
    """Turns entries into commands. tokens: makes a lease token, unguessable in production."""

    def __init__(self, machine: Machine, teams: Teams, tokens: Callable[[], str]) -> None:
        self._machine = machine
        self._namespace = machine.namespace
        self._teams = teams
        self._tokens = tokens

    def command(self, source: Source, entry: str, raw: Raw, now: int) -> commands.Command:
        """The command that applies this entry; a RefuseEntry when it cannot be read."""
        try:
            if source.role:
                return self._role(source, entry, raw, now)
            if source.scope == "submit":
                return self._submit(source, entry, raw, now)
            if source.scope == "operate":
                return self._operate(source, entry, raw, now)
            decision = reports.parse_review(self._namespace, raw)
            return people.decide(decision, envelope(source, entry, decision, now), self._machine, self._teams)
        except reports.MalformedEntry as fault:
            return self.refusal(source, entry, raw, now, str(fault))
        except InputFault as fault:
            return self.refusal(source, entry, raw, now, str(fault))

    def refusal(self, source: Source, entry: str, raw: Raw, now: int, reason: str) -> commands.RefuseEntry:
        """Sends the entry to the ledger, and the reason to its sender if it named a list of its own."""
        text = json.dumps({_text(name): _text(value) for name, value in raw.items()}, ensure_ascii=False)
        return commands.RefuseEntry(
            **unread_envelope(self._namespace, source, entry, raw, now),
            reason=cut(reason),
            raw=text[:LONGEST_RAW],
        )

    def _role(self, source: Source, entry: str, raw: Raw, now: int) -> commands.Command:
        report = reports.parse_role(self._namespace, source.role, raw)
        head, role = envelope(source, entry, report, now), source.role
        match report:
            case reports.Renew():
                return workers.renew(report, role, head)
            case reports.Start():
                return workers.start(report, role, head, self._tokens())
            case reports.End():
                return workers.end(report, role, head, self._teams)
            case reports.HandBackReport():
                return workers.hand_back(report, role, head)
            case reports.Use():
                return workers.use(report, role, head)
            case reports.AskResults():
                return workers.ask_results(report, role, head)
            case reports.ActionStart():
                return workers.start_action(report, role, head)
            case reports.ActionEnd():
                return workers.end_action(report, role, head)
            case reports.ActionDoubt():
                return workers.doubt_action(report, role, head)
            case reports.Spawn():
                return deeds.spawn(report, role, head, self._teams)
            case reports.ArtifactMade():
                return deeds.record_artifact(report, role, head)

    def _submit(self, source: Source, entry: str, raw: Raw, now: int) -> commands.Command:
        request = reports.parse_submit(self._namespace, raw)
        submission = self._teams.submission(request.run, request.team, request.inputs)
        return commands.SubmitRun(
            **envelope(source, entry, request, now),
            run=request.run,
            digest=submission.digest,
            library=self._machine.library.hash,
            header=submission.header,
            items=submission.part(0),
            more=int(submission.more(0)),
            team=submission.team,
            inputs=submission.inputs,
        )

    def _operate(self, source: Source, entry: str, raw: Raw, now: int) -> commands.Command:
        report = reports.parse_operate(self._namespace, raw)
        head = envelope(source, entry, report, now)
        match report:
            case reports.ExternalReport():
                return people.external(report, head, self._teams)
            case reports.Signal():
                return people.signal(report, head)
            case reports.Cancel():
                return people.cancel(report, head)
            case reports.Resume():
                return people.resume(report, head)
            case reports.AnswerQuestion():
                return people.answer(report, head)
            case reports.ActionDecide():
                return people.decide_action(report, head)


def _text(raw: bytes) -> str:
    return raw[:LONGEST_RAW].decode(errors="replace")
