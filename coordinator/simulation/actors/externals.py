"""Owns the outside systems of a simulation: they report on external tasks as the plan says (SPEC 3).

The end of an external task that became `queued` is reported after the planned duration. `working` is a step of its own
(SPEC 4), so only those that never report an end say it.
Must not touch run state: it watches the events, and speaks through the operate inbox.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from coordinator.simulation.actors.post import Post
from coordinator.simulation.actors.script import Script, error_document
from coordinator.simulation.actors.workers import sent_payloads
from coordinator.simulation.clock import Agenda, VirtualClock
from coordinator.wire.names import FailureClass, ReportState
from coordinator.wire.outcome_plan import PlannedOutcome
from coordinator.wire.reports import ExternalReport

SOURCE = "simulation"
"""Name under which the outside systems report."""

_ERRORS = frozenset(
    {
        PlannedOutcome.TRANSIENT_ERROR,
        PlannedOutcome.PERMANENT_ERROR,
        PlannedOutcome.PERMISSION_DENIED,
        PlannedOutcome.MISSING_INPUT,
        PlannedOutcome.INVALID_OUTPUT,
    }
)
_SILENT = frozenset({PlannedOutcome.CRASH, PlannedOutcome.TIMEOUT})
"""These report `working` and nothing more."""


class ScriptedExternals:
    """All outside systems of a simulated run."""

    def __init__(self, post: Post, agenda: Agenda, clock: VirtualClock, script: Script) -> None:
        self._post = post
        self._agenda = agenda
        self._clock = clock
        self._script = script
        self._late: dict[str, str] = {}

    def watch(self, events: Iterable[Mapping[str, str]], run: str) -> None:
        """Reads new events of the run; to be called after each step of the loop."""
        for event in events:
            task = event.get("task_id", "")
            if event.get("to") == "queued" and task and self._script.of(task).external:
                self._take_up(run, task)

    def send_late(self) -> bool:
        """Sends the successes that were held back until the run stopped; says whether there were any."""
        waiting, self._late = self._late, {}
        for task, run in waiting.items():
            self._complete(run, task)
        return bool(waiting)

    def _take_up(self, run: str, task: str) -> None:
        plan = self._script.attempt(task, 1)
        if plan.outcome is PlannedOutcome.HANDBACK:
            return
        if plan.outcome in _SILENT:
            self._plan(0, task, "working", lambda: self._report(run, task, ReportState.WORKING))
            return
        if plan.outcome is PlannedOutcome.LATE:
            self._late[task] = run
        else:
            self._plan(self._script.duration_ms(plan), task, "end", lambda: self._end(run, task))

    def _end(self, run: str, task: str) -> None:
        plan = self._script.attempt(task, 1)
        if plan.outcome in _ERRORS:
            error = error_document(FailureClass.PERMANENT, "Planned", f"{task}: planned {plan.outcome}")
            self._report(run, task, ReportState.FAILED, error=error)
        else:
            self._complete(run, task)

    def _complete(self, run: str, task: str) -> None:
        for payload in sent_payloads(self._script, task, self._script.attempt(task, 1)):
            self._report(run, task, ReportState.COMPLETED, payload=json.dumps(payload, ensure_ascii=False))

    def _report(self, run: str, task: str, state: ReportState, payload: str = "", error: str = "") -> None:
        plan = self._script.attempt(task, 1)
        ended = state is not ReportState.WORKING
        self._post.to_scope(
            "operate",
            ExternalReport(
                run=run,
                task=task,
                state=state,
                key=self._script.of(task).key or f"{task}/1",
                payload=payload,
                error=error,
                source=SOURCE,
                tokens=plan.tokens if ended else 0,
                cost_micros=plan.cost_micros if ended else 0,
            ),
        )

    def _plan(self, delay_ms: int, task: str, what: str, act: Callable[[], None]) -> None:
        self._agenda.add(self._clock.now + delay_ms, f"{SOURCE}:{task} {what}", f"{SOURCE}:{task}", act)
