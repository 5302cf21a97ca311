"""Owns THE TABLE: which cause moves a task from which state to which, and the event that this leaves (SPEC 3).

Must not decide when a cause applies: that is Lua (lua/rules, lua/commands). `python -m coordinator.machine.render`
writes this table to `lua/rules/table.lua` and into README.md; a move that is not a row here is refused by Task.move.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.wire.names import TaskState as S


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: `cause` moves a task from any of `sources` to `target`, leaving `event`."""

    cause: str
    sources: tuple[S, ...]
    target: S
    event: str


TABLE: tuple[Transition, ...] = (
    # Before anything starts.
    Transition("dispatch_task", (S.PENDING,), S.QUEUED, "task_queued"),
    Transition("deny", (S.PENDING,), S.DENIED, "task_denied"),
    Transition("skip", (S.PENDING,), S.SKIPPED, "task_skipped"),
    Transition("reuse", (S.PENDING,), S.SUCCEEDED, "task_reused"),
    Transition("block", (S.PENDING, S.QUEUED), S.BLOCKED, "task_blocked"),
    # An attempt begins, or never does.
    Transition("grant_lease", (S.QUEUED,), S.RUNNING, "attempt_started"),
    Transition("never_start", (S.QUEUED, S.RUNNING), S.PENDING, "attempt_never_started"),
    Transition("never_start", (S.QUEUED, S.RUNNING), S.FAILED, "task_failed"),
    Transition("queue_timeout", (S.QUEUED,), S.FAILED, "task_failed"),
    # An attempt ends.
    Transition("end_attempt", (S.RUNNING,), S.SUCCEEDED, "task_succeeded"),
    Transition("end_attempt", (S.RUNNING,), S.FAILED, "task_failed"),
    Transition("end_attempt", (S.RUNNING,), S.DENIED, "task_denied"),
    Transition("end_attempt", (S.RUNNING,), S.AWAITING, "task_awaiting"),
    Transition("end_attempt", (S.RUNNING,), S.PENDING, "attempt_failed"),
    Transition("expire_lease", (S.RUNNING,), S.PENDING, "attempt_lost"),
    Transition("expire_lease", (S.RUNNING,), S.FAILED, "task_failed"),
    Transition("time_out", (S.RUNNING,), S.PENDING, "attempt_timed_out"),
    Transition("time_out", (S.RUNNING,), S.FAILED, "task_failed"),
    # An outside system reports.
    Transition("report_external", (S.QUEUED,), S.RUNNING, "attempt_started"),
    Transition("report_external", (S.RUNNING,), S.SUCCEEDED, "task_succeeded"),
    Transition("report_external", (S.RUNNING,), S.FAILED, "task_failed"),
    # A parent and its children (for_each).
    Transition("spawn_tasks", (S.QUEUED,), S.RUNNING, "task_spawning"),
    Transition("spawn_tasks", (S.RUNNING,), S.AWAITING, "task_awaiting"),
    Transition("children_ended", (S.AWAITING,), S.PENDING, "task_resumed"),
    Transition("collect_task", (S.QUEUED,), S.RUNNING, "task_collecting"),
    Transition("collect_task", (S.RUNNING,), S.SUCCEEDED, "task_succeeded"),
    Transition("collect_task", (S.RUNNING,), S.FAILED, "task_failed"),
    Transition("cancel", (S.PENDING, S.QUEUED, S.RUNNING, S.AWAITING), S.CANCELED, "task_canceled"),
    Transition("answer_task", (S.AWAITING,), S.PENDING, "task_resumed"),
    # Two answers to one question.
    Transition("conflict", (S.RUNNING, S.SUCCEEDED), S.NEEDS_REVIEW, "task_conflicted"),
    # An action of which nobody knows whether it was done.
    Transition("doubt_action", (S.RUNNING,), S.NEEDS_REVIEW, "task_in_doubt"),
    # A person decided.
    Transition("accept_result", (S.NEEDS_REVIEW,), S.SUCCEEDED, "review_accepted"),
    Transition("reject_result", (S.NEEDS_REVIEW,), S.FAILED, "review_rejected"),
    Transition("rerun", (S.NEEDS_REVIEW, S.SUCCEEDED, S.FAILED), S.PENDING, "task_rerun"),
    Transition("unblock", (S.BLOCKED,), S.PENDING, "task_unblocked"),
)
