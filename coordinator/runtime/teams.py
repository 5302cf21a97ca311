"""Owns the Teams of runs as the loop needs them: read from the stored documents, checked, compiled, kept in memory.

A cache and nothing more: what is not here is read again. Must not be asked about states.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, Generic, TypeVar

from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadDocuments, ReadTask
from coordinator.team.compile import Plan, compile_plan, content_digest, document_text
from coordinator.team.loader import parse_team
from coordinator.team.models import Team
from coordinator.team.payloads import check_inputs
from coordinator.wire.digest import InvalidPayload, parse_json
from coordinator.wire.errors import InputFault

PART_ITEMS = 60
"""Tasks and edges in one call; it stays within a few milliseconds."""
KEPT_TEXT = 32 * 2**20
"""Characters of Team documents whose Teams are kept: what a checked Team takes grows with its document."""
KEPT_RUNS = 4096

_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """A bounded cache: what was not used for longest goes first. room: the sum of the weights that it holds."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._weight = 0
        self._kept: OrderedDict[str, tuple[_Value, int]] = OrderedDict()

    def get(self, key: str) -> _Value | None:
        """The value, None when it is not here."""
        entry = self._kept.get(key)
        if entry is None:
            return None
        self._kept.move_to_end(key)
        return entry[0]

    def put(self, key: str, value: _Value, weight: int = 1) -> None:
        """Keeps a value, whatever its weight, and drops others until the rest fits."""
        self._weight += weight - self._kept.pop(key, (value, 0))[1]
        self._kept[key] = (value, weight)
        while self._weight > self._room and len(self._kept) > 1:
            self._weight -= self._kept.popitem(last=False)[1][1]


class Submission:
    """A run to be made: its documents, and its plan in parts. inputs: checked, defaults filled in."""

    def __init__(self, team: Team, inputs: dict[str, Any], run: str) -> None:
        self._plan: Plan = compile_plan(team, inputs, seed=run)
        self.team = document_text(team)
        self.inputs = _compact(inputs)
        self.digest = content_digest(team, inputs)

    @property
    def header(self) -> str:
        """The plan's header as JSON."""
        return _compact(self._plan.header)

    def part(self, cursor: int) -> str:
        """The items from a cursor on, as JSON."""
        return _compact(self._plan.items[cursor : self.after(cursor)])

    def after(self, cursor: int) -> int:
        """The cursor behind the part that begins at `cursor`."""
        return cursor + PART_ITEMS

    def more(self, cursor: int) -> bool:
        """Whether another part follows the one that begins at `cursor`."""
        return self.after(cursor) < len(self._plan.items)


class Teams:
    """Teams and submissions by run. allow_cycle: a Team may have one; only a simulation's may."""

    def __init__(self, machine: Machine, *, allow_cycle: bool = False) -> None:
        self._machine = machine
        self._allow_cycle = allow_cycle
        self._by_text: Recent[Team] = Recent(KEPT_TEXT)
        self._by_run: Recent[Team] = Recent(min(KEPT_RUNS, KEPT_TEXT))
        self._submissions: Recent[Submission] = Recent(KEPT_TEXT)

    def submission(self, run: str, team: str, inputs: str) -> Submission:
        """Checks what a client submitted; raises InputFault with every fault."""
        checked = self._team(team)
        try:
            given = parse_json(inputs or "{}")
        except InvalidPayload as fault:
            raise InputFault(f"inputs: {fault}") from None
        if not isinstance(given, dict):
            raise InputFault("inputs: expected an object")
        made = Submission(checked, check_inputs(checked, given), run)
        if made.more(0):
            self._submissions.put(run, made, len(team))
        return made

    def submission_of(self, run: str) -> Submission | None:
        """The submission of a run that was begun already; made again from its documents when it is not here."""
        kept = self._submissions.get(run)
        if kept is None:
            documents = self._machine.read(ReadDocuments(run=run))
            if not documents:
                return None
            kept = Submission(self._team(documents["team"]), parse_json(documents["inputs"]), run)
            self._submissions.put(run, kept, len(documents["team"]))
        return kept

    def of_run(self, run: str) -> Team | None:
        """The run's Team; None for an unknown run."""
        kept = self._by_run.get(run)
        if kept is None:
            documents = self._machine.read(ReadDocuments(run=run))
            if not documents:
                return None
            kept = self._team(documents["team"])
            self._by_run.put(run, kept, 1)
        return kept

    def contract_of_child(self, run: str, task: str) -> tuple[Any, int] | None:
        """output_schema and output_bytes of a child that a handler made; None when there is no such task."""
        row = self._machine.read(ReadTask(run=run, task=task))
        if not row.get("output_bytes"):
            return None
        declared = row.get("output_schema")
        return (json.loads(declared) if declared else None), int(row["output_bytes"])

    def _team(self, text: str) -> Team:
        """Many runs are made from one text, so it is checked once."""
        kept = self._by_text.get(text)
        if kept is None:
            kept = parse_team(text, "team", allow_cycle=self._allow_cycle)
            self._by_text.put(text, kept, len(text))
        return kept


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
