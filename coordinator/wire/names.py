"""Owns every closed set of words that crosses a process or is stored: states, statuses, classes, verdicts.

Must not decide anything: which state may follow which stands in `machine/transitions.py`. The words are SPEC 1-6;
they are the same in JSON, on the command line, in metrics and in Lua.
"""

from __future__ import annotations

from enum import StrEnum


class TaskState(StrEnum):
    """States of a Task (SPEC 1)."""

    PENDING = "pending"
    """Entered at creation, by a retry, an answer or a decision; left by dispatch, denial, skip or a block."""
    QUEUED = "queued"
    """Entered by dispatch, which reserves budget; left when a lease is granted or the attempt never started."""
    RUNNING = "running"
    """Entered by a granted lease (external: `working`); left by an end, a loss or a timeout."""
    AWAITING = "awaiting"
    """Entered when a task asks for input or waits for its children; left when they are there."""
    SUCCEEDED = "succeeded"
    """Entered by an accepted result; left only by a conflict or a reviewer's rerun."""
    FAILED = "failed"
    """Entered by a permanent failure, exhausted attempts or a queue timeout; left only by a reviewer's rerun."""
    DENIED = "denied"
    """Entered when the owner lacks the capability or the handler was refused permission; never left."""
    BLOCKED = "blocked"
    """Entered when a requirement can no longer be met; left when what blocked it was resolved."""
    SKIPPED = "skipped"
    """Entered when the `when` rule is false at readiness; never left."""
    CANCELED = "canceled"
    """Entered by an operator's cancel, a stop or the end of the parent; never left."""
    NEEDS_REVIEW = "needs_review"
    """Entered by a conflict; left by a person's decision."""


ENDED = frozenset(
    {
        TaskState.SUCCEEDED,
        TaskState.FAILED,
        TaskState.DENIED,
        TaskState.BLOCKED,
        TaskState.SKIPPED,
        TaskState.CANCELED,
    }
)
"""States in which a task has ended (SPEC 1)."""

UNSTARTED = frozenset({TaskState.PENDING, TaskState.QUEUED})
"""States of a task that no attempt is working on (SPEC 1)."""


class RunStatus(StrEnum):
    """Statuses of a Run (SPEC 1)."""

    RUNNING = "running"
    """Entered by submit or resume; left by `Stop.judge` or an operator."""
    PAUSED = "paused"
    """Parked: entered by a limit with `on_limit: pause`, by an awaiting task with nothing else to do, or by a rule."""
    NEEDS_REVIEW = "needs_review"
    """Parked: entered when nothing is left to do but a review is open."""
    COMPLETED = "completed"
    """Final: every required task succeeded."""
    CRITICAL_FAILURE = "critical_failure"
    """Final: a required task failed, was denied, or can never run."""
    FAILED = "failed"
    """Final: the work that could be done was drained and a required task is missing, or a rule said so."""
    DEADLOCK = "deadlock"
    """Final: nothing is in flight, nothing is ready, and no other reason holds."""
    STEP_LIMIT = "step_limit"
    """Final: `max_steps` accepted reports."""
    BUDGET_EXHAUSTED = "budget_exhausted"
    """Final: work is ready, nothing is in flight, and none of it fits what is left."""
    DEADLINE_EXCEEDED = "deadline_exceeded"
    """Final: `deadline` has passed."""
    NO_PROGRESS = "no_progress"
    """Final: no task ended and nothing new was made for too long."""
    CANCELED = "canceled"
    """Final: an operator canceled the run."""
    STOP_RULE = "stop_rule"
    """Final: a rule of `stop_when` with `ends: stopped`."""


PARKED = frozenset({RunStatus.PAUSED, RunStatus.NEEDS_REVIEW})
"""Statuses that a person can move (SPEC 1)."""

FINAL = frozenset(RunStatus) - PARKED - {RunStatus.RUNNING}
"""Statuses that never change again (SPEC 1)."""


class FailureClass(StrEnum):
    """What kind of failure an attempt reports; the class alone decides what follows (SPEC 3)."""

    TRANSIENT = "transient"
    """Retried within max_attempts and budget; also timeout, lost lease and lost worker."""
    MISSING_INPUT = "missing_input"
    """The task waits (`awaiting`) with its question."""
    PERMISSION = "permission"
    """The task is `denied`: never retried, never rerouted."""
    PERMANENT = "permanent"
    """The task fails; every unknown class is read as this one."""
    INVALID_OUTPUT = "invalid_output"
    """The result broke its contract; the task fails, or is retried with `retry_invalid`."""


class AttemptOutcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    """Its result was accepted."""
    FAILED = "failed"
    """The handler failed, for good or for now."""
    DENIED = "denied"
    """The handler was refused permission."""
    AWAITING = "awaiting"
    """The handler asked for input or waits for children; does not count against max_attempts."""
    LOST = "lost"
    """The lease expired."""
    TIMED_OUT = "timed_out"
    """`timeout` or `progress_timeout` passed."""
    NEVER_STARTED = "never_started"
    """Handed back, or its job vanished, before the handler began; costs nothing."""
    CANCELED = "canceled"
    """Ended by a cancel or a stop."""
    CONFLICTED = "conflicted"
    """Its result contradicts another one under the same key."""


class ReplyStatus(StrEnum):
    """What became of a command."""

    APPLIED = "applied"
    """It took effect, together with its events."""
    REFUSED = "refused"
    """It took no effect; `word` says why; the refusal is recorded."""
    REPEATED = "repeated"
    """Its inbox entry, or what it was to do, is gone: an earlier call did it."""
    WAITING = "waiting"
    """The run has an open batch: the inbox entry is left where it is and comes again."""


class Verdict(StrEnum):
    """What was said of a task report (SPEC 6)."""

    APPLIED = "applied"
    """(6) it took effect."""
    DUPLICATE = "duplicate_result_ignored"
    """(1) same key, same digest."""
    CONFLICT = "result_conflict_detected"
    """(1) same key, other digest."""
    LATE = "late_ignored"
    """(2) the run has stopped, or (4) the lease is stale."""
    REFUSED = "refused"
    """(3) unknown task or state, or (5) the task has ended."""


class Refusal(StrEnum):
    """Why a command was refused (DESIGN 2)."""

    OLD_EPOCH = "old_epoch"
    """The sender no longer leads."""
    UNKNOWN_RUN = "unknown_run"
    """No such run."""
    UNKNOWN_TASK = "unknown_task"
    """No such task in the run."""
    UNKNOWN_STATE = "unknown_state"
    """No such task-report state."""
    WRONG_STATE = "wrong_state"
    """The task is not in a state from which this may happen."""
    TASK_ENDED = "task_ended"
    """The task has ended."""
    STALE_LEASE = "stale_lease"
    """The lease is not the live one of the task."""
    STALE_ATTEMPT = "stale_attempt"
    """The attempt is not the current one of the task."""
    STALE_VERSION = "stale_version"
    """The run or batch moved on since this was decided."""
    RUN_STOPPED = "run_stopped"
    """The run has a final status."""
    RUN_PARKED = "run_parked"
    """The run is parked: nothing new starts."""
    RUN_EXISTS = "run_exists"
    """The id belongs to a run with other content."""
    WRONG_ROLE = "wrong_role"
    """The inbox belongs to another role than the task's owner."""
    NOT_EXTERNAL = "not_external"
    """The task is done by workers; outside systems cannot report on it."""
    NOT_DUE = "not_due"
    """The timer was moved or is gone."""
    NOT_READY = "not_ready"
    """The task cannot be dispatched now."""
    OVER_BUDGET = "over_budget"
    """What was used so far cannot be covered."""
    UNKNOWN_REVIEW = "unknown_review"
    """No such review."""
    ALREADY_DECIDED = "already_decided"
    """Somebody else decided first."""
    UNKNOWN_DIGEST = "unknown_digest"
    """Nobody sent a result of that digest."""
    SAME_PERSON = "same_person"
    """Four eyes are needed, and this is the same person again."""
    UNKNOWN_ACTION = "unknown_action"
    """There is no such action that could end so."""
    ALREADY_ANSWERED = "already_answered"
    """The question was answered otherwise."""
    NOT_ALLOWED = "not_allowed"
    """The Team does not let this role do that."""
    SPAWN_LIMIT = "spawn_limit"
    """Too many children, or too deep."""
    NOT_PARKED = "not_parked"
    """The run is not parked."""
    MALFORMED = "malformed"
    """The inbox entry cannot be read."""


class ReportState(StrEnum):
    """What an outside system may say of an external task (SPEC 9, report-task)."""

    WORKING = "working"
    """It is being worked on."""
    COMPLETED = "completed"
    """It succeeded; the payload is its result."""
    FAILED = "failed"
    """It failed, permanently."""


class Limit(StrEnum):
    """Names of the limits of a run, as in the Team file."""

    STEP_BUDGET = "step_budget"
    """Attempts started."""
    MAX_STEPS = "max_steps"
    """Accepted task reports."""
    TOKENS = "tokens"
    """Tokens used and reserved."""
    COST = "cost"
    """Money used and reserved."""
    DEADLINE = "deadline"
    """Wall time since the submit, parked time not counted."""
    NO_PROGRESS = "no_progress"
    """Time or reports without progress."""
