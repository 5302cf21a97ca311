"""The plan that Lua reads, the children of for_each, and what makes two submits the same run."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from coordinator.team.compile import children_of, compile_plan, content_digest, document_text
from coordinator.team.loader import make_team, parse_team
from coordinator.team.models import Team
from coordinator.wire.bindings import Unresolved, resolve

DOCUMENT: dict[str, Any] = {
    "team": "t",
    "inputs": {"n": {"type": "integer"}, "list": {"default": []}},
    "roles": {"w": {"capabilities": ["go", "run"]}, "v": {"capabilities": ["fly"]}},
    "tasks": {
        "a": {
            "capability": "go",
            "input": {"n": {"from": "inputs.n"}},
            "reserve": {"tokens": 5, "cost": "0.5"},
        },
        "b": {
            "capability": "fly",
            "requires": ["a"],
            "required": False,
            "priority": 2,
            "idempotency_key": "k",
        },
        "c": {
            "capability": "run",
            "after": ["b"],
            "any_of": {"count": 1, "tasks": ["a", "b"]},
            "max_attempts": 3,
        },
        "d": {
            "external": True,
            "requires": ["a"],
            "when": {"result": {"task": "a", "at": "/go", "equals": True}},
        },
        "e": {
            "capability": "go",
            "requires": ["a"],
            "for_each": {"from": "tasks.a.result", "at": "/list", "max_parallel": 3},
            "input": {"at": {"from": "index"}, "x": {"from": "item", "at": "/x"}, "n": {"from": "inputs.n"}},
            "reserve": {"tokens": 9},
        },
    },
    "limits": {"step_budget": 20, "cost": "5.00", "deadline": "10m"},
    "stop_when": [
        {
            "name": "long",
            "ends": "stopped",
            "rule": {"any": [{"elapsed": "5m"}, {"input": {"name": "n", "equals": 3}}]},
        }
    ],
}
for _task in DOCUMENT["tasks"].values():
    _task.setdefault("reserve", {}).setdefault("cost", 0)


def team(**changes: Any) -> Team:
    return make_team({**DOCUMENT, **changes})


def items(kind: str, of: Team | None = None) -> list[Any]:
    return [item[1:] for item in compile_plan(of or team(), {"n": 1, "list": []}).items if item[0] == kind]


def test_the_header() -> None:
    assert compile_plan(team(), {"n": 1, "list": []}, "seed").header == {
        "team": "t",
        "seed": "seed",
        "on_required_failure": "stop",
        "on_completion": "stop",
        "on_limit": "stop",
        "limits": {"step_budget": 20, "deadline_ms": 600_000, "cost_micros": 5_000_000},
        "roles": {"w": ["go", "run"], "v": ["fly"]},
        "rules": [{"name": "long", "ends": "stopped", "rule": ["ge", "elapsed", 300_000]}],
        "elapsed": [300_000],
        "idle": [],
        "tasks": 5,
        "required": 4,
    }
    assert compile_plan(team(), {"n": 3, "list": []}).header["rules"][0]["rule"] == ["const", 1]


def test_tasks_come_in_file_order_with_everything_that_lua_needs() -> None:
    tasks = [task for (task,) in items("task")]
    assert [task["id"] for task in tasks] == ["a", "b", "c", "d", "e"]
    assert [task["index"] for task in tasks] == [0, 1, 2, 3, 4]
    assert tasks[0] == {
        "id": "a", "index": 0, "role": "w", "capability": "go", "required": 1, "max_attempts": 1, "backoff_ms": 1000,
        "backoff_max_ms": 300_000, "timeout_ms": 3_600_000, "queue_timeout_ms": 0, "heartbeat_ms": 30_000,
        "progress_timeout_ms": 0, "key": "", "tokens": 5, "cost_micros": 500_000, "priority": 0, "external": 0,
        "retry_invalid": 0, "skipped_ok": 0, "requires": 0, "after": 0, "any_count": 0, "any_total": 0,
        "input": '{"n":{"from":"inputs.n"}}', "uses_inputs": 1, "output_bytes": 2**20, "for_each": 0, "max_parallel": 0,
        "min_success": -1,
    }  # fmt: skip
    assert (tasks[1]["role"], tasks[1]["required"], tasks[1]["priority"], tasks[1]["key"]) == ("v", 0, 2, "k")
    assert (tasks[2]["after"], tasks[2]["any_count"], tasks[2]["any_total"], tasks[2]["input"]) == (
        1,
        1,
        2,
        "{}",
    )
    assert (tasks[3]["role"], tasks[3]["external"], tasks[3]["when"]) == ("", 1, ["fact", "f1"])
    assert (tasks[4]["for_each"], tasks[4]["max_parallel"], tasks[4]["tokens"]) == (1, 3, 0)
    assert all("when" not in task for task in tasks if task["id"] != "d")


def test_edges_come_after_all_tasks_and_lead_from_the_requirement() -> None:
    assert items("edge") == [
        ["requires", "a", "b"], ["after", "b", "c"], ["any_of", "a", "c"], ["any_of", "b", "c"], ["requires", "a", "d"],
        ["requires", "a", "e"],
    ]  # fmt: skip
    kinds = [item[0] for item in compile_plan(team(), {"n": 1, "list": []}).items]
    assert kinds == sorted(kinds, reverse=True)


def test_the_plan_is_json_without_surprises() -> None:
    plan = compile_plan(team(), {"n": 1, "list": []})
    assert json.loads(json.dumps([plan.header, plan.items], allow_nan=False)) == [plan.header, plan.items]


def test_children_have_the_bounds_of_their_parent_and_their_element() -> None:
    children = children_of(team(), "e", [{"x": "first"}, {"x": {"from": "inputs.n"}}], 7)
    assert [(child["id"], child["index"], child["parent"], child["required"]) for child in children] == [
        ("e[7]", 7, "e", 0), ("e[8]", 8, "e", 0),
    ]  # fmt: skip
    first = children[0]
    assert (first["role"], first["capability"], first["tokens"], first["for_each"]) == ("w", "go", 9, 0)
    assert (first["requires"], first["after"], first["any_total"], first["uses_inputs"]) == (0, 0, 0, 1)
    assert resolve(json.loads(first["input"]), {"n": 1}, {}) == {"at": 7, "x": "first", "n": 1}
    # an element that looks like a reference stays data
    assert resolve(json.loads(children[1]["input"]), {"n": 1}, {})["x"] == {"from": "inputs.n"}
    assert set(first) == {*items("task")[0][0], "parent"}
    with pytest.raises(Unresolved):
        children_of(team(), "e", [{}], 0)


def test_a_child_without_a_template_gets_its_element() -> None:
    tasks = {"a": {"capability": "go", "for_each": {"from": "inputs.list"}}}
    plain = make_team({**DOCUMENT, "tasks": tasks, "limits": {}, "stop_when": []})
    children = children_of(plain, "a", [1, None, {"from": "inputs.n"}, {"secret": "x"}], 0)
    inputs = [resolve(json.loads(child["input"]), {"n": 5}, {}) for child in children]
    assert inputs == [1, None, {"from": "inputs.n"}, {"secret": "x"}]


def test_the_same_content_has_the_same_digest() -> None:
    inputs = {"n": 1, "list": []}
    one = content_digest(team(), inputs)
    assert content_digest(parse_team(document_text(team())), inputs) == one
    assert content_digest(team(handlers="other.py", **{"x-note": 5}), dict(reversed(inputs.items()))) == one
    tasks = DOCUMENT["tasks"]
    others = [
        content_digest(team(), {"n": 2, "list": []}),
        content_digest(team(), {"n": 1.0, "list": []}),
        content_digest(team(on_limit="pause"), inputs),
        content_digest(team(tasks=dict(reversed(tasks.items()))), inputs),
        content_digest(team(tasks={**tasks, "a": {**tasks["a"], "priority": 1}}), inputs),
    ]
    assert len({one, *others}) == 6


def test_large_teams_compile_in_linear_time() -> None:
    tasks = {
        f"t{at}": {"capability": "go", "requires": [f"t{at - 1}"] if at % 10 else []} for at in range(20_000)
    }
    text = json.dumps({"team": "big", "roles": DOCUMENT["roles"], "tasks": tasks})
    began = time.process_time()
    plan = compile_plan(parse_team(text), {})
    assert time.process_time() - began < 15  # about 0.8 s on an idle machine
    assert plan.header["tasks"] == 20_000
    assert len(plan.items) == 38_000
