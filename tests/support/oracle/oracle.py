"""Owns the oracle's face: apply a command, get its answer, look at the public state.

Must not decide what a command does to a task: attempts.py and reports.py do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coordinator.machine import commands as c
from coordinator.wire.names import Refusal, RunStatus
from coordinator.wire.names import TaskState as S
from tests.support.oracle import actions, attempts, people, reports
from tests.support.oracle.flow import advance
from tests.support.oracle.readiness import held_by_review, lost
from tests.support.oracle.state import AMOUNTS, Run, Task, add_items

OF_RUN = (
    c.AddTasks, c.ContinueBatch, c.DispatchTask, c.GrantLease, c.RenewLease, c.EndAttempt, c.HandBack, c.LoseQueued,
    c.ReportExternal, c.UseBudget, c.SpawnTasks, c.CollectTask, c.FireTimer, c.SignalRun,
    c.CancelRun, c.CancelTask, c.ExpireCancel, c.AnswerTask, c.ResumeRun, c.DecideReview,
    c.StartAction, c.EndAction, c.DoubtAction, c.DecideAction,
)  # fmt: skip
"""Commands that name an existing run."""

STARTS = (c.DispatchTask, c.GrantLease, c.SpawnTasks)
"""Commands that start something: not in a parked run."""


ON_ATTEMPT: dict[type, Any] = {
    c.GrantLease: attempts.grant_lease,
    c.RenewLease: attempts.renew_lease,
    c.UseBudget: attempts.use_budget,
    c.HandBack: attempts.hand_back,
    c.LoseQueued: attempts.lose_queued,
    c.FireTimer: attempts.fire_timer,
    c.SpawnTasks: attempts.spawn_tasks,
    c.StartAction: actions.start_action,
    c.DoubtAction: actions.doubt_action,
}

ON_RUN: dict[type, Any] = {
    c.CancelRun: people.cancel_run,
    c.CancelTask: people.cancel_task,
    c.ExpireCancel: people.expire_cancel,
    c.AnswerTask: people.answer_task,
    c.ResumeRun: people.resume_run,
    c.EndAction: actions.end_action,
    c.DecideAction: actions.decide_action,
}
"""Commands that say themselves whether a stopped run takes them."""


@dataclass(frozen=True)
class Answer:
    """What a command was answered: a ReplyStatus and a refusal word or verdict."""

    status: str
    word: str = ""


class Oracle:
    """All runs, and the inbox entries that were posted and not yet applied."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.entries: set[tuple[str, str]] = set()

    def post(self, inbox: str, entry: str) -> None:
        """An entry was written to an inbox."""
        self.entries.add((inbox, entry))

    def apply(self, command: c.Command) -> Answer:
        """Applies one command: its effect on the runs, and its answer."""
        entry = (command.inbox, command.entry)
        if command.entry and entry not in self.entries:
            return Answer("repeated")
        answer = self._route(command)
        if answer.status != "waiting":
            self.entries.discard(entry)
        return answer

    def _route(self, command: c.Command) -> Answer:
        if isinstance(command, c.SubmitRun):
            return self._submit(command)
        if isinstance(command, c.Dispatch):
            return self._dispatch(command)
        if isinstance(command, OF_RUN):
            run = self.runs.get(command.run)
            if run is None:
                return Answer("refused", Refusal.UNKNOWN_RUN)
            return Answer(*self._guarded(run, command))
        return Answer("applied")

    def _guarded(self, run: Run, command: Any) -> tuple[str, str]:
        """The guards in the order in which every command meets them, then the command itself."""
        if run.loading and not isinstance(command, c.AddTasks):
            return "waiting", ""
        run.now = max(run.now, command.now)
        if isinstance(command, c.EndAttempt):
            return reports.end_attempt(run, command, _facts(command.facts))
        if isinstance(command, c.ReportExternal):
            return reports.report_external(run, command, _facts(command.facts))
        if isinstance(command, c.DecideReview):
            return people.decide_review(run, command, _facts(command.facts))
        if type(command) in ON_RUN:
            said: tuple[str, str] = ON_RUN[type(command)](run, command)
            return said
        if run.stopped:
            return "refused", Refusal.RUN_STOPPED
        if isinstance(command, STARTS) and run.status is not RunStatus.RUNNING:
            return "refused", Refusal.RUN_PARKED
        if isinstance(command, c.AddTasks):
            return self._add(run, command)
        if isinstance(command, c.SignalRun):
            run.signals.add(command.signal)
            advance(run)
            return "applied", ""
        return _on_task(run, command)

    def _submit(self, command: c.SubmitRun) -> Answer:
        known = self.runs.get(command.run)
        if known:
            same = known.content == command.digest
            return Answer("repeated") if same else Answer("refused", Refusal.RUN_EXISTS)
        run = Run(
            id=command.run,
            content=command.digest,
            header=json.loads(command.header),
            now=command.now,
            created_at=command.now,
            progress_at=command.now,
        )
        self.runs[run.id] = run
        _load(run, command.items, command.more)
        return Answer("applied")

    def _add(self, run: Run, command: c.AddTasks) -> tuple[str, str]:
        if not run.loading or command.cursor != run.items:
            return "refused", Refusal.STALE_VERSION
        _load(run, command.items, command.more)
        return "applied", ""

    def _dispatch(self, command: c.Dispatch) -> Answer:
        """Exact for one open run, or when `limit` is no constraint: round robin is tested elsewhere."""
        room = command.limit
        for run in self.runs.values():
            if run.status is RunStatus.RUNNING and not run.loading:
                run.now = max(run.now, command.now)
                room -= attempts.dispatch(run, room)
        return Answer("applied")

    def view(self, run_id: str) -> dict[str, Any]:
        """The public state of a run, in the words of the machine's reads."""
        run = self.runs[run_id]
        stop = run.stop
        return {
            "status": str(run.status),
            "state_version": run.version,
            "reports": run.reports,
            "locked_reason": run.locked_reason,
            "stop_reason": stop.reason if stop and run.stopped else "",
            "stop_rule": stop.rule if stop and run.stopped else "",
            "also_true": list(stop.also_true) if stop and run.stopped else [],
            **{f"used_{name}": run.used[name] for name in AMOUNTS},
            **{f"reserved_{name}": run.reserved[name] for name in AMOUNTS},
            **{f"overrun_{name}": int(run.overrun[name]) for name in ("tokens", "cost")},
            "tasks": {task.id: _task_view(run, task) for task in run.tasks.values()},
            "verdicts": dict(run.verdicts),
            "cancellations": {place: record.outcome for place, record in run.cancellations.items()},
            "actions": {place: (a.state, a.attempt, a.receipt) for place, a in run.actions.items()},
            "reviews": {
                name: (r.task, r.kind, r.version, r.decision) for name, r in run.opened_reviews.items()
            },
            "would_change": run.would_change,
        }

    def roots(self, run_id: str, task_id: str) -> set[str]:
        """All tasks that may rightly be named as the root cause of a blocked task."""
        run = self.runs[run_id]
        gone = lost(run)
        return gone.get(task_id) or held_by_review(run, gone).get(task_id, set())

    def critical_roots(self, run_id: str) -> set[str]:
        """All tasks that may rightly be named as the cause of a critical failure."""
        run = self.runs[run_id]
        bad = (S.FAILED, S.DENIED)
        gone = lost(run)
        named = {t.id for t in run.tasks.values() if t.required}
        causes = named.union(*(gone.get(name, set()) for name in named))
        return {name for name in causes if run.tasks[name].state in bad}

    def due(self, run_id: str, now: int) -> set[str]:
        """Tasks of an open run for which a timer must fire at `now`."""
        run = self.runs[run_id]
        if run.stopped or run.loading:
            return set()
        return {t.id for t in run.tasks.values() if any(at <= now for at, _, _ in attempts.timers(t))}

    def backoffs(self, run_id: str) -> Iterator[Task]:
        """Tasks waiting for a backoff whose exact end is not known yet: the machine draws it from its seed."""
        for task in self.runs[run_id].tasks.values():
            if task.due and task.due[0] != task.due[1] and task.state is S.PENDING:
                yield task


