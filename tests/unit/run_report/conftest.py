"""Owns small snapshots to make reports of; the shape is that of `machine.snapshot.RunSnapshot`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass
class Snapshot:
    """A run as the machine would give it, built step by step."""

    run: dict[str, str] = field(default_factory=dict)
    tasks: list[dict[str, str]] = field(default_factory=list)
    events: list[dict[str, str]] = field(default_factory=list)
    team: Any = field(default_factory=dict)
    inputs: Any = field(default_factory=dict)
    payloads: dict[str, str] = field(default_factory=dict)
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    cancellations: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)
    reviews: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)

    def task(self, name: str, state: str = "pending", **more: str) -> None:
        """Adds a task of role clerk, required unless said otherwise."""
        base = {"id": name, "index": str(len(self.tasks)), "state": state, "required": "1", "role": "clerk"}
        self.tasks.append({**base, "capability": name, **more})

    def event(self, kind: str, task: str = "", move: str = "", attempt: int | str = "", **more: str) -> None:
        """Adds an event 100 ms after the last one; move: `from>to`."""
        source, _, target = move.partition(">")
        seq = len(self.events) + 1
        base = {
            "seq": str(seq),
            "at": str(1000 + 100 * seq),
            "kind": kind,
            "task_id": task,
            "attempt": str(attempt),
        }
        more.setdefault("reason", "")
        self.events.append({**base, "state_version": str(seq), "from": source, "to": target, **more})

    def result(self, digest: str, text: str) -> str:
        """Keeps a payload; gives its digest."""
        self.payloads[digest] = text
        return digest


@pytest.fixture
def new_snapshot() -> Callable[..., Snapshot]:
    """Makes an empty snapshot of a run with a status."""

    def make(status: str = "running", **run: str) -> Snapshot:
        fields: Mapping[str, str] = {
            "run": "r1",
            "team": "refund",
            "status": status,
            "state_version": "0",
            **run,
        }
        return Snapshot(run=dict(fields), team={"team": "refund", "tasks": {}})

    return make


@pytest.fixture
def refund(new_snapshot: Callable[..., Snapshot]) -> Snapshot:
    """Order succeeded, policy failed at its second attempt, style canceled, reply blocked: a critical
    failure.
    """
    snapshot = new_snapshot(
        "critical_failure",
        state_version="9",
        stop_reason="critical_failure",
        stop_task="policy",
        stop_seq="9",
        stop_at="1900",
        also_true='["step_limit"]',
        failure_seq="6",
        used_step_budget="3",
        limit_step_budget="10",
        reports="6",
        limit_max_steps="6",
        limit_cost="5000000",
        used_cost="250001",
    )
    error = '{"class":"permanent","type":"FileNotFoundError","message":"no policy","where":"handlers.py:12"}'
    snapshot.event("run_submitted", move=">running")
    snapshot.event("task_queued", "order", "pending>queued", 1)
    snapshot.event("attempt_started", "order", "queued>running", 1, worker="w1")
    snapshot.event("task_queued", "policy", "pending>queued", 1)
    snapshot.event("attempt_started", "policy", "queued>running", 1, worker="w2")
    snapshot.event("attempt_lost", "policy", "running>pending", 1)
    snapshot.event("task_succeeded", "order", "running>succeeded", 1, worker="w1")
    snapshot.event("task_queued", "policy", "pending>queued", 2)
    snapshot.event("task_failed", "policy", "queued>failed", 2, error=error)
    snapshot.event("task_blocked", "reply", "pending>blocked")
    digest = snapshot.result("sha256:aa", '{"total":12345678901234567890123,"rate":0.10}')
    snapshot.task("order", "succeeded", attempt="1", digest=digest, result_trust="trusted")
    snapshot.task("policy", "failed", attempt="2", error=error, reason="permanent")
    snapshot.task("style", "canceled", required="0", was="pending")
    snapshot.task("reply", "blocked", root="policy", root_state="failed", via="policy")
    return snapshot
