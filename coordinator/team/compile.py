"""Owns the plan: a checked Team and a run's inputs in the form that Lua reads, and the identity of both.

The form is fixed together with `machine/lua` (SubmitRun, AddTasks, SpawnTasks). Spans in ms, money in micro-units,
flags 0 and 1, absent limits left out. Must not check anything: a Team that was loaded is sound.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.team.models import ALL_CHILDREN, Limits, Task, Team
from coordinator.team.rules.facts import compile_rule, thresholds
from coordinator.wire import digest
from coordinator.wire.bindings import SourceKind, as_literal, bind_item, references

Item = list[Any]
"""`["task", {...}]` or `["edge", kind, from, to]`."""

_CHILD_ONLY = {"for_each": 0, "max_parallel": 0, "min_success": ALL_CHILDREN}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is made of. header: limits, roles, rules. items: all tasks in file order, then all edges."""

    header: dict[str, Any]
    items: list[Item]


def compile_plan(team: Team, inputs: Mapping[str, Any], seed: str = "") -> Plan:
    """The plan of a run. inputs: as `payloads.check_inputs` gives them; seed: what backoff jitter is made from."""
    rules: list[dict[str, Any]] = [
        {"name": entry.name, "ends": entry.ends, "rule": compile_rule(entry.rule, inputs, team.fact_ids)}
        for entry in team.stop_when
        if entry.rule is not None
    ]
    compiled = [entry["rule"] for entry in rules]
    header = {
        "team": team.team,
        "seed": seed,
        "on_required_failure": team.on_required_failure,
        "on_completion": team.on_completion,
        "on_limit": team.on_limit,
        "limits": _limits(team.limits),
        "roles": {name: list(role.capabilities) for name, role in team.roles.items()},
        "rules": rules,
        "elapsed": thresholds(compiled, "elapsed"),
        "idle": thresholds(compiled, "idle"),
        "tasks": len(team.tasks),
        "required": sum(task.required for task in team.tasks.values()),
    }
    return Plan(header, _items(team, inputs))


def document_text(team: Team) -> str:
    """The Team as JSON text, as a submit carries it and `loader.parse_team` reads it again."""
    return json.dumps(team.document, ensure_ascii=False, separators=(",", ":"))


def content_digest(team: Team, inputs: Mapping[str, Any]) -> str:
    """What two submits must share to be the same run: the Team as written, in its order of tasks, and the inputs.

    `handlers` and `x-...` at the top say nothing about the run and do not count.
    """
    content = {
        key: value
        for key, value in team.document.items()
        if key not in ("handlers", "crewline") and not key.startswith("x-")
    }
    return digest.digest([content, list(team.tasks), dict(inputs)])


def children_of(team: Team, task: str, elements: Sequence[Any], start: int) -> list[dict[str, Any]]:
    """The children of a `for_each` task for some of its elements; `start` is the position of the first one.

    A child is optional, has its parent's owner, capability and bounds, and waits for nothing. Its input is the parent's
    template with the element and its position put in as literals, or the element itself. Raises
    `bindings.Unresolved` when the template asks for what an element does not have.
    """
    parent = team.tasks[task]
    shared = _task(task, parent, start) | _CHILD_ONLY | {"parent": task, "required": 0}
    shared |= {"requires": 0, "after": 0, "any_count": 0, "any_total": 0}
    shared |= {"tokens": parent.reserve.tokens or 0, "cost_micros": parent.reserve.cost or 0}
    children = []
    for index, element in enumerate(elements, start):
        template = bind_item(parent.input, element, index) if parent.has_input else as_literal(element)
        children.append(shared | {"id": f"{task}[{index}]", "index": index, **_input(template)})
    return children


def spawned_child(child: Task) -> dict[str, Any]:
    """The plan of a child that a handler makes; its name and its place are given by Lua.

    Its input is a value, never a template. What its result must be travels with it: the Team does not know it.
    """
    fields = _task("", child, 0) | _input(as_literal(child.input))
    fields |= {
        "required": 0,
        "output_schema": "" if child.output_schema is None else json.dumps(child.output_schema),
    }
    del fields["id"], fields["index"]
    return fields


def _limits(limits: Limits) -> dict[str, int]:
    found = {
        "step_budget": limits.step_budget,
        "max_steps": limits.max_steps,
        "deadline_ms": limits.deadline,
        "no_progress_ms": limits.no_progress,
        "no_progress_steps": limits.no_progress_steps,
        "tokens": limits.tokens,
        "cost_micros": limits.cost,
    }
    return {name: value for name, value in found.items() if value is not None}


def _items(team: Team, inputs: Mapping[str, Any]) -> list[Item]:
    tasks: list[Item] = []
    edges: list[Item] = []
    for index, (name, task) in enumerate(team.tasks.items()):
        fields = _task(name, task, index)
        if task.when is not None:
            fields["when"] = compile_rule(task.when, inputs, team.fact_ids)
        if not task.for_each:
            fields |= _input(task.input)
        tasks.append(["task", fields])
        edges.extend(["edge", "requires", other, name] for other in task.requires)
        edges.extend(["edge", "after", other, name] for other in task.after)
        if task.any_of:
            edges.extend(["edge", "any_of", other, name] for other in task.any_of.tasks)
    return tasks + edges


def _task(name: str, task: Task, index: int) -> dict[str, Any]:
    """A task without `when` and input. A for_each parent runs no handler, so it reserves nothing itself."""
    works = task.for_each is None
    return {
        "id": name,
        "index": index,
        "role": "" if task.external else task.owner or "",
        "capability": task.capability or name,
        "required": int(task.required),
        "max_attempts": task.max_attempts,
        "backoff_ms": task.backoff.first,
        "backoff_max_ms": task.backoff.max,
        "timeout_ms": task.timeout,
        "queue_timeout_ms": task.queue_timeout or 0,
        "heartbeat_ms": task.heartbeat,
        "progress_timeout_ms": task.progress_timeout or 0,
        "key": task.idempotency_key or "",
        "tokens": (task.reserve.tokens or 0) if works else 0,
        "cost_micros": (task.reserve.cost or 0) if works else 0,
        "priority": task.priority,
        "external": int(task.external),
        "retry_invalid": int(task.retry_invalid),
        "skipped_ok": int(task.skipped_ok),
        "requires": len(task.requires),
        "after": len(task.after),
        "any_count": task.any_of.count if task.any_of else 0,
        "any_total": len(task.any_of.tasks) if task.any_of else 0,
        "input": "",
        "uses_inputs": 0,
        "output_bytes": task.output_bytes,
        "for_each": int(not works),
        "max_parallel": task.for_each.max_parallel if task.for_each else 0,
        "min_success": task.for_each.min_success if task.for_each else ALL_CHILDREN,
    }


def _input(template: Any) -> dict[str, Any]:
    uses = any(getattr(reference, "kind", None) is SourceKind.INPUT for _, reference in references(template))
    return {
        "input": json.dumps(template, ensure_ascii=False, separators=(",", ":")),
        "uses_inputs": int(uses),
    }