def _facts(text: str) -> list[str]:
    return json.loads(text) if text else []


def _load(run: Run, items: str, more: int) -> None:
    add_items(run, items)
    run.loading = bool(more)
    advance(run)


def _on_task(run: Run, command: Any) -> tuple[str, str]:
    """Commands on one task of an open run."""
    task = run.tasks.get(command.task)
    if isinstance(command, c.FireTimer) and not command.task:
        return attempts.fire_timer(run, None, command)
    if task is None:
        return "refused", Refusal.NOT_DUE if isinstance(command, c.FireTimer) else Refusal.UNKNOWN_TASK
    if hasattr(command, "role") and command.role != task.role:
        return "refused", Refusal.WRONG_ROLE
    if isinstance(command, c.DispatchTask):
        return attempts.dispatch_task(run, task)
    if isinstance(command, c.CollectTask):
        return attempts.collect_task(run, task, command, _facts(command.facts))
    said: tuple[str, str] = ON_ATTEMPT[type(command)](run, task, command)
    return said


def _task_view(run: Run, task: Task) -> dict[str, Any]:
    return {
        "state": str(run.effective(task)),
        "attempt": task.attempt,
        "granted": task.granted,
        "digest": task.digest,
        "result_trust": task.trust,
        "tainted": bool(task.tainted_by),
        "outcome": task.outcome,
    }
