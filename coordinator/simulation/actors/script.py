"""Owns what every task of a simulated run does: its outcome plan, the results and the errors that come of it.

Must not send anything and must not know time; it is read by the scripted workers and outside systems.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator.simulation.actors.samples import other_than, sample_result
from coordinator.wire.names import FailureClass
from coordinator.wire.outcome_plan import DEFAULT_DURATION_MS, UNSET, OutcomePlan, PlannedAttempt


@dataclass(slots=True)
class TaskScript:
    """What one task of the Team file does. read, listed: see `samples.sample_result`."""

    plan: OutcomePlan = field(default_factory=OutcomePlan)
    external: bool = False
    key: str = ""
    output_schema: Any = None
    read: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)


class Script:
    """The scripts of all tasks; the children of a `for_each` do what their parent's plan says."""

    def __init__(self, tasks: Mapping[str, TaskScript]) -> None:
        self._tasks = tasks

    def of(self, task: str) -> TaskScript:
        """The script of a task; `PARENT[N]` has that of PARENT."""
        return self._tasks[task.partition("[")[0]]

    def externals(self) -> list[str]:
        """Names of the external tasks, in file order."""
        return [name for name, script in self._tasks.items() if script.external]

    def attempt(self, task: str, number: int) -> PlannedAttempt:
        """What attempt `number` of a task does."""
        return self.of(task).plan.attempt(number)

    def duration_ms(self, plan: PlannedAttempt) -> int:
        """How long an attempt works, in ms."""
        return DEFAULT_DURATION_MS if plan.duration_ms is None else plan.duration_ms

    def payload(self, task: str, plan: PlannedAttempt) -> Any:
        """The result of a successful attempt."""
        if plan.result is not UNSET:
            return plan.result
        script = self.of(task)
        return sample_result(task, script.output_schema, script.read, script.listed)

    def other_payload(self, payload: Any) -> Any:
        """What a worker sends that contradicts `payload`."""
        return other_than(payload)

    def failure(self, task: str, failure: FailureClass) -> tuple[str, str]:
        """Payload (a question, or empty) and error document of a failed attempt."""
        question = (
            json.dumps({"question": f"what does {task} need?"})
            if failure is FailureClass.MISSING_INPUT
            else ""
        )
        return question, error_document(failure, "Planned", f"{task}: planned {failure}")


def error_document(failure: FailureClass, kind: str, message: str) -> str:
    """An error as workers send it, as JSON text (SPEC 10)."""
    return json.dumps({"class": failure, "type": kind, "message": message, "where": "", "traceback": ""})
