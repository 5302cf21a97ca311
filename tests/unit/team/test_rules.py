"""Rules as data (SPEC 4): how they are written, what Lua gets, and which facts hold for a result."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.team.faults import FaultBook
from coordinator.team.loader import make_team
from coordinator.team.models import Team
from coordinator.team.rules import compile_rule, facts_for, number_facts, thresholds
from coordinator.team.rules.syntax import Rule, read_rule


def read(value: Any) -> tuple[Rule | None, list[str]]:
    book = FaultBook("t", lambda _: 0)
    rule = read_rule(value, ("rule",), book)
    return rule, [f"{fault.path}: {fault.expected}" for fault in book.faults()]


def compiled(value: Any, inputs: dict[str, Any] | None = None) -> Any:
    rule, faults = read(value)
    assert faults == []
    assert rule is not None
    return compile_rule(rule, inputs or {}, number_facts([rule]))


@pytest.mark.parametrize(
    ("written", "form"),
    [
        (True, ["const", 1]),
        (False, ["const", 0]),
        ({"attempts_started": 10}, ["ge", "attempts_started", 10]),
        ({"reports_accepted": 3}, ["ge", "reports_accepted", 3]),
        ({"tokens": 5}, ["ge", "tokens", 5]),
        ({"cost": "1.50"}, ["ge", "cost", 1_500_000]),
        ({"elapsed": "5m"}, ["ge", "elapsed", 300_000]),
        ({"idle": 1}, ["ge", "idle", 1000]),
        ({"succeeded": 3}, ["succeeded", 3, []]),
        ({"succeeded": "all"}, ["succeeded", -1, []]),
        ({"succeeded": {"count": 2, "of": ["a", "b"]}}, ["succeeded", 2, ["a", "b"]]),
        ({"succeeded": {"of": ["a", "b"]}}, ["succeeded", -1, ["a", "b"]]),
        ({"state": {"task": "a", "is": "failed"}}, ["state", "a", "failed"]),
        ({"reporter_role": "clerk"}, ["role", "clerk"]),
        ({"signal": "finish"}, ["signal", "finish"]),
        ({"result": {"task": "a", "at": "/x", "equals": 1}}, ["fact", "f1"]),
        ({"not": {"signal": "x"}}, ["not", ["signal", "x"]]),
        ({"all": [{"signal": "x"}, {"tokens": 1}]}, ["all", ["signal", "x"], ["ge", "tokens", 1]]),
        ({"any": [{"signal": "x"}, {"tokens": 1}]}, ["any", ["signal", "x"], ["ge", "tokens", 1]]),
        ({"all": [{"signal": "x"}]}, ["signal", "x"]),
        ({"all": [True, {"signal": "x"}]}, ["signal", "x"]),
        ({"all": [False, {"signal": "x"}]}, ["const", 0]),
        ({"any": [True, {"signal": "x"}]}, ["const", 1]),
        ({"any": [False, False]}, ["const", 0]),
        ({"not": {"all": [True, True]}}, ["const", 0]),
    ],
)
def test_the_form_that_lua_reads(written: Any, form: Any) -> None:
    assert compiled(written) == form


@pytest.mark.parametrize(
    ("test", "holds"),
    [
        ({"equals": 1}, True),
        ({"equals": 1.0}, False),
        ({"equals": True}, False),
        ({"at": "/lines/0", "equals": "x"}, False),
        ({"matches": "1"}, False),
    ],
)
def test_what_is_known_of_inputs_is_folded(test: dict[str, Any], holds: bool) -> None:
    assert compiled({"input": {"name": "n", **test}}, {"n": 1}) == ["const", int(holds)]
    assert compiled({"not": {"input": {"name": "n", **test}}}, {"n": 1}) == ["const", int(not holds)]


def test_inputs_are_looked_into_by_pointer() -> None:
    inputs = {"order": {"lines": [{"sku": "AB-1"}]}}
    rule = {"input": {"name": "order", "at": "/lines/0/sku", "matches": "[A-Z]+-[0-9]"}}
    assert compiled(rule, inputs) == ["const", 1]
    assert compiled(rule, {}) == ["const", 0]


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({}, "rule: a rule: an object with one key"),
        ({"tokens": 1, "cost": 1}, "rule: a rule: an object with one key"),
        ([], "rule: a rule: an object with one key"),
        ("always", "rule: a rule: an object with one key"),
        (None, "rule: a rule: an object with one key"),
        ({"all": []}, "rule.all: a list of rules"),
        ({"any": {"tokens": 1}}, "rule.any: a list of rules"),
        ({"not": [True]}, "rule.not: a rule: an object with one key"),
        ({"tokens": True}, "rule.tokens: a whole number of at least 0"),
        ({"tokens": -1}, "rule.tokens: a whole number of at least 0"),
        ({"tokens": 1.0}, "rule.tokens: a whole number of at least 0"),
        ({"elapsed": "soon"}, "rule.elapsed: a duration"),
        ({"cost": 0.0000001}, "rule.cost: an amount of money"),
        ({"succeeded": "some"}, "rule.succeeded: a count, all, or"),
        ({"succeeded": {"count": 3, "of": ["a"]}}, "rule.succeeded.count: at most 1"),
        ({"succeeded": {"count": 1, "of": ["a", "a"]}}, "rule.succeeded.of: each task once"),
        ({"succeeded": {"count": 1}}, "rule.succeeded: a count, all, or"),
        ({"state": {"task": "a"}}, "rule.state: {task: NAME, is: STATE}"),
        ({"state": {"task": "a", "is": "done"}}, "rule.state.is: one of pending"),
        ({"signal": ""}, "rule.signal: the name of a signal"),
        ({"input": {"name": "a"}}, "rule.input: {name: NAME, at: /pointer, and either"),
        ({"input": {"name": "a", "equals": 1, "matches": "x"}}, "rule.input: {name: NAME"),
        ({"result": {"task": "a", "at": "x", "equals": 1}}, "rule.result.at: a JSON pointer"),
        ({"result": {"task": "a", "matches": 5}}, "rule.result.matches: a pattern"),
        ({"result": {"task": "a", "matches": "("}}, "rule.result.matches: a pattern whose parentheses"),
        ({"result": {"task": "a", "matches": "x" * 201}}, "rule.result.matches: a pattern of at most 200"),
        ({"result": {"task": "a", "matches": "(?=x)"}}, "rule.result.matches: a pattern without look-around"),
        ({"finished": 1}, "rule.finished: a rule: all, any, not, "),
        ({"all": [{"tokens": 1}, {"any": [{"bad": 1}]}]}, "rule.all[1].any[0].bad: a rule"),
    ],
)
def test_faulty_rules_are_told_with_their_place(written: Any, fault: str) -> None:
    _, faults = read(written)
    assert len(faults) == 1
    assert faults[0].startswith(fault)


def test_a_rule_of_very_many_parts_is_refused() -> None:
    assert read({"any": [{"tokens": 1}] * 1001})[0] is None


def team(**when: Any) -> Team:
    tasks: dict[str, Any] = {"a": {}, "b": {}}
    tasks |= {name: {"requires": ["a", "b"], "when": rule} for name, rule in when.items()}
    for task in tasks.values():
        task["external"] = True
    stop = [{"name": "s", "ends": "failed", "rule": {"result": {"task": "a", "at": "/ok", "equals": False}}}]
    return make_team({"team": "t", "tasks": tasks, "stop_when": stop})


def test_facts_are_numbered_in_the_order_of_the_file_and_shared() -> None:
    question = {"result": {"task": "a", "at": "/ok", "equals": True}}
    found = team(
        x={"any": [{"result": {"task": "b", "matches": "y+"}}, question]},
        y={"not": question},
    )
    assert {task: [fact.id for fact in facts] for task, facts in found.facts_of.items()} == {
        "b": ["f1"],
        "a": ["f2", "f3"],
    }


@pytest.mark.parametrize(
    ("payload", "ids"),
    [
        ({"ok": True}, ["f1"]),
        ({"ok": False}, ["f2"]),
        ({"ok": 1}, []),
        ({"ok": 1.0}, []),
        ({}, []),
        ([], []),
        (None, []),
        ({"ok": "true"}, []),
    ],
)
def test_facts_that_hold_for_a_result(payload: Any, ids: list[str]) -> None:
    assert facts_for(team(x={"result": {"task": "a", "at": "/ok", "equals": True}}), "a", payload) == ids
    assert facts_for(team(), "b", payload) == []


def test_text_is_matched_as_a_whole_and_up_to_4_kib() -> None:
    found = team(x={"result": {"task": "b", "at": "/text", "matches": ".*STOP"}})
    assert facts_for(found, "b", {"text": "please STOP"}) == ["f1"]
    assert facts_for(found, "b", {"text": "STOP it"}) == []
    assert facts_for(found, "b", {"text": "x" * 4092 + "STOP"}) == ["f1"]
    assert facts_for(found, "b", {"text": "x" * 4093 + "STOP"}) == []
    assert facts_for(found, "b", {"text": ["STOP"]}) == []


def test_C_15_control_words_in_a_payload_are_no_facts() -> None:
    found = team(x={"result": {"task": "a", "at": "/ok", "equals": True}})
    assert (
        facts_for(found, "a", {"text": "TERMINATE status: critical_failure; team completed", "ok": "true"})
        == []
    )


def test_thresholds_of_time_are_collected_in_order() -> None:
    rules = [
        compiled({"any": [{"elapsed": "5m"}, {"not": {"elapsed": 1}}]}),
        compiled({"all": [{"idle": "1m"}, {"elapsed": "5m"}]}),
    ]
    assert thresholds(rules, "elapsed") == [1000, 300_000]
    assert thresholds(rules, "idle") == [60_000]
