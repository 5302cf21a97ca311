"""Owns the coordinator's own work on `for_each`: making the children of a parent, and the list of their results.

Lua decides when each is due and whether enough children succeeded (`min_success`); here only documents are handled,
which Lua never opens. Children are made in bounded parts, so a crash in between loses nothing: the machine knows how
many there are. Must not decide states.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from coordinator.machine.commands import CollectTask, Command, SpawnTasks
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadDocuments, ReadPayloads, ReadResults, ReadTask
from coordinator.runtime.leader import Fenced
from coordinator.runtime.teams import Teams
from coordinator.runtime.translation.payloads import Judged, error_document, judge, size
from coordinator.runtime.upkeep.quarantine import Quarantine, Subject
from coordinator.team.compile import children_of
from coordinator.team.models import MAX_OUTPUT_BYTES, Team
from coordinator.team.payloads import NotElements, elements_of, source_task
from coordinator.wire.bindings import Unresolved
from coordinator.wire.digest import parse_json
from coordinator.wire.errors import InputFault
from coordinator.wire.names import FailureClass, ReplyStatus

CHILDREN_AT_ONCE = 60
"""Children in one call; it stays within a few milliseconds."""
LONGEST_LIST = MAX_OUTPUT_BYTES
"""Bytes of the list of results; `output_bytes` is each child's own bound."""
TOO_LONG = f"the list of the children's results has more than {LONGEST_LIST} bytes"
SUCCEEDED = "succeeded"

Internal = tuple[str, str, str, str, str]
"""A parent to work on: run, task, what, children, verdict."""


def internal_subject(item: Internal) -> Subject:
    """What a parent is called when the machine fails on it."""
    return ("for_each", item[0], item[1])


class Gone(Exception):
    """What the run recorded is not there any more."""


class FanOut:
    """Does what `ReadInternal` asks for."""

    def __init__(self, machine: Machine, fenced: Fenced, quarantine: Quarantine, teams: Teams) -> None:
        self._machine = machine
        self._fenced = fenced
        self._quarantine = quarantine
        self._teams = teams

    def work(self, now: int, items: Sequence[Internal]) -> int:
        """One bounded piece for each (run, task, what, children, verdict). Gives how many took effect."""
        subjects: list[Subject] = []
        commands: list[Command] = []
        for item in items:
            command = self._made(item, now)
            if command is not None:
                commands.append(command)
                subjects.append(internal_subject(item))
        sifted = self._quarantine.sift(now, subjects, self._fenced.apply_each(commands))
        for subject, reply in sifted:
            if reply.status == ReplyStatus.REFUSED:
                self._quarantine.wait(now, subject)
        return sum(reply.status == ReplyStatus.APPLIED for _, reply in sifted)

    def _made(self, item: Internal, now: int) -> Command | None:
        """The command for an item; one that cannot be made is left alone."""
        try:
            return self._command(item, now)
        except InputFault as fault:
            self._quarantine.rest(now, internal_subject(item), f"the stored Team cannot be read: {fault}")
        except Gone as fault:
            self._quarantine.rest(now, internal_subject(item), str(fault))
        return None

    def _command(self, item: Internal, now: int) -> Command:
        run, task, what, children, verdict = item
        team = self._teams.of_run(run)
        if team is None:
            raise Gone("the run's documents are gone")
        if what == "expand":
            return self._expand(team, run, task, int(children), now)
        if verdict != SUCCEEDED:
            return _failure(run, task, "ChildrenFailed", "too many children did not succeed", now)
        return self._collect(run, task, int(children), now)

    def _expand(self, team: Team, run: str, task: str, cursor: int, now: int) -> Command:
        try:
            elements = self._elements(team, run, task)
            end = cursor + CHILDREN_AT_ONCE
            children = children_of(team, task, elements[cursor:end], cursor)
        except NotElements as fault:
            return _failure(run, task, "NotElements", str(fault), now)
        except Unresolved as fault:
            return _failure(run, task, "InputUnresolved", str(fault), now)
        return SpawnTasks(
            now=now,
            run=run,
            task=task,
            cursor=cursor,
            children=json.dumps(children, ensure_ascii=False, separators=(",", ":")),
            more=int(end < len(elements)),
        )

    def _elements(self, team: Team, run: str, task: str) -> list[Any]:
        """The list that the children are made from; raises NotElements when there is none, or one that is too long."""
        source, results, inputs = source_task(team, task), {}, {}
        if source:
            row = self._machine.read(ReadTask(run=run, task=source))
            if digest := row.get("digest", ""):
                [text] = self._machine.read(ReadPayloads(run=run, digests=(digest,)))
                if text is None:
                    raise Gone(f"the result of {source} is gone")
                results[source] = parse_json(text)
        else:
            documents = self._machine.read(ReadDocuments(run=run))
            if "inputs" not in documents:
                raise Gone("the run's documents are gone")
            inputs = parse_json(documents["inputs"])
        return elements_of(team, task, inputs, results)

    def _collect(self, run: str, task: str, count: int, now: int) -> Command:
        text = self._list_of_results(run, task, count)
        judged = judge(self._teams, run, task, text) if text else Judged(fault=TOO_LONG)
        if judged.fault:
            return _failure(run, task, "InvalidOutput", judged.fault, now, FailureClass.INVALID_OUTPUT)
        return CollectTask(
            now=now,
            run=run,
            task=task,
            outcome=SUCCEEDED,
            payload=judged.payload,
            digest=judged.digest,
            facts=judged.facts,
            error="",
        )

    def _list_of_results(self, run: str, task: str, count: int) -> str:
        """The children's results in the order of the elements, put together from their stored texts; null where a
        child did not succeed. Empty when it grows too long."""
        texts: list[str] = []
        length = 2
        for offset in range(0, count, CHILDREN_AT_ONCE):
            rows = self._machine.read(ReadResults(run=run, task=task, offset=offset, limit=CHILDREN_AT_ONCE))
            digests = tuple(digest if state == SUCCEEDED else "" for _, state, digest in rows)
            found = self._machine.read(ReadPayloads(run=run, digests=digests))
            if any(digest and text is None for digest, text in zip(digests, found, strict=True)):
                raise Gone(f"results of the children of {task} are gone")
            texts.extend("null" if text is None else text for text in found)
            length += sum(size(text) + 1 for text in texts[offset:])
            if length - 1 > LONGEST_LIST:
                return ""
        return f"[{','.join(texts)}]"


def _failure(
    run: str, task: str, kind: str, message: str, now: int, failure: FailureClass = FailureClass.PERMANENT
) -> CollectTask:
    return CollectTask(
        now=now,
        run=run,
        task=task,
        outcome=failure.value,
        payload="",
        digest="",
        facts="[]",
        error=error_document(failure, kind, message),
    )
