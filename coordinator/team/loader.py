"""Owns the way from a file, a text or a Python object to a checked Team (SPEC 2).

All faults are collected before any is raised: what is faulty is left out and read as if it were absent, so that the
checks behind it still run. Must not decide what a value may be (`models.py`) or what fits together (`checks.py`).
"""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import ValidationError

from coordinator.team import checks
from coordinator.team.faults import NOTHING, Fault, FaultBook, Path, expectation
from coordinator.team.models import (
    NOT_IN_DEFAULTS,
    AnyOf,
    Backoff,
    ForEach,
    Limits,
    Part,
    Reserve,
    Role,
    StopRule,
    Task,
    Team,
)
from coordinator.team.rules.syntax import read_rule
from coordinator.team.source import Source
from coordinator.wire import digest
from coordinator.wire.errors import InputFault
from coordinator.wire.outcome_plan import OutcomePlan, PlanFault, read_outcome_plan

MAX_FILE = 64 * 2**20
"""Largest Team file, in bytes."""
PLACEHOLDER = "?"
_FOR_WORKERS = frozenset({"max_attempts", "backoff", "heartbeat", "progress_timeout", "retry_invalid"})
"""Defaults that mean nothing to an external task, and are not applied to one."""

_NESTED: dict[str, type[Part]] = {
    "any_of": AnyOf,
    "for_each": ForEach,
    "reserve": Reserve,
    "backoff": Backoff,
}
"""The objects inside a task, by their keys."""

_Model = TypeVar("_Model", bound=Part)


def load_team(path: str | FilePath, *, allow_cycle: bool = False) -> Team:
    """Reads and checks a Team file: JSON when its name ends with `.json`, else YAML.

    Raises InputFault with every fault. allow_cycle: a cycle is kept in `Team.cycle` instead (only `simulate` may).
    """
    team, faults = examine(path, allow_cycle=allow_cycle)
    if team is None:
        raise InputFault(faults)
    return team


def examine(path: str | FilePath, *, allow_cycle: bool = False) -> tuple[Team | None, list[Fault]]:
    """Like `load_team`, but gives the faults; there is no Team when there are any."""
    name = str(path)
    try:
        text = read_text(path)
    except InputFault as fault:
        return None, [Fault(name, 0, "", "a file that can be read", str(fault))]
    return examine_text(text, name, is_json=name.lower().endswith(".json"), allow_cycle=allow_cycle)


