"""Owns the shape of a Team: every key of SPEC 2 with its type, its default and its bounds (pydantic, strict).

Amounts are whole numbers here: spans in ms, money in micro-units. Must not look from one part of a Team to another
(`checks.py` does) and must not read files (`loader.py` does). A Team that was loaded is not to be changed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from coordinator.team.builder import Number
from coordinator.team.rules.amounts import EXPECTED_MONEY, EXPECTED_SPAN, MAX_NUMBER, money_micros, span_ms
from coordinator.team.rules.facts import Fact, Facts, number_facts
from coordinator.team.rules.syntax import Rule
from coordinator.wire.names import Limit
from coordinator.wire.outcome_plan import OutcomePlan

MAX_OUTPUT_BYTES = 16 * 2**20
MAX_CHILDREN = 100_000
MAX_DEPTH = 100
DEFAULT_BACKOFF_MS = 1000
DEFAULT_BACKOFF_MAX_MS = 300_000
ALL_CHILDREN = -1

REFERS_TO = "x-refers-to"
"""Stands for `$ref` while `schema.py` makes the Team's JSON Schema: pydantic knows no definitions but its own."""

_SPAN_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$"},
    ]
}
_MONEY_SCHEMA = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,6}0*)?$"}]
}


def _refuse(expected: str) -> PydanticCustomError:
    return PydanticCustomError("crewline", "expected {expected}", {"expected": expected})


def _read_span(value: Any) -> int:
    span = span_ms(value)
    if span is None:
        raise _refuse(EXPECTED_SPAN)
    return span


def _read_positive_span(value: Any) -> int:
    span = _read_span(value)
    if span == 0:
        raise _refuse(f"{EXPECTED_SPAN}, above 0")
    return span


def _read_money(value: Any) -> int:
    micros = money_micros(value)
    if micros is None:
        long = isinstance(value, Number) and len(value.text) > 15
        raise _refuse(EXPECTED_MONEY + (", in quotes when it is this long" if long else ""))
    return micros


Span = Annotated[int, BeforeValidator(_read_span), WithJsonSchema(_SPAN_SCHEMA)]
PositiveSpan = Annotated[int, BeforeValidator(_read_positive_span), WithJsonSchema(_SPAN_SCHEMA)]
Money = Annotated[int, BeforeValidator(_read_money), WithJsonSchema(_MONEY_SCHEMA)]
Count = Annotated[int, Field(ge=1, le=MAX_NUMBER)]
Amount = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
AnyRule = Annotated[
    Rule | None, SkipValidation, WithJsonSchema({"anyOf": [{REFERS_TO: "Rule"}, {"type": "null"}]})
]
Plan = Annotated[OutcomePlan, SkipValidation, WithJsonSchema({REFERS_TO: "OutcomePlan"})]
JsonSchema = Annotated[Any, WithJsonSchema({"type": ["object", "boolean"]})]
MaybeJsonSchema = Annotated[Any, WithJsonSchema({"type": ["object", "boolean", "null"]})]


def _extensions(schema: dict[str, Any]) -> None:
    schema["patternProperties"] = {"^x-": {}}


class Part(BaseModel):
    """What every object of the format has in common: no unknown keys but `x-...`, which are left out."""

    model_config = ConfigDict(
        strict=True, extra="forbid", use_attribute_docstrings=True, json_schema_extra=_extensions
    )
    LATER: ClassVar[frozenset[str]] = frozenset()
    """Keys that are known, and refused because nothing enforces them yet."""

    @model_validator(mode="before")
    @classmethod
    def _drop_extensions(cls, data: Any) -> Any:
        if isinstance(data, dict) and any(str(key).startswith("x-") for key in data):
            return {key: value for key, value in data.items() if not str(key).startswith("x-")}
        return data

    @classmethod
    def keys(cls) -> list[str]:
        """The keys as they stand in a file."""
        return [field.alias or name for name, field in cls.model_fields.items()]


class Role(Part):
    """Who may do what."""

    LATER = frozenset({"notify"})
    capabilities: list[str] = []
    """What the role may do."""
    may_spawn: list[str] | None = None
    """Roles that its handlers may make children for; itself alone, when not given."""


class AnyOf(Part):
    """`any_of`: count of the tasks must have succeeded."""

    count: Count
    """How many must have succeeded."""
    tasks: Annotated[list[str], Field(min_length=1)]
    """Of which tasks."""


def _read_min_success(value: Any) -> Any:
    if isinstance(value, str) and value == "all":
        return ALL_CHILDREN
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _refuse("all, or a whole number of at least 0")
    return value


