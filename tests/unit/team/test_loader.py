"""The contract of SPEC 2: every key, every default, and every fault with its place, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.team.compile import document_text
from coordinator.team.faults import Fault
from coordinator.team.loader import examine, examine_text, load_plans, load_team, make_team, parse_team
from coordinator.wire.errors import InputFault
from coordinator.wire.outcome_plan import PlannedOutcome

FULL = """
crewline: 1
team: refund-review
handlers: handlers.py
inputs:
  order_id: {type: string}
  lines: {type: array, default: []}
roles:
  clerk:  {capabilities: [read_order, read_policy]}
  editor: {capabilities: [polish]}
defaults: {max_attempts: 3, backoff: 2s, reserve: {tokens: 10, cost: 0}}
tasks:
  read_order:  {input: {id: {from: inputs.order_id}}}
  policy:      {owner: clerk, capability: read_policy, when: {input: {name: order_id, equals: A}}}
  style:
    capability: polish
    requires: [read_order]
    after: [policy]
    any_of: {count: 1, tasks: [read_order, policy]}
    required: false
    max_attempts: 5
    backoff: {first: 0, max: 1m}
    timeout: 1h30m
    queue_timeout: 250ms
    heartbeat: 1.5
    progress_timeout: 90
    idempotency_key: k
    input: {order: {from: tasks.read_order.result, at: /id}}
    output_schema: {type: object}
    output_bytes: 1000
    reserve: {tokens: 7, cost: 0.25}
    priority: -3
    retry_invalid: true
    skipped_ok: true
    outcome_plan: [transient_error, {outcome: success, result: 1, tokens: 5, cost: 0.1, duration: 2s}]
  lines:
    capability: read_order
    requires: [read_order]
    for_each: {from: tasks.read_order.result, at: /lines, max: 50, max_parallel: 5, min_success: 3}
    input: {line: {from: item, at: /sku}, n: {from: index}}
  outside: {external: true}
limits: {step_budget: 20, max_steps: 100, deadline: 10m, no_progress: 2m,
  no_progress_steps: 9, tokens: 200000, cost: 5.00}
