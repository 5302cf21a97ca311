"""Owns the judging of values that come from outside against a Team: run inputs, results, what `for_each` runs over,
and the children that handlers make.

What Lua needs to know about a payload is computed here, before the call (SPEC 3). Must not apply anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.team import checks, schema
from coordinator.team.faults import NOTHING, Fault, FaultBook, listed, shown
from coordinator.team.loader import read_task
from coordinator.team.models import NOT_FOR_CHILDREN, Task, Team
from coordinator.team.rules.facts import facts_for
from coordinator.wire import digest
from coordinator.wire.bindings import Unresolved, parse_reference, value_of
from coordinator.wire.errors import InputFault

MAX_INPUTS = 16 * 2**20
"""Largest inputs of a run, in bytes of canonical JSON."""


class NotElements(ValueError):
    """A `for_each` cannot run over this; the message says why (class permanent)."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of a result. fault: why it is no result of this task (`invalid_output`), empty when it is one.

    digest, facts: as the command wants them; size: bytes as they came.
    """

    fault: str
    size: int
    digest: str = ""
    facts: tuple[str, ...] = ()


def check_inputs(team: Team, given: Mapping[str, Any], source: str = "inputs") -> dict[str, Any]:
    """The inputs of a run, defaults filled in, in the order of the Team file.

    Raises InputFault with every unknown, missing or wrong one. source: where they came from, for the faults.
    """
    faults: list[Fault] = []

    def add(name: str, expected: str, found: str) -> None:
        faults.append(Fault(source, 0, name, expected, found))

    for name in given:
        if name not in team.inputs:
            add(f"inputs.{name}", listed(team.inputs, "input"), f"the unknown input {shown(name)}")
    values: dict[str, Any] = {}
    for name, declared in team.inputs.items():
        if name in given:
            try:
                values[name] = digest.parse_json(digest.encode(given[name]))
            except digest.InvalidPayload as fault:
                add(f"inputs.{name}", "a JSON value", str(fault))
                continue
            for place, said in schema.violations_at(declared, values[name]):
                where = f"inputs.{name}{'' if not place or place[0] == '[' else '.'}{place}"
                add(where, "a value that its schema accepts", f"{shown(values[name])}: {said}")
        elif isinstance(declared, dict) and "default" in declared:
            values[name] = declared["default"]
        else:
            add(f"inputs.{name}", "this input to be given", "nothing")
    if not faults and len(digest.canonical(values).encode()) > MAX_INPUTS:
        add("inputs", f"at most {MAX_INPUTS >> 20} MiB", "more")
    if faults:
        raise InputFault(faults)
    return values


def judge_result(team: Team, task: str, payload: str) -> Judgement:
    """Judges the text of a result by its task's contract: JSON, size, schema; and computes digest and facts (SPEC 6).

    For a child `T[3]` the contract is that of T; T's own result (the list) is held to its size alone.
    """
    definition = team.task_of(task)
    size = len(payload.encode(errors="surrogatepass"))
    if definition is None:
        return Judgement("", size)
    whole_list = definition.for_each is not None and task in team.tasks
    if size > definition.output_bytes and not whole_list:
        return Judgement(f"{size} bytes, more than output_bytes ({definition.output_bytes})", size)
    try:
        value = digest.parse_json(payload)
    except digest.InvalidPayload as fault:
        return Judgement(str(fault), size)
    if definition.output_schema is not None and not whole_list:
        broken = schema.violations(definition.output_schema, value)
        if broken:
            return Judgement("; ".join(broken)[:1000], size)
    return Judgement("", size, digest.digest(value), tuple(facts_for(team, task, value)))


def judge_child_result(output_schema: Any, output_bytes: int, payload: str) -> Judgement:
    """Judges the result of a child that a handler made, by the contract that it was made with. No rule asks for it."""
    size = len(payload.encode(errors="surrogatepass"))
    if size > output_bytes:
        return Judgement(f"{size} bytes, more than output_bytes ({output_bytes})", size)
    try:
        value = digest.parse_json(payload)
    except digest.InvalidPayload as fault:
        return Judgement(str(fault), size)
    broken = [] if output_schema is None else schema.violations(output_schema, value)
    return Judgement("; ".join(broken)[:1000], size) if broken else Judgement("", size, digest.digest(value))


def check_child(team: Team, role: str, key: str, text: str) -> Task:
    """The child that a handler of `role` asks for, over the Team's defaults (SPEC 8). text: task keys as JSON.

    Its owner is the role itself when that has the capability, else the only role that does. Raises InputFault with
    every fault.
    """
    book = FaultBook("spawn", lambda _: 0)
    path = ("tasks", key)
    try:
        given = digest.parse_json(text)
    except digest.InvalidPayload as fault:
        raise InputFault(f"spawn {key}: {fault}") from None
    if not isinstance(given, dict):
        raise InputFault(f"spawn {key}: expected an object of task keys, found {shown(given)}")
    for name in sorted(NOT_FOR_CHILDREN & given.keys()):
        book.say((*path, name), "a key that a child can have", f"{name}, which it cannot")
        del given[name]
    if "capability" not in given:
        book.add((*path, "capability"), "this key to be given", NOTHING)
        book.broken.add((*path, "capability"))
    defaults = {
        name: value
        for name, value in team.defaults.items()
        if name not in NOT_FOR_CHILDREN and name not in ("owner", "capability")
    }
    child = read_task(given, defaults, path, book)
    own = team.roles.get(role)
    if child.owner is None and own is not None and child.capability in own.capabilities:
        child.owner = role
    checks.check_child(team, key, child, book)
    if book:
        raise InputFault(book.faults())
    return child


def elements_of(team: Team, task: str, inputs: Mapping[str, Any], results: Mapping[str, Any]) -> list[Any]:
    """The list that a `for_each` task runs over. results: values by task, at least that of its source.

    Raises NotElements when the source has no such value, is no list, or has more than `max` elements.
    """
    definition = team.tasks[task].for_each
    if definition is None:
        raise NotElements(f"{task} has no for_each")
    reference = parse_reference({"from": definition.source, "at": definition.at})
    try:
        value = value_of(reference, inputs, results)
    except Unresolved as fault:
        raise NotElements(str(fault)) from None
    if not isinstance(value, list):
        raise NotElements(f"{reference} is no list but {shown(value)}")
    if len(value) > definition.max:
        raise NotElements(f"{reference} has {len(value)} elements, more than max ({definition.max})")
    return value


def source_task(team: Team, task: str) -> str:
    """The task whose result a `for_each` runs over; empty when it runs over an input."""
    definition = team.tasks[task].for_each
    if definition is None:
        return ""
    reference = parse_reference({"from": definition.source, "at": definition.at})
    return reference.name if definition.source.startswith("tasks.") else ""