class ForEach(Part):
    """`for_each`: one child per element of a list."""

    source: Annotated[str, Field(alias="from")]
    """The list: inputs.NAME or tasks.TASK.result."""
    at: str = ""
    """JSON pointer to the list below the source."""
    max: Annotated[int, Field(ge=1, le=MAX_CHILDREN)] = 1000
    """Most elements; more fail the task."""
    max_parallel: Annotated[int, Field(ge=1, le=MAX_CHILDREN)] = 20
    """Most children at work at once."""
    min_success: Annotated[
        int,
        BeforeValidator(_read_min_success),
        Field(ge=ALL_CHILDREN, le=MAX_CHILDREN),
        WithJsonSchema({"anyOf": [{"const": "all"}, {"type": "integer", "minimum": 0}]}),
    ] = ALL_CHILDREN
    """How many children must succeed. In code ALL_CHILDREN (-1) is all."""


class Reserve(Part):
    """`reserve`: what an attempt may use at most, as far as is known (SPEC 5)."""

    tokens: Amount | None = None
    """Tokens that an attempt may use."""
    cost: Money | None = None
    """Money that an attempt may use: an exact decimal."""


class Backoff(Part):
    """`backoff`: the first wait before a retry and the bound to which it doubles, in ms."""

    first: Span = DEFAULT_BACKOFF_MS
    """The first wait."""
    max: Span = DEFAULT_BACKOFF_MAX_MS
    """The longest wait."""


def _read_backoff(value: Any) -> Any:
    if isinstance(value, (dict, Backoff)):
        return value
    first = _read_span(value)
    return Backoff.model_construct(first=first, max=max(first, DEFAULT_BACKOFF_MAX_MS))


# Shared by all tasks that do not give the key: pydantic would copy a default for each of 100,000 tasks.
_DEFAULT_BACKOFF = Backoff()
_NO_RESERVE = Reserve()
_DEFAULT_PLAN = OutcomePlan()


class Task(Part):
    """One node of the graph. owner is empty for an external task without one; capability is set by the loader."""

    LATER = frozenset({"notify", "four_eyes", "cancel_grace", "may_spawn", "actions", "secrets"})
    owner: str | None = None
    """The role that does it; the only one that has the capability, when not given."""
    capability: str | None = None
    """The right by which it is done; the task's name, when not given."""
    requires: list[str] = []
    """All of these must have succeeded."""
    after: list[str] = []
    """All of these must have ended, whichever way."""
    any_of: AnyOf | None = None
    """So many of these must have succeeded."""
    when: AnyRule = None
    """Judged when the task is ready; false: it is skipped."""
    for_each: ForEach | None = None
    """Makes one child per element of a list; the result is the list of their results."""
    required: bool = True
    """Whether the run needs it."""
    skipped_ok: bool = False
    """Whether what it requires may have been skipped."""
    max_attempts: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Most attempts that count."""
    backoff: Annotated[
        Backoff,
        BeforeValidator(_read_backoff),
        WithJsonSchema({"anyOf": [*_SPAN_SCHEMA["anyOf"], {REFERS_TO: "Backoff"}]}),
    ] = Field(default_factory=lambda: _DEFAULT_BACKOFF)
    """The first wait before a retry, doubling up to 5m (or {first, max}), plus up to 20 % of jitter."""
    timeout: PositiveSpan = 3_600_000
    """Longest time from start to close."""
    queue_timeout: PositiveSpan | None = None
    """Longest time from schedule to start."""
    heartbeat: PositiveSpan = 30_000
    """How long a lease lasts without renewal."""
    progress_timeout: PositiveSpan | None = None
    """Longest time without progress shown by the handler."""
    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Spans all attempts; TASK/ATTEMPT, when not given."""
    input: Any = {}
    """JSON in which {from: inputs.NAME} and {from: tasks.TASK.result, at: /pointer} stand for values."""
    output_schema: MaybeJsonSchema = None
    """JSON Schema of the result; below for_each, of the result of each child."""
    output_bytes: Annotated[int, Field(ge=1, le=MAX_OUTPUT_BYTES)] = 2**20
    """Largest result."""
    reserve: Reserve = Field(default_factory=lambda: _NO_RESERVE)
    """Set aside for each attempt; obligatory where the Team limits tokens or cost."""
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    """Higher first."""
    external: bool = False
    """No worker does it: an outside system reports."""
    retry_invalid: bool = False
    """Whether an invalid output is retried."""
    outcome_plan: Plan = Field(default_factory=lambda: _DEFAULT_PLAN)
    """What the attempts do in a simulated run."""

    @property
    def has_input(self) -> bool:
        """Whether the file gives an input; a `for_each` child without one gets its element."""
        return "input" in self.model_fields_set

    @property
    def upstream(self) -> list[str]:
        """Every task that this one waits for, in the file's order: requires, after, any_of."""
        return [*self.requires, *self.after, *(self.any_of.tasks if self.any_of else ())]


