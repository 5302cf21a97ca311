"""Owns what the oracle knows of a run: plain mutable records, and the one way in which a task moves.

Must not decide when something moves: that is readiness.py, reports.py, timers.py and stop.py.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from coordinator.wire.names import ENDED, FINAL, RunStatus, TaskState

AMOUNTS = ("step_budget", "tokens", "cost")
"""The three things that are reserved and used (SPEC 5); also the order in which they are named as a limit."""

LIMIT_KEYS = {"step_budget": "step_budget", "tokens": "tokens", "cost": "cost_micros"}


@dataclass
class Task:
    """One task. Fields of an attempt are those of the current or last one."""

    spec: dict[str, Any]
    index: int
    state: TaskState = TaskState.PENDING
    requires: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    any_of: list[str] = field(default_factory=list)
    opened: bool = False
    """Is ready: `when` and the capability have been judged; anew whenever the task becomes ready again."""
    attempt: int = 0
    granted: int = 0
    never_started: int = 0
    no_worker: int = 0
    """How often in a row the attempt was not begun, and was handed back because no worker has its handler."""
    lease: str = ""
    lease_until: int = 0
    queued_at: int = 0
    started_at: int = 0
    shown_at: int = 0
    """When the handler last showed progress."""
    due: tuple[int, int] | None = None
    """Backoff: the earliest and latest instant at which it may end; both the same once it is known."""
    held: dict[str, int] = field(default_factory=dict)
    """What the attempt has reserved."""
    said: dict[str, int] = field(default_factory=dict)
    """What the attempt said that it used."""
    outcome: str = ""
    digest: str = ""
    trust: str = ""
    facts: set[str] = field(default_factory=set)
    based_on: set[str] = field(default_factory=set)
    """The tasks whose results it had when it last started."""
    tainted_by: set[str] = field(default_factory=set)
    question: str = ""
    answer: str = ""
    """Digests of what it asked last, and of what it was answered."""
    review: str = ""
    """The open review about it."""
    children: list[str] = field(default_factory=list)
    let_in: bool = False
    """A child that max_parallel lets run; once in, it stays in."""
    closed: bool = False
    """for_each: all children are made."""

    @property
    def id(self) -> str:
        return str(self.spec["id"])

    @property
    def role(self) -> str:
        return str(self.spec.get("role", ""))

    def number(self, name: str, default: int = 0) -> int:
        """A number or flag of the definition."""
        return int(self.spec.get(name, default) or 0)

    @property
    def external(self) -> bool:
        return bool(self.number("external"))

    @property
    def for_each(self) -> bool:
        return bool(self.number("for_each"))

    @property
    def required(self) -> bool:
        return bool(self.number("required"))

    @property
    def reserve(self) -> dict[str, int]:
        """What a new attempt reserves; a for_each parent does no work of its own."""
        if self.for_each:
            return dict.fromkeys(AMOUNTS, 0)
        return {"step_budget": 1, "tokens": self.number("tokens"), "cost": self.number("cost_micros")}

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass
class KeyRecord:
    """What is known under one idempotency key of one task (SPEC 6)."""

    digests: list[str] = field(default_factory=list)
    accepted: bool = False


@dataclass
class Cancellation:
    """An attempt that was told to end; `until`: the end of its grace, None once it is over."""

    outcome: str
    until: int | None


@dataclass
class Action:
    """A side effect of a task (SPEC 7)."""

    attempt: int
    state: str
    receipt: str = ""


@dataclass
class Review:
    """What a person must decide."""

    task: str
    kind: str
    version: int
    """The state_version that a decision must name."""
    key: str = ""
    decision: str = ""


@dataclass(frozen=True)
class StopRecord:
    """Why the run has its status."""

    reason: str
    rule: str = ""
    limit: str = ""
    task: str = ""
    also_true: tuple[str, ...] = ()


@dataclass
class Run:
    """One run with everything that later commands depend on."""

    id: str
    content: str
    header: dict[str, Any]
    now: int
    created_at: int
    status: RunStatus = RunStatus.RUNNING
    version: int = 1
    tasks: dict[str, Task] = field(default_factory=dict)
    items: int = 0
    loading: bool = False
    reports: int = 0
    progress_at: int = 0
    progress_reports: int = 0
    used: dict[str, int] = field(default_factory=lambda: dict.fromkeys(AMOUNTS, 0))
    reserved: dict[str, int] = field(default_factory=lambda: dict.fromkeys(AMOUNTS, 0))
    overrun: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(AMOUNTS, False))
    signals: set[str] = field(default_factory=set)
    keys: dict[tuple[str, str], KeyRecord] = field(default_factory=dict)
    verdicts: Counter[str] = field(default_factory=Counter)
    would_change: int = 0
    launched: list[tuple[str, str, int]] = field(default_factory=list)
    """Every attempt given to the outbox: role, task, attempt."""
    stop: StopRecord | None = None
    locked_reason: str = ""
    requests: set[str] = field(default_factory=set)
    cancellations: dict[tuple[str, int], Cancellation] = field(default_factory=dict)
    actions: dict[tuple[str, str], Action] = field(default_factory=dict)
    opened_reviews: dict[str, Review] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    """Rules that paused the run and were passed over by an operator, until they are false once."""
    parked_at: int = 0
    parked_ms: int = 0
    """How long it was parked so far: its deadline moves by that."""

    @property
    def stopped(self) -> bool:
        return self.status in FINAL

    @property
    def reviews(self) -> set[str]:
        return {t.id for t in self.tasks.values() if t.state is TaskState.NEEDS_REVIEW}

    def limit(self, name: str) -> int | None:
        """A limit of the Team by its key in the plan's header, None when there is none."""
        value = self.header.get("limits", {}).get(name)
        return None if value is None or value == "" else int(value)

    def effective(self, task: Task) -> TaskState:
        """The state as a reader sees it: what had not ended when the run stopped is canceled (SPEC 4)."""
        if self.stopped and not task.ended and task.state is not TaskState.NEEDS_REVIEW:
            return TaskState.CANCELED
        return task.state

    def move(self, task: Task, to: TaskState) -> None:
        """The one way in which a state changes: +1 version; ended tasks are progress."""
        self.version += 1
        task.state = to
        if to is not TaskState.RUNNING:
            if task.lease:
                self.forget_effects(task)
            task.lease = ""
        if to is TaskState.PENDING:
            task.opened = False
        else:
            task.due = None
        if to in ENDED:
            self.progress_at = self.now
            self.progress_reports = self.reports

    def forget_effects(self, task: Task) -> None:
        """The attempt is over: of what it started and did not confirm nobody knows (SPEC 7)."""
        for (name, _), action in self.actions.items():
            if name == task.id and action.state == "started":
                action.state = "unknown"


GRACE_MS = 30_000
"""How long an attempt that was told to end may take to say so (setting cancel_grace_ms)."""


def tell_to_end(run: Run, task: Task) -> None:
    """Who works on the task under a lease is told to end (SPEC 7)."""
    if task.lease:
        run.cancellations[task.id, task.attempt] = Cancellation("requested", run.now + GRACE_MS)


def add_items(run: Run, text: str) -> None:
    """Adds tasks and edges of a plan, given as JSON text."""
    for item in json.loads(text):
        run.items += 1
        if item[0] == "task":
            task = Task(spec=item[1], index=len(run.tasks))
            run.tasks[task.id] = task
        else:
            _, kind, source, target = item
            getattr(run.tasks[target], kind).append(source)


def open_review(run: Run, task: Task, kind: str, key: str = "") -> None:
    """A person must decide; the decision names the state_version of now."""
    task.review = f"{task.id}.{len(run.opened_reviews) + 1}"
    run.opened_reviews[task.review] = Review(task.id, kind, run.version, key)


def add_evidence(run: Run, task: Task) -> None:
    """Who decides now must have seen it."""
    if task.review:
        run.opened_reviews[task.review].version = run.version
