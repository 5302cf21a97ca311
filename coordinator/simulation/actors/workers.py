"""Owns the scripted workers of a simulation: they ask for leases, renew them and end attempts as the plan
says.

They stand where RQ and real workers stand otherwise, and say the same messages (`wire.reports`) at virtual
times. Must not touch run state, and must not know how time moves: what they will do stands in the agenda.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from coordinator.simulation.actors.post import Post
from coordinator.simulation.actors.script import Script, error_document
from coordinator.simulation.clock import Agenda, VirtualClock
from coordinator.wire.bindings import Unresolved, resolve
from coordinator.wire.channels import JobId
from coordinator.wire.grants import Grant, Page, parse_message
from coordinator.wire.names import FailureClass
from coordinator.wire.outcome_plan import PlannedAttempt, PlannedOutcome
from coordinator.wire.reports import SUCCEEDED, AskResults, End, HandBackReport, Renew, Start, Use

_FAILURES = {
    PlannedOutcome.TRANSIENT_ERROR: FailureClass.TRANSIENT,
    PlannedOutcome.PERMANENT_ERROR: FailureClass.PERMANENT,
    PlannedOutcome.PERMISSION_DENIED: FailureClass.PERMISSION,
    PlannedOutcome.MISSING_INPUT: FailureClass.MISSING_INPUT,
    PlannedOutcome.INVALID_OUTPUT: FailureClass.INVALID_OUTPUT,
}


@dataclass(slots=True, eq=False)
class ScriptedAttempt:
    """One job in the hands of one scripted worker.

    results: those of the grant and its pages. asked: it has asked for the lease.
    """

    job: JobId
    worker: str
    request: str
    plan: PlannedAttempt
    grant: Grant | None = None
    results: dict[str, Any] = field(default_factory=dict)
    pages_missing: int = 0
    asked: bool = False

    @property
    def name(self) -> str:
        """How agenda and trace call it; also the owner of its happenings."""
        return f"{self.worker}:{self.job.task}/{self.job.attempt}"

    @property
    def leased(self) -> Grant:
        """The grant, where there must be one."""
        if self.grant is None:
            raise AssertionError(f"{self.name} works without a lease")
        return self.grant


class ScriptedWorkers:
    """All workers of a simulated team: `ROLE-1`, and `ROLE-2` for a second delivery; they are never busy."""

    def __init__(self, post: Post, agenda: Agenda, clock: VirtualClock, script: Script) -> None:
        self._post = post
        self._agenda = agenda
        self._clock = clock
        self._script = script
        self._attempts: dict[str, ScriptedAttempt] = {}
        """By request; kept while the worker waits for an answer or works."""
        self._late: dict[str, list[ScriptedAttempt]] = {}
        """By task: those that hold their success back."""
        self._deliveries: dict[str, int] = {}
        self._requests = 0

    # -- jobs ----------------------------------------------------------------------------------------------

    def take_job(self, job: JobId) -> None:
        """A worker pops the job: it asks for the lease at once. A second delivery goes to another worker."""
        delivery = self._deliveries.get(str(job), 0) + 1
        self._deliveries[str(job)] = delivery
        self._requests += 1
        plan = self._script.attempt(job.task, job.attempt)
        attempt = ScriptedAttempt(job, f"{job.role}-{delivery}", str(self._requests), plan)
        self._attempts[attempt.request] = attempt
        if attempt.plan.outcome is PlannedOutcome.HANDBACK:
            self._plan(attempt, 0, "hand back", lambda: self._hand_back(attempt))
        else:
            self._plan(attempt, 0, "start", lambda: self._start(attempt))

    def working(self) -> list[ScriptedAttempt]:
        """Attempts that a worker holds, in the order in which they were popped."""
        return list(self._attempts.values())

    def lying(self, role: str) -> set[str]:
        """Ids of the role's jobs that wait to be popped: nobody has asked for their lease yet."""
        return {str(held.job) for held in self._attempts.values() if held.job.role == role and not held.asked}

    def die(self, attempt: ScriptedAttempt) -> None:
        """The worker's process is gone: it says nothing more, and nobody hears what it is told."""
        self._drop(attempt)
        self._agenda.drop(attempt.name)

    def drain(self, attempt: ScriptedAttempt) -> None:
        """The worker is to end: it hands the attempt back, with its lease if it has one."""
        self._agenda.drop(attempt.name)
        self._hand_back(attempt)

    def use(self, attempt: ScriptedAttempt) -> None:
        """The handler says what it used so far: everything that its plan lets it use."""
        plan = attempt.plan
        entry = Use(
            **_identity(attempt), lease=attempt.leased.lease, tokens=plan.tokens, cost_micros=plan.cost_micros
        )
        self._post.to_role(attempt.job.role, entry)

    # -- answers -------------------------------------------------------------------------------------------

    def listen(self) -> None:
        """Every worker reads what it was told. To be called after each step of the loop."""
        expecting = (
            held for held in self._attempts.values() if held.asked and (not held.grant or held.pages_missing)
        )
        lists = sorted({self._post.reply_list(held.job.role, held.worker) for held in expecting})
        for raw in self._post.answers(lists) if lists else ():
            self._hear(raw)

    def send_late(self) -> bool:
        """Sends the successes that were held back until their run stopped; says whether there were any."""
        waiting = [attempt for held in self._late.values() for attempt in held]
        for attempt in waiting:
            self._send_late(attempt)
        return bool(waiting)

    def _hear(self, raw: bytes) -> None:
        message = parse_message(raw)
        attempt = self._attempts.get(message.request)
        if attempt is None:
            return
        if isinstance(message, Grant):
            self._granted(attempt, message)
        elif isinstance(message, Page):
            attempt.results.update(message.results)
            attempt.pages_missing -= 1
            if not attempt.pages_missing:
                self._begin(attempt)
        elif attempt.grant is None:
            self._drop(attempt)

    def _granted(self, attempt: ScriptedAttempt, grant: Grant) -> None:
        if attempt.grant is not None:
            return
        attempt.grant = grant
        attempt.results = dict(grant.results)
        attempt.pages_missing = grant.pages
        self._take_over(attempt)
        for page in range(grant.pages):
            self._plan(attempt, 0, f"ask page {page}", self._asking(attempt, page))
        if not grant.pages:
            self._begin(attempt)

    def _take_over(self, attempt: ScriptedAttempt) -> None:
        """An earlier attempt of the same task that was only held back now speaks up."""
        for other in self._late.get(attempt.job.task, ()):
            if other.job.attempt < attempt.job.attempt:
                self._plan(other, 0, "late success", partial(self._send_late, other))

    # -- what a worker does with its lease -----------------------------------------------------------------

    def _begin(self, attempt: ScriptedAttempt) -> None:
        grant, plan = attempt.leased, attempt.plan
        try:
            resolve(grant.input, grant.inputs or {}, attempt.results)
        except Unresolved as fault:
            error = error_document(FailureClass.PERMANENT, "InputUnresolved", str(fault))
            self._plan(attempt, 0, "end", self._ending(attempt, FailureClass.PERMANENT, "", error))
            return
        if plan.outcome is PlannedOutcome.CRASH:
            self._drop(attempt)
        elif plan.outcome is PlannedOutcome.LATE:
            self._late.setdefault(attempt.job.task, []).append(attempt)
            if plan.duration_ms is not None:
                delay_ms = max(plan.duration_ms, grant.heartbeat_ms + 1)
                self._plan(attempt, delay_ms, "late success", lambda: self._send_late(attempt))
        elif plan.outcome is PlannedOutcome.TIMEOUT:
            self._renew_until(attempt, grant.timeout_at)
        else:
            ends_at = self._clock.now + self._script.duration_ms(plan)
            self._renew_until(attempt, min(ends_at, grant.timeout_at or ends_at))
            self._agenda.add(ends_at, f"{attempt.name} end", attempt.name, lambda: self._end(attempt))

    def _renew_until(self, attempt: ScriptedAttempt, instant: int) -> None:
        """A worker renews its lease by itself every third of the heartbeat (SPEC 7)."""
        next_at = self._clock.now + max(1, attempt.leased.heartbeat_ms // 3)
        if next_at < instant:
            self._agenda.add(
                next_at, f"{attempt.name} renew", attempt.name, lambda: self._renew(attempt, instant)
            )

    def _renew(self, attempt: ScriptedAttempt, instant: int) -> None:
        self._post.to_role(attempt.job.role, Renew(**_identity(attempt), lease=attempt.leased.lease))
        self._renew_until(attempt, instant)

    def _end(self, attempt: ScriptedAttempt) -> None:
        plan = attempt.plan
        self._agenda.drop(attempt.name)
        failure = _FAILURES.get(plan.outcome)
        if failure is not None:
            payload, error = self._script.failure(attempt.job.task, failure)
            self._ending(attempt, failure, payload, error)()
            return
        for payload in sent_payloads(self._script, attempt.job.task, plan):
            self._ending(attempt, SUCCEEDED, json.dumps(payload, ensure_ascii=False), "")()

    def _send_late(self, attempt: ScriptedAttempt) -> None:
        self._agenda.drop(attempt.name)
        payload = self._script.payload(attempt.job.task, attempt.plan)
        self._ending(attempt, SUCCEEDED, json.dumps(payload, ensure_ascii=False), "")()

    # -- messages ------------------------------------------------------------------------------------------

    def _start(self, attempt: ScriptedAttempt) -> None:
        role = attempt.job.role
        attempt.asked = True
        reply_to = self._post.reply_list(role, attempt.worker)
        self._post.to_role(role, Start(**_identity(attempt), reply_to=reply_to, request=attempt.request))

    def _asking(self, attempt: ScriptedAttempt, page: int) -> Callable[[], None]:
        role = attempt.job.role
        entry = AskResults(
            **_identity(attempt),
            lease=attempt.leased.lease,
            page=page,
            reply_to=self._post.reply_list(role, attempt.worker),
            request=attempt.request,
        )
        return lambda: self._post.to_role(role, entry)

    def _hand_back(self, attempt: ScriptedAttempt) -> None:
        self._drop(attempt)
        lease = attempt.grant.lease if attempt.grant else ""
        self._post.to_role(
            attempt.job.role, HandBackReport(**_identity(attempt), lease=lease, reason="draining")
        )

    def _ending(self, attempt: ScriptedAttempt, outcome: str, payload: str, error: str) -> Callable[[], None]:
        entry = End(
            **_identity(attempt),
            lease=attempt.leased.lease,
            outcome=outcome,
            payload=payload,
            error=error,
            tokens=attempt.plan.tokens,
            cost_micros=attempt.plan.cost_micros,
        )

        def send() -> None:
            self._drop(attempt)
            self._post.to_role(attempt.job.role, entry)

        return send

    def _plan(self, attempt: ScriptedAttempt, delay_ms: int, what: str, act: Callable[[], None]) -> None:
        self._agenda.add(self._clock.now + delay_ms, f"{attempt.name} {what}", attempt.name, act)

    def _drop(self, attempt: ScriptedAttempt) -> None:
        self._attempts.pop(attempt.request, None)
        late = self._late.get(attempt.job.task, [])
        if attempt in late:
            late.remove(attempt)


def sent_payloads(script: Script, task: str, plan: PlannedAttempt) -> list[Any]:
    """What a successful attempt sends, in order: its result, and what the plan says comes after it."""
    payload = script.payload(task, plan)
    if plan.outcome is PlannedOutcome.DUPLICATE:
        return [payload, payload]
    if plan.outcome is PlannedOutcome.DUPLICATE_REORDERED:
        return [payload, _reordered(payload)]
    if plan.outcome is PlannedOutcome.CONFLICT:
        return [payload, script.other_payload(payload)]
    return [payload]


def _identity(attempt: ScriptedAttempt) -> dict[str, Any]:
    job = attempt.job
    return {"run": job.run, "task": job.task, "attempt": job.attempt, "worker": attempt.worker}


def _reordered(value: Any) -> Any:
    """The same JSON with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: _reordered(item) for key, item in reversed(value.items())}
    return [_reordered(item) for item in value] if isinstance(value, list) else value
