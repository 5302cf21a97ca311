"""Owns small builders of plans and payloads for tests that drive the machine without a Team file.

Must not fill in what the contract decides (names of capabilities, owners): a test says what it needs, everything
else gets the default of SPEC 2. The format is that of `coordinator.team.compile`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.machine.commands import AddTasks, SubmitRun

Spec = dict[str, Any]

ROLE = "clerk"
DEFAULTS: Mapping[str, Any] = {
    "role": ROLE,
    "required": 1,
    "max_attempts": 1,
    "backoff_ms": 1_000,
    "backoff_max_ms": 300_000,
    "timeout_ms": 3_600_000,
    "queue_timeout_ms": 0,
    "heartbeat_ms": 30_000,
    "progress_timeout_ms": 0,
    "key": "",
    "tokens": 0,
    "cost_micros": 0,
    "priority": 0,
    "external": 0,
    "retry_invalid": 0,
    "skipped_ok": 0,
    "input": "",
    "uses_inputs": 0,
    "output_bytes": 1_048_576,
    "for_each": 0,
    "max_parallel": 20,
    "min_success": -1,
}


def task(id: str, **fields: Any) -> Spec:
    """One task. `requires`, `after`, `any_of` are lists of names; `any_count` says how many of any_of; the rest are
    fields of the plan. An external task has no role."""
    spec: Spec = {
        **DEFAULTS,
        "id": id,
        "capability": "work",
        "requires": [],
        "after": [],
        "any_of": [],
        **fields,
    }
    if spec["external"]:
        spec["role"] = ""
    if spec["any_of"]:
        spec.setdefault("any_count", 1)
    return spec


@dataclass(frozen=True)
class Plan:
    """A plan as the machine reads it."""

    header: Spec
    items: list[list[Any]]

    @property
    def names(self) -> list[str]:
        return [item[1]["id"] for item in self.items if item[0] == "task"]


def plan(
    *tasks: Spec,
    roles: Mapping[str, Sequence[str]] | None = None,
    limits: Mapping[str, int] | None = None,
    rules: Iterable[Spec] = (),
    **header: Any,
) -> Plan:
    """A plan of tasks made by `task`. `limits` in the plan's own keys (deadline_ms, cost_micros, ...)."""
    items: list[list[Any]] = [["task", planned(spec, index)] for index, spec in enumerate(tasks)]
    for spec in tasks:
        for kind in ("requires", "after", "any_of"):
            items += [["edge", kind, source, spec["id"]] for source in spec[kind]]
    rules = list(rules)
    return Plan(
        header={
            "team": "team",
            "seed": "seed",
            "on_required_failure": "stop",
            "on_completion": "stop",
            "on_limit": "stop",
            "limits": dict(limits or {}),
            "roles": {name: list(rights) for name, rights in (roles or {ROLE: ["work"]}).items()},
            "rules": rules,
            "elapsed": _thresholds(rules, "elapsed"),
            "idle": _thresholds(rules, "idle"),
            "tasks": len(tasks),
            "required": sum(spec["required"] for spec in tasks),
            **header,
        },
        items=items,
    )


def planned(spec: Spec, index: int) -> Spec:
    """A task as it stands in the plan's items: lists of names become numbers, the edges say which."""
    counted = {name: value for name, value in spec.items() if name != "any_of"}
    return {
        **counted,
        "index": index,
        "requires": len(spec["requires"]),
        "after": len(spec["after"]),
        "any_count": spec.get("any_count", 0),
        "any_total": len(spec["any_of"]),
    }


def _thresholds(rules: Any, fact: str) -> list[int]:
    """All numbers that rules compare a time with."""
    found: set[int] = set()

    def walk(rule: Any) -> None:
        if isinstance(rule, list):
            if rule[:2] == ["ge", fact]:
                found.add(rule[2])
            for part in rule:
                walk(part)

    for each in rules:
        walk(each["rule"])
    return sorted(found)


def submit(
    plan: Plan, run: str = "r1", *, now: int, parts: int = 1, **fields: Any
) -> list[SubmitRun | AddTasks]:
    """SubmitRun and, with `parts` > 1, the AddTasks that follow."""
    size = -(-len(plan.items) // parts)
    chunks = [plan.items[at : at + size] for at in range(0, len(plan.items), size)]
    content = digest({"header": plan.header, "items": plan.items})
    first = SubmitRun(
        now=now,
        run=run,
        digest=fields.pop("digest", content),
        library=fields.pop("library", ""),
        header=json.dumps(plan.header),
        items=json.dumps(chunks[0]),
        more=int(len(chunks) > 1),
        team="{}",
        inputs="{}",
        **fields,
    )
    rest = [
        AddTasks(
            now=now,
            run=run,
            cursor=size * number,
            items=json.dumps(chunk),
            more=int(number < len(chunks) - 1),
        )
        for number, chunk in enumerate(chunks[1:], start=1)
    ]
    return [first, *rest]


def text(payload: Any) -> str:
    """Canonical JSON of a small payload."""
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(payload: Any) -> str:
    """A digest of a payload; the machine takes any text for one."""
    return "json-sorted/1:" + hashlib.sha256(text(payload).encode()).hexdigest()
