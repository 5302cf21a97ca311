"""Children that handlers make, and artifacts: entries in, checked against the Team, answers out (SPEC 8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coordinator.wire import channels
from coordinator.wire.reports import ArtifactMade, Spawn
from tests.runtime.harness import NAMESPACE, ROLE, WORKER, Stepped

SCHEMA = {"type": "object", "required": ["n"]}


def team(**more: Any) -> dict[str, Any]:
    return {
        "team": "t",
        "roles": {
            ROLE: {"capabilities": ["work", "dig"], "may_spawn": [ROLE, "helper"]},
            "helper": {"capabilities": ["help"]},
            "boss": {"capabilities": ["order", "dig"]},
        },
        "tasks": {"a": {"owner": ROLE, "capability": "work"}},
        **more,
    }


def say(stepped: Stepped, kind: type[Any], task: str = "a", below: str = "", **more: Any) -> dict[str, Any]:
    own = channels.reply(NAMESPACE, ROLE, WORKER) + below
    entry = kind(
        run="r1", task=task, attempt=1, worker=WORKER, lease=stepped.leases["r1", task], request="q",
        reply_to=own, **more,
    )  # fmt: skip
    stepped.say(entry)
    stepped.settle()
    return stepped.answer(own)


def spawn(
    stepped: Stepped, key: str = "k", task: str = "a", background: int = 0, **child: Any
) -> dict[str, Any]:
    return say(stepped, Spawn, task, ":q", key=key, child=json.dumps(child), background=background)


@pytest.fixture
def parent(stepped: Stepped) -> Stepped:
    stepped.submit(team(defaults={"timeout": "5m", "owner": "boss", "required": True, "max_attempts": 4}))
    stepped.start("a")
    return stepped


def test_a_child_has_the_teams_defaults_and_the_keys_given(parent: Stepped) -> None:
    reply = spawn(parent, capability="dig", input={"from": "x"}, max_attempts=2, heartbeat="2s")
    assert (reply["kind"], reply["child"], reply["state"]) == ("child", "a[0]", "pending")
    task = parent.task("a[0]")
    expected = {"role": ROLE, "capability": "dig", "max_attempts": "2", "timeout_ms": "300000",
                "heartbeat_ms": "2000", "parent": "a", "spawn_key": "k"}  # fmt: skip
    assert {name: task[name] for name in expected} == expected
    assert task.get("required", "0") == "0", "a child is optional, whatever the defaults say"
    grant = parent.start("a[0]")
    assert grant["input"] == {"from": "literal", "value": {"from": "x"}}, "a value, never a template"
    assert spawn(parent, capability="dig")["child"] == "a[0]", "the same key, the same child"


@pytest.mark.parametrize(
    ("child", "said"),
    [
        ({"capability": "fly"}, "a role with the capability fly"),
        ({"capability": "dig", "owner": "nobody"}, "tasks.k.owner"),
        ({"capability": "dig", "requires": ["a"]}, "requires, which it cannot"),
        ({"capability": "dig", "max_attempts": 0}, "tasks.k.max_attempts"),
        ({"capability": "dig", "colour": 1}, "the unknown key colour"),
        ({"capability": "dig", "output_schema": {"type": "nonsense"}}, "tasks.k.output_schema"),
        ({}, "tasks.k.capability"),
    ],
)
def test_a_child_that_the_team_cannot_have_is_refused_and_said_why(
    parent: Stepped, child: dict[str, Any], said: str
) -> None:
    reply = spawn(parent, **child)
    assert (reply["status"], reply["word"]) == ("refused", "malformed")
    assert said in reply["detail"], reply["detail"]
    assert parent.task("a[0]") == {}


def test_only_owners_that_the_role_may_spawn_for_are_allowed(parent: Stepped) -> None:
    assert spawn(parent, "h", capability="help")["state"] == "pending", "the only role that has it"
    assert parent.task("a[0]")["role"] == "helper"
    assert spawn(parent, "o", capability="order")["word"] == "not_allowed"
    assert spawn(parent, "b", capability="dig", owner="boss")["word"] == "not_allowed"


def test_without_may_spawn_a_role_spawns_for_itself_alone(stepped: Stepped) -> None:
    made = team()
    del made["roles"][ROLE]["may_spawn"]
    stepped.submit(made)
    stepped.start("a")
    assert spawn(stepped, "d", capability="dig")["state"] == "pending"
    assert spawn(stepped, "h", capability="help")["word"] == "not_allowed"


def test_number_and_depth_are_limited_by_the_team(stepped: Stepped) -> None:
    stepped.submit(team(limits={"max_children": 2, "max_depth": 1}))
    stepped.start("a")
    spawn(stepped, "one", capability="dig")
    stepped.start("a[0]")
    assert spawn(stepped, "deep", "a[0]", capability="dig")["word"] == "spawn_limit"
    assert spawn(stepped, "two", capability="dig")["state"] == "pending"
    assert spawn(stepped, "three", capability="dig")["word"] == "spawn_limit"
    assert spawn(stepped, "one", capability="dig")["child"] == "a[0]", "what there is can still be found"


def test_a_reserve_is_obligatory_where_the_team_limits_it(stepped: Stepped) -> None:
    stepped.submit(
        team(limits={"tokens": 100}, tasks={"a": {"capability": "work", "reserve": {"tokens": 10}}})
    )
    stepped.start("a")
    assert "reserve.tokens" in spawn(stepped, "x", capability="dig")["detail"]
    assert spawn(stepped, "y", capability="dig", reserve={"tokens": 30})["state"] == "pending"
    assert stepped.run()["reserved_tokens"] == "40", "one budget for parent and children"
    assert (
        "at most the whole limit" in spawn(stepped, "z", capability="dig", reserve={"tokens": 300})["detail"]
    )


def test_a_childs_result_is_held_to_its_own_contract(parent: Stepped) -> None:
    spawn(parent, capability="dig", output_schema=SCHEMA, max_attempts=1)
    parent.start("a[0]")
    parent.end("a[0]", {"m": 1})
    reply = spawn(parent, capability="dig")
    assert (reply["state"], reply["error"]["class"]) == ("failed", "invalid_output")
    spawn(parent, "long", capability="dig", output_bytes=10)
    parent.work("a[1]", "x" * 20)
    assert parent.state("a[1]") == "failed"
    spawn(parent, "good", capability="dig", output_schema=SCHEMA)
    parent.work("a[2]", {"n": 1})
    assert spawn(parent, "good", capability="dig")["result"] == {"n": 1}


def test_a_childs_result_is_not_held_to_its_parents_contract(stepped: Stepped) -> None:
    rule = {"name": "odd", "ends": "stopped", "rule": {"result": {"task": "a", "at": "/n", "equals": 1}}}
    tasks = {"a": {"capability": "work", "output_schema": {"type": "array"}}}
    stepped.submit(team(tasks=tasks, stop_when=[rule]))
    stepped.start("a")
    spawn(stepped, capability="dig")
    stepped.work("a[0]", {"n": 1})
    assert stepped.state("a[0]") == "succeeded"
    assert stepped.run()["status"] == "running", "no rule about the parent looks at it"


def test_a_parent_waits_without_a_worker_and_begins_anew(parent: Stepped) -> None:
    spawn(parent, "one", capability="dig")
    spawn(parent, "bg", background=1, capability="dig")
    parent.end("a", outcome="children")
    assert (parent.state("a"), parent.task("a")["waits_for"]) == ("awaiting", "children")
    assert parent.task("a")["lease"] == ""
    parent.work("a[0]", 5)
    assert parent.start("a", attempt=2)["kind"] == "grant", "the background child is not waited for"


def test_an_artifact_is_recorded(parent: Stepped) -> None:
    digest = "sha256:" + "a" * 64
    assert (
        say(parent, ArtifactMade, name="log", digest=digest, size=3, url="file:///x")["status"] == "applied"
    )
    assert "artifact_recorded" in parent.kinds()
