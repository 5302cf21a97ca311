"""Owns the compiled form of rules: what Lua reads, and the numbered facts about results that Lua only looks up.

Lua never opens a payload (SPEC 3): the facts that rules need are computed here when a result arrives, and passed with
it. Inputs never change, so what a rule says about them is decided when the run is made. Must not read rule syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.team.rules.syntax import (
    AtLeast,
    Const,
    Group,
    InputIs,
    Not,
    ReporterRole,
    ResultIs,
    Rule,
    SignalGiven,
    StateOf,
    Succeeded,
    Test,
    parts,
)

if TYPE_CHECKING:
    from coordinator.team.models import Team


@dataclass(frozen=True, slots=True)
class Fact:
    """One question to a task's result. id: `f1`, `f2`, ... in the order of the file."""

    id: str
    at: str
    test: Test


FactKey = tuple[str, str, Test]
Facts = dict[FactKey, str]


def number_facts(rules: Iterable[Rule]) -> Facts:
    """Gives each different question to a result its id; the rules come in the order of the file."""
    ids: Facts = {}
    for rule in rules:
        for part in parts(rule):
            if isinstance(part, ResultIs):
                ids.setdefault((part.task, part.at, part.test), f"f{len(ids) + 1}")
    return ids


def facts_for(team: Team, task: str, payload: Any) -> list[str]:
    """The ids of the facts that hold for a task's result (a value as `wire.digest.parse_json` gives it)."""
    return [fact.id for fact in team.facts_of.get(task, ()) if fact.test.holds(payload, fact.at)]


def compile_rule(rule: Rule, inputs: Mapping[str, Any], ids: Facts) -> list[Any]:
    """The rule as Lua reads it; what is known of it from the inputs is folded to `const`."""
    if isinstance(rule, Group):
        return _compile_group(rule, inputs, ids)
    if isinstance(rule, Not):
        inner = compile_rule(rule.rule, inputs, ids)
        return ["const", 1 - inner[1]] if inner[0] == "const" else ["not", inner]
    if isinstance(rule, Const):
        return ["const", int(rule.value)]
    if isinstance(rule, AtLeast):
        return ["ge", rule.fact, rule.n]
    if isinstance(rule, Succeeded):
        return ["succeeded", rule.count, list(rule.tasks)]
    if isinstance(rule, StateOf):
        return ["state", rule.task, rule.state]
    if isinstance(rule, ReporterRole):
        return ["role", rule.role]
    if isinstance(rule, SignalGiven):
        return ["signal", rule.name]
    if isinstance(rule, InputIs):
        return ["const", int(rule.name in inputs and rule.test.holds(inputs[rule.name], rule.at))]
    return ["fact", ids[(rule.task, rule.at, rule.test)]]


def thresholds(rules: Iterable[list[Any]], fact: str) -> list[int]:
    """The values in ms at which compiled rules ask for `elapsed` or `idle`, ascending."""
    found: set[int] = set()
    stack = list(rules)
    while stack:
        rule = stack.pop()
        if rule[0] == "ge" and rule[1] == fact:
            found.add(rule[2])
        elif rule[0] in ("all", "any", "not"):
            stack.extend(rule[1:])
    return sorted(found)


def _compile_group(group: Group, inputs: Mapping[str, Any], ids: Facts) -> list[Any]:
    absorbing = int(group.word == "any")
    compiled = [compile_rule(rule, inputs, ids) for rule in group.rules]
    if ["const", absorbing] in compiled:
        return ["const", absorbing]
    compiled = [rule for rule in compiled if rule[0] != "const"]
    if len(compiled) < 2:
        return compiled[0] if compiled else ["const", 1 - absorbing]
    return [group.word, *compiled]
