"""Owns the shapes of requests and answers, from which the OpenAPI document is made.

Requests are strict: an unknown member, or a number in quotes, is a fault. Must not hold rules of the state machine.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from coordinator.wire.channels import ROLE_PATTERN
from coordinator.wire.names import RunStatus, TaskState

RunId = Annotated[str, Field(min_length=1, max_length=128, pattern=f"^{ROLE_PATTERN}$")]
TaskId = Annotated[str, Field(min_length=1, max_length=256)]
Reason = Annotated[str, Field(max_length=2000)]
GivenReason = Annotated[str, Field(min_length=1, max_length=2000)]
Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]


def _whole(value: Any) -> Any:
    """`5.0` is an integer to JSON Schema, though not to a strict reader."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[int, Field(ge=0, le=2**53 - 1), BeforeValidator(_whole)]


class Body(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _with_example(example: dict[str, Any]) -> ConfigDict:
    return ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        populate_by_name=True,
        json_schema_extra={"examples": [example]},
    )


class SubmitBody(Body):
    """A Team with its inputs. run: an id of the caller's choice, instead of an Idempotency-Key."""

    model_config = _with_example(
        {"team": {"team": "refund", "tasks": {"order": {"external": True}}}, "inputs": {}}
    )

    team: Annotated[dict[str, JsonValue], Field(description="The Team file, as JSON.")]
    inputs: dict[str, JsonValue] = {}
    run: RunId | None = None


class CancelBody(Body):
    """Why a run or a task is canceled."""

    model_config = _with_example({"reason": "not needed any more"})

    reason: Reason = ""


LimitName = Literal[
    "step_budget", "max_steps", "deadline", "no_progress", "no_progress_steps", "tokens", "cost"
]


class ResumeBody(Body):
    """Limits to raise: a value, or text with a sign that adds (`+10`, `+5m`); money as exact decimal text."""

    model_config = _with_example({"raise": {"step_budget": "+10", "cost": "7.50", "deadline": "20m"}})
    raises: Annotated[
        dict[LimitName, Count | Annotated[str, Field(max_length=64)]], Field(alias="raise")
    ] = {}


class AnswerBody(Body):
    """The answer to a task's question. question: its digest; without one, the question that is open."""

    model_config = _with_example({"answer": "the old account"})

    answer: JsonValue
    question: Digest | None = None


class SignalBody(Body):
    """A named signal."""

    model_config = _with_example({"signal": "go"})

    signal: Annotated[str, Field(min_length=1, max_length=128)]


class FailureBody(Body):
    """What went wrong outside."""

    message: Annotated[str, Field(max_length=10_000)]
    type: Annotated[str, Field(max_length=200)] = "ExternalFailure"


class ReportBody(Body):
    """What an outside system says of an external task."""

    model_config = _with_example({"state": "completed", "payload": {"amount": 120}})

    state: Literal["working", "completed", "failed"]
    payload: Annotated[JsonValue, Field(description="The result of a completed task.")] = None
    error: FailureBody | None = None
    key: Annotated[str, Field(max_length=200, description="Idempotency key of the result.")] = ""
    tokens: Count = 0
    cost: Annotated[str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,6})?$")] = "0"


class DecisionBody(Body):
    """A decision about a review. version: the review's `state_version` that it was made on."""

    model_config = _with_example({"decision": "reject", "version": 7, "reason": "both are wrong"})

    decision: Literal["accept", "supply", "reject", "rerun"]
    version: Count
    reason: GivenReason
    digest: Annotated[Digest | None, Field(description="What is accepted.")] = None
    payload: Annotated[JsonValue, Field(description="The result that is supplied.")] = None
    tainted: Literal["keep", "rerun"] = "keep"


class ActionBody(Body):
    """How an action ended of which nobody knew."""

    model_config = _with_example(
        {"task": "pay", "key": "payment", "state": "failed", "reason": "the bank says no"}
    )

    task: TaskId
    key: Annotated[str, Field(min_length=1, max_length=256)]
    state: Literal["confirmed", "failed"]
    reason: GivenReason
    receipt: JsonValue = None


class Open(BaseModel):
    """An answer; a newer server may say more."""

    model_config = ConfigDict(extra="allow")


class Budget(Open):
    """limit: null for none. cost in exact decimal text."""

    limit: int | str | None
    used: int | str
    reserved: int | str
    overrun: bool


class RunLine(Open):
    """A run in a list. Times in ms."""

    run: str
    team: str
    status: RunStatus
    created_at: int | None
    state_version: int


class Run(RunLine):
    """A run in short."""

    ended_at: int | None
    stop_reason: str | None
    locked_reason: str | None
    tasks: dict[TaskState, int]
    steps_used: int
    budgets: dict[str, Budget]
    reviews_open: int


class RunPage(Open):
    """A page of runs. next_offset: null at the end."""

    runs: list[RunLine]
    next_offset: int | None


class Task(Open):
    """A task of a run."""

    id: str
    state: TaskState
    required: bool
    role: str | None
    external: bool
    attempt: int
    max_attempts: int
    result_digest: str | None
    result_trust: str | None
    tainted: bool
    blocked_root: str | None
    reason: str | None


class TaskPage(Open):
    """A page of tasks in file order."""

    tasks: list[Task]
    next_offset: int | None


class Event(Open):
    """An event of a run's history (SPEC 10)."""

    seq: int
    at: int | None
    kind: str
    task_id: str
    attempt: int | None
    state_version: int | None
    from_: Annotated[str, Field(alias="from")]
    to: str
    reason: str


class EventPage(Open):
    """A page of events, oldest first. next_after: what to ask for next."""

    events: list[Event]
    next_after: int


class Outcome(Open):
    """What became of a request: word is the verdict, or empty; run_status the run's after it."""

    run: str
    status: Literal["applied", "repeated", "refused"]
    word: str
    run_status: str
    detail: str


class Submitted(Open):
    """The run; repeated: it was there already."""

    run: str
    status: str
    repeated: bool


class Review(Open):
    """Something that a person must decide (SPEC 6)."""

    run: str
    id: str
    task: str
    kind: str
    status: str
    state_version: int
    opened_at: int


class ReviewPage(Open):
    """A page of open reviews of all runs, oldest first."""

    reviews: list[Review]
    next_offset: int | None


class Reviews(Open):
    """All reviews of a run."""

    reviews: list[Review]


class Evidence(Open):
    """One arrival under the key in question."""

    arrival: int | None
    digest: str | None
    payload: Any
    worker: str | None
    at: int | None


class ReviewDetail(Review):
    """A review with its evidence."""

    evidence_list: list[Evidence]


class Action(Open):
    """A side effect: details and receipt are what was said of it, null when nothing was."""

    task: str
    key: str
    state: str
    attempt: int
    at: int
    worker: str
    details: Any
    receipt: Any


class Actions(Open):
    """All actions of a run."""

    actions: list[Action]


class LateResult(Open):
    """A report that came too late to count (SPEC 6)."""

    task: str
    source: str | None
    attempt: int | None
    at: int | None
    digest: str | None
    payload: Any
    verdict: str | None
    would_change: bool


class LatePage(Open):
    """A page of the late ledger."""

    late: list[LateResult]
    next_offset: int | None


class Health(Open):
    """redis: it answers. leader: somebody has led."""

    redis: bool
    leader: bool
