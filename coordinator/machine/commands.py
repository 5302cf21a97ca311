"""Owns the commands that change a run: one dataclass per Lua file of the same name in `lua/commands/`.

Must not decide anything: a command is an intention, the Lua function judges it. Field order is the order on the
wire; the Lua file binds them by name (a test holds both lists together). Times are milliseconds since the epoch,
money is integer micro-units, documents are JSON text that Lua never opens unless the field says `plan`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

GATE_FIELDS = ("now", "inbox", "entry", "reply_to", "request")
"""Fields that every command has and the gate (lua/prelude.lua) consumes; they are not logged with the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What every command carries.

    now: the coordinator's clock. inbox, entry: the inbox entry that this command applies, deleted in the same call.
    reply_to, request: list that gets the answer, and the asker's correlation id.
    """

    now: int
    inbox: str = ""
    entry: str = ""
    reply_to: str = ""
    request: str = ""

    @classmethod
    def name(cls) -> str:
        """The command's name: that of its Lua file and function."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def own_fields(cls) -> tuple[str, ...]:
        """Names of the command's own fields, in wire order."""
        return tuple(f.name for f in fields(cls) if f.name not in GATE_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRun(Command):
    """Creates a run with (the first part of) its tasks. Same id and digest: `repeated`; other digest: `run_exists`."""

    run: str
    digest: str
    library: str
    header: str
    """Plan: JSON object of `team.compile.Plan.header`."""
    items: str
    """Plan: JSON array of tasks and edges."""
    more: int
    """1 when AddTasks follows."""
    team: str
    """Document: the checked Team file, as JSON."""
    inputs: str
    """Document: the run's inputs, defaults filled in, as a JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddTasks(Command):
    """Adds the next part of a large run; `cursor` is the number of items already added (else `stale_version`)."""

    run: str
    cursor: int
    items: str
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueBatch(Command):
    """Does the next bounded piece of a run's open batch (opening, blocking, tainting, canceling)."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch(Command):
    """Dispatches up to `limit` ready tasks over all runs: priority, then round robin, then file order (SPEC 3)."""

    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchTask(Command):
    """What Dispatch does for one task; logged with the run, so that `verify` can apply it alone."""

    run: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLease(Command):
    """A worker asks to begin a queued attempt; the grant is pushed to `reply_to` in the same call."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    """The unguessable token, made by the coordinator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewLease(Command):
    """The worker's process lives; `progress` 1 also resets the progress timeout."""

    run: str
    task: str
    attempt: int
    role: str
    lease: str
    progress: int
    details: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAttempt(Command):
    """A worker says how an attempt ended. The verdict (applied, duplicate, conflict, late, refused) is SPEC 6."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    outcome: str
    """`succeeded`, or a FailureClass."""
    payload: str
    """Document: the result (canonical or not), or the question of a `missing_input`."""
    digest: str
    facts: str
    """Plan: JSON array of the ids of the rule facts that hold for this payload."""
    error: str
    """Document: {class, type, message, where, traceback}, or empty."""
    retry_after_ms: int
    tokens: int
    cost_micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBack(Command):
    """A worker returns an attempt that its handler did not begin: `never_started`, at no cost (SPEC 3)."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    """Empty when none was granted yet."""
    reason: str
    """`no_worker` (no such handler here), `draining`, `refused_start`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseQueued(Command):
    """A queued attempt's job is in no queue and was not asked for: `never_started` (SPEC 3)."""

    run: str
    task: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportExternal(Command):
    """An outside system reports on an external task (SPEC 3, 6)."""

    run: str
    task: str
    state: str
    """ReportState."""
    key: str
    """Idempotency key, empty when the reporter gave none."""
    payload: str
    digest: str
    facts: str
    error: str
    source: str
    """The authenticated name of the reporter."""
    tokens: int
    cost_micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UseBudget(Command):
    """A running attempt says what it used so far (totals); refused `over_budget` when that cannot be covered."""

    run: str
    task: str
    attempt: int
    role: str
    lease: str
    tokens: int
    cost_micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResults(Command):
    """Pushes one page of the requirements' results to `reply_to`, for grants too large to carry them inline."""

    run: str
    task: str
    attempt: int
    role: str
    lease: str
    page: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnTasks(Command):
    """Adds children below a parent in bounded parts; the parent waits for them (SPEC 2 for_each, 8)."""

    run: str
    task: str
    cursor: int
    """Number of children already made."""
    children: str
    """Plan: JSON array of child tasks, as in `items`."""
    more: int
    """1 when another part follows; 0 closes the list and parks the parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectTask(Command):
    """Ends a for_each parent with the list of its children's results, or with a failure."""

    run: str
    task: str
    outcome: str
    """`succeeded`, or a FailureClass."""
    payload: str
    digest: str
    facts: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FireTimer(Command):
    """Something of the task (or, with an empty task, of the run) may be due; Lua judges what, by `now`."""

    run: str
    task: str
    led_since: int = 0
    """When the present leader took the lead: each lease has one full heartbeat from then on (SPEC 7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun(Command):
    """An operator cancels a run. `ask` makes it idempotent: the same one again is `repeated` (SPEC 7)."""

    run: str
    ask: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTask(Command):
    """An operator cancels one task; the rest of the run goes on (SPEC 7)."""

    run: str
    task: str
    ask: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireCancel(Command):
    """The grace of an attempt that was told to end has passed: `unconfirmed` (SPEC 7)."""

    run: str
    task: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAction(Command):
    """A running attempt is about to perform a side effect (SPEC 7). The reply says whether it is to do it."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    key: str
    payload: str
    """Document: what the action is about, for a person; may be empty, and then so is the digest."""
    digest: str
    again: int
    """1: the handler says that an unknown action may be done again (it is repeatable, or was checked)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAction(Command):
    """The attempt that started a side effect says how it ended: `confirmed` with a receipt, or `failed` (SPEC 7)."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    key: str
    state: str
    payload: str
    """Document: the receipt, or the error."""
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtAction(Command):
    """The handler cannot tell whether an unknown action was done: a review of kind `unknown_action` opens (SPEC 7)."""

    run: str
    task: str
    attempt: int
    role: str
    worker: str
    lease: str
    key: str
    tokens: int
    cost_micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideAction(Command):
    """A person says how a started or unknown action ended: `confirmed` (with a receipt) or `failed` (SPEC 7, 9)."""

    run: str
    task: str
    key: str
    state: str
    payload: str
    digest: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideReview(Command):
    """A person closes a review; see the Lua file for what each decision does (SPEC 6)."""

    run: str
    review: str
    decision: str
    """accept, supply, reject, rerun."""
    payload: str
    digest: str
    facts: str
    version: int
    """The review's state_version that the decision was made on."""
    tainted: str
    """keep, or rerun."""
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTask(Command):
    """A person answers the question of a task that waits for input (SPEC 3)."""

    run: str
    task: str
    question: str
    """Digest of the question that is answered; empty for the one that is open."""
    payload: str
    digest: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRun(Command):
    """An operator lets a parked run go on (SPEC 5)."""

    run: str
    raises: str
    """Plan: JSON array of [run field of the limit, value, 1 if it is added], for example ["limit_tokens", 500, 1]."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalRun(Command):
    """An operator's named signal, a fact for rules (SPEC 4)."""

    run: str
    signal: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseEntry(Command):
    """An inbox entry that cannot be read, or names no run, goes to the bounded installation ledger (SPEC 6)."""

    reason: str
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResignLead(Command):
    """The leader ends and hands over at once (SPEC 7)."""

    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeLead(Command):
    """Takes or renews the leader lease, judged by Redis' own clock (SPEC 7). Gives the epoch."""

    holder: str
    ttl_ms: int
