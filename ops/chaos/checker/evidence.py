"""Owns what the checker is given: histories, commands, effects, journal, counters, and what was done to whom.

Must not judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ops.chaos.checker.journal import Letter
from ops.chaos.fleet import Pause

Fields = dict[str, str]


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: which, of which run ("" for none), and the evidence."""

    kind: str
    run: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.kind}{f' [{self.run}]' if self.run else ''}: {self.evidence}"


@dataclass(slots=True)
class RunEvidence:
    """What stands of one run. commands: [name, now, arguments by name]. verified: `equal`, or what `verify` said."""

    run: Fields
    tasks: list[Fields]
    events: list[Fields]
    commands: list[tuple[str, int, Mapping[str, str]]]
    cancellations: list[dict[str, Any]] = field(default_factory=list)
    verified: str = "equal"

    @property
    def id(self) -> str:
        return self.run["run"]


@dataclass(slots=True)
class Execution:
    """One time that a handler began, by its own word. how: the way in which it ended, empty when it never said so."""

    run: str
    task: str
    attempt: int
    pid: int
    ppid: int
    began: int
    ended: int = 0
    how: str = ""

    @property
    def attempt_of(self) -> tuple[str, str, int]:
        """Run, task and number."""
        return self.run, self.task, self.attempt


@dataclass(slots=True)
class Evidence:
    """Everything. counters: as ReadMetrics gives them. malformed: entries in the installation's ledger.

    pauses: when who could not do what it meant to. killed: processes that were killed. dropped: reports that workers
    gave up, by their own word. complaints: what processes said or did that they never should. left: work that lies
    around although nothing runs any more.
    """

    runs: dict[str, RunEvidence] = field(default_factory=dict)
    executions: list[Execution] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    malformed: int = 0
    pauses: list[Pause] = field(default_factory=list)
    killed: set[int] = field(default_factory=set)
    dropped: int = 0
    complaints: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