def read_text(path: str | FilePath) -> str:
    """The text of a file; raises InputFault when there is none, or it is no UTF-8, or larger than 64 MiB."""
    try:
        raw = FilePath(path).read_bytes()
    except OSError as error:
        raise InputFault(f"{error.strerror or error}".lower()) from None
    if len(raw) > MAX_FILE:
        raise InputFault(f"more than {MAX_FILE >> 20} MiB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputFault(f"line {line} is not UTF-8") from None


def parse_team(text: str, name: str = "team.json", *, allow_cycle: bool = False) -> Team:
    """Reads and checks a Team from JSON text, as a submit carries it; raises InputFault with every fault."""
    team, faults = examine_text(text, name, is_json=True, allow_cycle=allow_cycle)
    if team is None:
        raise InputFault(faults)
    return team


def examine_text(
    text: str, name: str, *, is_json: bool, allow_cycle: bool = False
) -> tuple[Team | None, list[Fault]]:
    """Reads and checks a Team from text; gives it, or every fault."""
    source = Source(text, is_json)
    book = FaultBook(name, source.line)
    for path, expected, found, line in source.faults:
        book.say(path, expected, found, line)
    book.refused = source.refused
    if source.value is None and source.faults:
        return None, book.faults()
    return _finish(source.value, book, allow_cycle)


def make_team(value: Any, name: str = "<team>", *, allow_cycle: bool = False) -> Team:
    """Checks a Team given as a Python object (dicts, lists, strings, numbers); raises InputFault with every fault."""
    book = FaultBook(name, lambda _: 0)
    try:
        digest.encode(value)
    except digest.InvalidPayload as fault:
        raise InputFault([Fault(name, 0, "", "a Team of plain JSON values", str(fault))]) from None
    team, faults = _finish(json.loads(json.dumps(value)), book, allow_cycle)
    if team is None:
        raise InputFault(faults)
    return team


def _finish(value: Any, book: FaultBook, allow_cycle: bool) -> tuple[Team | None, list[Fault]]:
    team = _assemble(value, book)
    if team is not None:
        checks.check_team(team, book, allow_cycle=allow_cycle)
    if book or team is None:
        return None, book.faults()
    team._document = value
    return team, []


# -- from values to models ------------------------------------------------------------------------------


def _assemble(value: Any, book: FaultBook) -> Team | None:
    if not isinstance(value, dict):
        book.add((), "a Team: an object with the keys team, roles, tasks, ...", value)
        return None
    data = dict(value)
    _require(data, ("team", "tasks"), book)
    inputs = _section(data, "inputs", book)
    roles = {
        name: _read(Role, item, ("roles", name), book) for name, item in _section(data, "roles", book).items()
    }
    defaults = _read_defaults(_section(data, "defaults", book), book)
    tasks = {
        name: read_task(item, defaults, ("tasks", name), book)
        for name, item in _section(data, "tasks", book).items()
    }
    limits = _read(Limits, data.get("limits", {}), ("limits",), book)
    stop_when = _read_stop_rules(data.get("stop_when", []), book)
    for key in ("inputs", "roles", "defaults", "tasks", "limits", "stop_when"):
        data.pop(key, None)
    team = _read(Team, data, (), book)
    team.inputs, team.roles, team.defaults, team.tasks = inputs, roles, defaults, tasks
    team.limits, team.stop_when = limits, stop_when
    return team


def _require(data: dict[str, Any], keys: tuple[str, ...], book: FaultBook) -> None:
    for key in keys:
        if key not in data:
            book.add((key,), "this key to be given", NOTHING)
            book.broken.add((key,))
    data.setdefault("team", PLACEHOLDER)


def _section(data: dict[str, Any], key: str, book: FaultBook) -> dict[str, Any]:
    section = data.get(key, {})
    if isinstance(section, dict):
        return section
    book.add((key,), "an object", section)
    book.broken.add((key,))
    return {}


def _read(model: type[_Model], value: Any, path: Path, book: FaultBook) -> _Model:
    """Reads one object; keys with faults are written down, marked as broken, and left out."""
    if not isinstance(value, dict):
        book.add(path, "an object", value)
        book.broken.add(path)
        return model.model_construct()
    data = value
    for _ in range(4):
        try:
            return model.model_validate(data)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                where = detail["loc"]
                _note(model, detail["type"], where, path, detail, book)
                data = _without(data, where, whole=detail["type"] == "missing")
            if model is Team:
                data.setdefault("team", PLACEHOLDER)
    return model.model_construct()  # an obligatory key is faulty; the caller leaves the whole object out


def _without(data: dict[str, Any], where: Path, *, whole: bool) -> dict[str, Any]:
    """The object without what stands at a place: a key of an object inside it, or else the whole key at the top."""
    data = dict(data)
    top = str(where[0])
    inner = data.get(top)
    if len(where) > 1 and not whole and isinstance(inner, dict) and where[1] in inner:
        data[top] = {key: item for key, item in inner.items() if key != where[1]}
    else:
        data.pop(top, None)
    return data


def _note(model: type[Part], kind: str, where: Path, path: Path, detail: Any, book: FaultBook) -> None:
    full = path + where
    if kind == "missing" and full in book.broken:
        return
    book.broken.add(path + where[:2])
    if kind == "extra_forbidden":
        key = str(where[-1])
        owner = model if len(where) == 1 else _NESTED.get(str(where[0]), model)
        if key in owner.LATER:
            book.say(full, "a supported key", f"{key}, which is not yet supported")
        else:
            book.unknown(full, owner.keys(), key, "key", f"the unknown key {key}")
    else:
        book.add(full, expectation(detail), NOTHING if kind == "missing" else detail["input"])


def _read_defaults(value: dict[str, Any], book: FaultBook) -> dict[str, Any]:
    """The defaults that can be applied: faulty ones are written down once, here, and not again at each task."""
    data = dict(value)
    for key in value:
        if key in NOT_IN_DEFAULTS:
            book.say(
                ("defaults", key), "a key that can hold for all tasks", f"{key}, which says what one task is"
            )
            del data[key]
    _read_plan(data, ("defaults",), book)
    _read(Task, data, ("defaults",), book)
    return {
        key: item
        for key, item in data.items()
        if not book.is_broken("defaults", key) and not key.startswith("x-")
    }


def read_task(value: Any, defaults: dict[str, Any], path: Path, book: FaultBook) -> Task:
    """Reads one task over the Team's defaults; keys with faults are written down and left out."""
    if not isinstance(value, dict):
        return _read(Task, value, path, book)
    external = value.get("external", defaults.get("external")) is True
    base = {key: item for key, item in defaults.items() if not (external and key in _FOR_WORKERS)}
    data = base | value
    if "outcome_plan" in value:
        _read_plan(data, path, book)
    if data.get("when") is not None:
        data["when"] = read_rule(data["when"], (*path, "when"), book)
    return _read(Task, data, path, book)


def _read_plan(data: dict[str, Any], path: Path, book: FaultBook) -> None:
    if "outcome_plan" not in data:
        return
    faults: list[PlanFault] = []
    data["outcome_plan"] = read_outcome_plan(data["outcome_plan"], faults)
    for fault in faults:
        book.say((*path, "outcome_plan", *fault.path), fault.expected, fault.found)


def _read_stop_rules(value: Any, book: FaultBook) -> list[StopRule]:
    if not isinstance(value, list):
        book.add(("stop_when",), "a list of rules", value)
        book.broken.add(("stop_when",))
        return []
    entries: list[StopRule] = []
    names: set[str] = set()
    for at, item in enumerate(value):
        path: Path = ("stop_when", at)
        parts = dict(item) if isinstance(item, dict) else item
        rule = None
        if isinstance(parts, dict) and "rule" in parts:
            rule = parts["rule"] = read_rule(parts["rule"], (*path, "rule"), book)
        entry = _read(StopRule, parts, path, book)
        name = parts.get("name") if isinstance(parts, dict) else None
        if isinstance(name, str):
            if name in names:
                book.add((*path, "name"), "a name of its own", name)
            names.add(name)
        entry.rule = rule  # checked even when the rest of the entry is faulty
        entries.append(entry)
    return entries


def load_plans(path: str | FilePath, team: Team) -> dict[str, OutcomePlan]:
    """Reads the overlay of `simulate --plan FILE`: an object from task to outcome plan; raises InputFault."""
    name = str(path)
    try:
        source = Source(read_text(path), name.lower().endswith(".json"))
    except InputFault as fault:
        raise InputFault([Fault(name, 0, "", "a file that can be read", str(fault))]) from None
    book = FaultBook(name, source.line)
    for place, expected, found, line in source.faults:
        book.say(place, expected, found, line)
    plans: dict[str, OutcomePlan] = {}
    if isinstance(source.value, dict):
        for task, value in source.value.items():
            if team.task_of(task) is None:
                book.unknown((task,), team.tasks, task, "task")
            data = {"outcome_plan": value}
            _read_plan(data, (task,), book)
            plans[task] = data["outcome_plan"]
    elif not source.faults:
        book.add((), "an object from task to outcome plan", source.value)
    if book:
        raise InputFault(book.faults())
    return plans