on_required_failure: drain
on_completion: drain
on_limit: pause
stop_when:
- {name: enough, ends: completed, rule: {any: [{succeeded: 3}, {not: {state: {task: style, is: failed}}}]}}
output: {from: tasks.style.result}
x-note: {anything: [goes]}
"""


def faults_of(text: str, *, allow_cycle: bool = False) -> list[Fault]:
    return examine_text(text, "team.yaml", is_json=False, allow_cycle=allow_cycle)[1]


def team_text(task: str = "{}", top: str = "") -> str:
    """A Team of one task `a`; the task stands on line 4, what `top` adds from line 5 on."""
    return f"team: t\nroles: {{w: {{capabilities: [a, b]}}, v: {{capabilities: [b]}}}}\ntasks:\n  a: {task}\n{top}"


def test_every_key_of_the_contract_is_read() -> None:
    team, faults = examine_text(FULL, "team.yaml", is_json=False)
    assert faults == []
    assert team is not None
    style = team.tasks["style"]
    assert (style.owner, style.capability, style.required) == ("editor", "polish", False)
    assert (style.requires, style.after) == (["read_order"], ["policy"])
    assert style.any_of is not None
    assert (style.any_of.count, style.any_of.tasks) == (1, ["read_order", "policy"])
    assert (style.max_attempts, style.backoff.first, style.backoff.max) == (5, 0, 60_000)
    assert (style.timeout, style.queue_timeout, style.heartbeat, style.progress_timeout) == (
        5_400_000,
        250,
        1500,
        90_000,
    )
    assert (style.idempotency_key, style.output_bytes, style.priority) == ("k", 1000, -3)
    assert (style.reserve.tokens, style.reserve.cost) == (7, 250_000)
    assert style.retry_invalid
    assert style.skipped_ok
    plan = style.outcome_plan
    assert plan.attempt(1).outcome is PlannedOutcome.TRANSIENT_ERROR
    assert (plan.attempt(2).result, plan.attempt(2).cost_micros, plan.attempt(2).duration_ms) == (
        1,
        100_000,
        2000,
    )
    lines = team.tasks["lines"].for_each
    assert lines is not None
    assert (lines.source, lines.at, lines.max, lines.max_parallel, lines.min_success) == (
        "tasks.read_order.result", "/lines", 50, 5, 3,
    )  # fmt: skip
    limits = team.limits
    assert (limits.step_budget, limits.max_steps, limits.deadline, limits.no_progress) == (
        20,
        100,
        600_000,
        120_000,
    )
    assert (limits.no_progress_steps, limits.tokens, limits.cost) == (9, 200_000, 5_000_000)
    assert (team.on_required_failure, team.on_completion, team.on_limit) == ("drain", "drain", "pause")
    assert team.stop_when[0].name == "enough"
    assert team.output == {"from": "tasks.style.result"}
    assert team.handlers == "handlers.py"


def test_defaults_of_the_contract() -> None:
    task = make_team({"team": "t", "roles": {"w": {"capabilities": ["a"]}}, "tasks": {"a": {}}}).tasks["a"]
    assert (task.owner, task.capability, task.required, task.max_attempts) == ("w", "a", True, 1)
    assert (task.backoff.first, task.backoff.max) == (1000, 300_000)
    assert (task.timeout, task.queue_timeout, task.heartbeat, task.progress_timeout) == (
        3_600_000,
        None,
        30_000,
        None,
    )
    assert (task.idempotency_key, task.input, task.output_schema, task.output_bytes) == (
        None,
        {},
        None,
        2**20,
    )
    assert (task.priority, task.external, task.retry_invalid, task.skipped_ok) == (0, False, False, False)
    assert task.outcome_plan.attempt(1).outcome is PlannedOutcome.SUCCESS


def test_the_defaults_block_fills_in_and_a_task_wins() -> None:
    team, _ = examine_text(FULL, "team.yaml", is_json=False)
    assert team is not None
    assert team.tasks["read_order"].max_attempts == 3
    assert team.tasks["read_order"].backoff.first == 2000
    assert team.tasks["style"].max_attempts == 5
    outside = team.tasks["outside"]
    assert (outside.external, outside.max_attempts, outside.reserve.tokens) == (True, 1, 10)


def test_a_named_owner_without_the_capability_is_judged_at_run_time() -> None:
    team, faults = examine_text(team_text("{owner: v, capability: a}"), "team.yaml", is_json=False)
    assert faults == []
    assert team is not None
    assert team.tasks["a"].owner == "v"


@pytest.mark.parametrize("attempts", [0, -1, True, 1.0, 1.5, "2", None])
def test_C_43_odd_numbers_of_attempts_are_refused(attempts: Any) -> None:
    document = {
        "team": "t",
        "roles": {"w": {"capabilities": ["a"]}},
        "tasks": {"a": {"max_attempts": attempts}},
    }
    with pytest.raises(InputFault, match="max_attempts"):
        make_team(document)


@pytest.mark.parametrize(
    ("name", "good"),
    [("a", True), ("a.b-c_1", True), ("A" * 200, True), ("A" * 201, False), ("a b", False), ("-a", False),
     ("a[0]", False), ("é", False), ("", False), ("a--b", True)],
)  # fmt: skip
def test_names_of_tasks(name: str, good: bool) -> None:
    document = {"team": "t", "tasks": {name: {"external": True}}}
    if good:
        assert list(make_team(document).tasks) == [name]
    else:
        with pytest.raises(InputFault, match="a name of letters"):
            make_team(document)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a Team: an object"),
        ("[]", "a Team: an object"),
        ("team: x", "tasks: expected this key"),
        ("tasks: {a: {external: true}}", "team: expected this key"),
        ("team: x\ntasks: {}", "at least one task"),
        ("team: x\ntasks: 5", "an object, found 5"),
        ("team: x\ntasks:", "an object, found null"),
        ("{", "well-formed YAML"),
    ],
)
def test_what_is_no_team_gets_one_clear_fault(text: str, said: str) -> None:
    faults = faults_of(text)
    assert len(faults) == 1
    assert said in str(faults[0])


def test_anchors_and_merge_keys_work_and_extensions_are_free() -> None:
    text = """
team: t
x-base: &base {capability: go, max_attempts: 4, x-why: because}
roles: {w: {capabilities: [go], x-n: 1}}
tasks:
  a: *base
  b: {<<: *base, requires: [a], max_attempts: 2}