class Limits(Part):
    """`limits`: those that end a run are None when the Team does not set them. deadline and no_progress in ms, cost in
    micro-units."""

    step_budget: Count | None = None
    """Attempts started."""
    max_steps: Count | None = None
    """Accepted task reports."""
    deadline: PositiveSpan | None = None
    """Time since the submit."""
    no_progress: PositiveSpan | None = None
    """Time without progress."""
    no_progress_steps: Count | None = None
    """Accepted reports without progress."""
    tokens: Amount | None = None
    """Tokens used and reserved."""
    cost: Money | None = None
    """Money used and reserved: an exact decimal."""
    max_children: Annotated[int, Field(ge=0, le=MAX_CHILDREN)] = 1000
    """Children that the handlers of a run may make in all."""
    max_depth: Annotated[int, Field(ge=0, le=MAX_DEPTH)] = 5
    """How deep children of children may go."""

    def of(self, limit: Limit) -> int | None:
        """The value of a limit by its name."""
        found: int | None = getattr(self, limit.value)
        return found


class StopRule(Part):
    """One entry of `stop_when`."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    """What the report calls it."""
    ends: Literal["stopped", "completed", "failed", "paused"]
    """How the run ends, or parks."""
    rule: Annotated[Rule | None, SkipValidation, WithJsonSchema({REFERS_TO: "Rule"})]
    """When."""


def _read_version(value: Any) -> Any:
    if isinstance(value, (bool, float)):  # both are equal to 1 in Python
        raise _refuse("1")
    return value


class Team(Part):
    """A definition: roles, tasks, limits, rules (SPEC 2). Made by `loader.py`."""

    LATER = frozenset({"notify", "four_eyes", "review", "schedule", "retention"})
    crewline: Annotated[Literal[1], BeforeValidator(_read_version)] = 1
    """Version of the format."""
    team: Annotated[str, Field(min_length=1, max_length=200)]
    """Name of the Team."""
    handlers: Annotated[str, Field(min_length=1)] | None = None
    """Where a local run finds its handlers; ignored by submit."""
    inputs: dict[str, JsonSchema] = {}
    """JSON Schema of each of the run's inputs; one with a default may be left out."""
    roles: dict[str, Role] = {}
    """Who may do what."""
    defaults: Annotated[dict[str, Any], WithJsonSchema({REFERS_TO: "Defaults"})] = {}
    """Values for tasks that do not give the key."""
    tasks: dict[str, Task] = {}
    """The graph."""
    limits: Limits = Limits()
    """What ends or parks the run."""
    on_required_failure: Literal["stop", "drain"] = "stop"
    """Whether the other work goes on when a required task has failed."""
    on_completion: Literal["stop", "drain"] = "stop"
    """Whether optional work goes on when every required task has succeeded."""
    on_limit: Literal["stop", "pause"] = "stop"
    """Whether a limit ends the run or parks it."""
    stop_when: list[StopRule] = []
    """Rules that end or park the run."""
    output: Annotated[dict[str, Any], WithJsonSchema({REFERS_TO: "Reference"})] | None = None
    """What the run's output is."""

    _document: dict[str, Any] = {}
    _cycle: list[str] | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The Team as JSON, as it was written, anchors resolved."""
        return self._document

    @property
    def cycle(self) -> list[str] | None:
        """One cycle of the graph, when the Team was loaded although it has one."""
        return self._cycle

    @cached_property
    def fact_ids(self) -> Facts:
        """The ids of all questions that rules ask of results."""
        rules = [task.when for task in self.tasks.values() if task.when is not None]
        return number_facts(rules + [entry.rule for entry in self.stop_when if entry.rule is not None])

    @cached_property
    def facts_of(self) -> dict[str, list[Fact]]:
        """Those questions by task."""
        facts: dict[str, list[Fact]] = {}
        for (task, at, test), number in self.fact_ids.items():
            facts.setdefault(task, []).append(Fact(number, at, test))
        return facts

    def task_of(self, name: str) -> Task | None:
        """The task of a name; for a child `T[3]` of a `for_each` task the T that it was made from. None when unknown,
        and for what a handler spawned: the run alone knows those."""
        found = self.tasks.get(name)
        if found is None and name.count("[") == 1:
            parent = self.tasks.get(name.partition("[")[0])
            found = parent if parent is not None and parent.for_each is not None else None
        return found


NOT_FOR_CHILDREN = frozenset(
    {"requires", "after", "any_of", "when", "for_each", "required", "skipped_ok", "external"}
) | {"outcome_plan"}
"""Task keys that a child made by a handler cannot have: it is optional, waits for nothing, and is done by a worker."""
NOT_IN_DEFAULTS = frozenset({"requires", "after", "any_of", "when", "for_each", "input", "idempotency_key"})
"""Task keys that say what one task is: they make no sense for all of them."""