"""
    team, faults = examine_text(text, "team.yaml", is_json=False)
    assert faults == []
    assert team is not None
    assert [task.max_attempts for task in team.tasks.values()] == [4, 2]


def test_a_fault_behind_a_merge_has_the_line_on_which_it_was_written() -> None:
    text = "team: t\nx-b: &b\n  max_attempts: no\ntasks:\n  a: {<<: *b, external: true}\n"
    assert [(fault.line, fault.path) for fault in faults_of(text)] == [(3, "tasks.a.max_attempts")]


@pytest.mark.parametrize(
    ("cost", "micros"),
    [("5.00", 5_000_000), ("0.1", 100_000), ("0.000001", 1), ("'9007199254.740991'", 2**53 - 1),
     ("5", 5_000_000),
     ("'8600000000.000001'", 8_600_000_000_000_001), ("1e2", 100_000_000),
     ("'1.5'", 1_500_000), ("0.10000000", 100_000)],
)  # fmt: skip
def test_money_is_exact_decimal(cost: str, micros: int) -> None:
    team, faults = examine_text(
        team_text("{reserve: {cost: 0}}", f"limits: {{cost: {cost}}}"), "t", is_json=False
    )
    assert faults == []
    assert team is not None
    assert team.limits.cost == micros
    assert parse_team(document_text(team)).limits.cost == micros


@pytest.mark.parametrize(
    "cost", ["8600000000.000001", "5.0000000000000000000000001", "'1e3'", "' 1'", "'１'", "1e-7", "x"]
)
def test_money_that_would_not_stay_exact_is_refused(cost: str) -> None:
    faults = faults_of(team_text("{reserve: {cost: 0}}", f"limits: {{cost: {cost}}}"))
    assert [fault.path for fault in faults] == ["limits.cost"]


@pytest.mark.parametrize(
    ("span", "ms"),
    [("10m", 600_000), ("1s", 1000), ("250ms", 250), ("2h", 7_200_000), ("1d", 86_400_000), ("1h30m", 5_400_000),
     ("90", 90_000),
     ("0.25", 250), ("1.5s", 1500)],
)  # fmt: skip
def test_spans(span: str, ms: int) -> None:
    team, faults = examine_text(team_text(f"{{timeout: {span}}}"), "t", is_json=False)
    assert faults == []
    assert team is not None
    assert team.tasks["a"].timeout == ms


def test_files_are_told_apart_by_their_name(tmp_path: Path) -> None:
    yaml, json = tmp_path / "team.yaml", tmp_path / "team.json"
    yaml.write_text(team_text())
    json.write_text(document_text(load_team(yaml)), encoding="utf-8-sig")
    assert load_team(json).document == load_team(yaml).document
    json.write_text("{")
    _, faults = examine(json)
    assert str(faults[0]) == f"{json}:1: expected a key in double quotes or }}, found the end of the file"


@pytest.mark.parametrize("kind", ["missing", "folder", "latin-1"])
def test_a_file_that_cannot_be_read_is_one_fault(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "team.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "latin-1":
        path.write_bytes(b"a: 1\nb: \xe9\n")
    team, faults = examine(path)
    assert team is None
    assert len(faults) == 1
    assert "a file that can be read" in str(faults[0])
    with pytest.raises(InputFault):
        load_team(path)


@pytest.mark.parametrize("value", [{"team": {1: 2}}, {"team": float("nan")}, {"team": object()}, None, 5, []])
def test_python_objects_are_held_to_the_same_contract(value: Any) -> None:
    with pytest.raises(InputFault):
        make_team(value)


def test_a_plan_file_overlays_outcome_plans(tmp_path: Path) -> None:
    team = parse_team(document_text(examine_text(FULL, "t", is_json=False)[0] or pytest.fail("no team")))
    path = tmp_path / "plan.yaml"
    path.write_text("policy: permanent_error\n'lines[2]': [crash, success]\n")
    plans = load_plans(path, team)
    assert plans["policy"].attempt(3).outcome is PlannedOutcome.PERMANENT_ERROR
    assert plans["lines[2]"].attempt(1).outcome is PlannedOutcome.CRASH
    path.write_text("polcy: success\npolicy: [{outcome: nope}]\npolicy: success\n")
    with pytest.raises(InputFault) as caught:
        load_plans(path, team)
    assert len(caught.value.faults) == 3
