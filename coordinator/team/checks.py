"""Owns what must fit together in a Team: names, references, owners, budgets, templates, schemas, cycles (SPEC 2).

Runs over whatever the loader could read and adds to its book. It also fills in each task's capability and owner. Must
not repeat a fault of a key that is marked as broken.
"""

from __future__ import annotations

import re
from typing import Any

from coordinator.team import graph, schema
from coordinator.team.faults import NOTHING, FaultBook, Path
from coordinator.team.models import Task, Team
from coordinator.team.rules.syntax import (
    AtLeast,
    InputIs,
    ReporterRole,
    ResultIs,
    Rule,
    SignalGiven,
    StateOf,
    Succeeded,
    parts,
)
from coordinator.wire.bindings import (
    BadReference,
    Reference,
    SourceKind,
    is_pointer,
    is_reference,
    parse_reference,
    references,
)
from coordinator.wire.channels import ROLE_PATTERN, TASK_PATTERN

MAX_NAME = 200
MAX_ROLE_NAME = 64
_ROLE = re.compile(ROLE_PATTERN)
_TASK = re.compile(TASK_PATTERN)
_INPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def check_team(team: Team, book: FaultBook, *, allow_cycle: bool) -> None:
    """Adds every fault of what does not fit together; fills in capabilities and owners."""
    _check_names(team, book)
    _check_may_spawn(team, book)
    _check_schemas(team, book)
    holders = _holders(team)
    for name, task in team.tasks.items():
        _check_upstream(team, name, task, book)
        _fill_in(team, name, task, holders, book)
        _check_kind(name, task, book)
        _check_reserve(team, name, task, book)
        _check_for_each(team, name, task, book)
        _check_input(team, name, task, book)
        if task.when is not None:
            _check_when(team, name, task, book)
    for at, entry in enumerate(team.stop_when):
        if entry.rule is not None:
            _check_rule_names(team, entry.rule, ("stop_when", at, "rule"), book)
    _check_output(team, book)
    _check_required(team, book)
    cycle = graph.find_cycle(graph.edges_of(team))
    if cycle is not None:
        team._cycle = cycle
        if not allow_cycle:
            book.say(("tasks", cycle[0]), "tasks without a cycle", graph.cycle_text(cycle))


# -- names ----------------------------------------------------------------------------------------------


def _check_names(team: Team, book: FaultBook) -> None:
    if not book.is_broken("team") and not team.team.isprintable():
        book.add(("team",), "a name without control characters", team.team)
    for section, names, pattern, longest, expected in (
        ("roles", team.roles, _ROLE, MAX_ROLE_NAME, "letters, digits, _ and single -"),
        ("tasks", team.tasks, _TASK, MAX_NAME, "letters, digits, _ . and -, not beginning with . or -"),
        ("inputs", team.inputs, _INPUT, MAX_NAME, "letters, digits, _ and -, beginning with a letter or _"),
    ):
        for name in names:
            if len(name) > longest or not pattern.fullmatch(name):
                book.add((section, name), f"a name of {expected}, of at most {longest} characters", name)
    for name, role in team.roles.items():
        for at, capability in enumerate(role.capabilities):
            path = ("roles", name, "capabilities", at)
            if not _is_name(capability):
                book.add(path, "a name of letters, digits, _ . and -", capability)
        if len(set(role.capabilities)) < len(role.capabilities):
            book.add(("roles", name, "capabilities"), "each capability once", _twice(role.capabilities))


def _check_may_spawn(team: Team, book: FaultBook) -> None:
    for name, role in team.roles.items():
        for at, other in enumerate(role.may_spawn or ()):
            if other not in team.roles:
                book.unknown(("roles", name, "may_spawn", at), team.roles, other, "role")


def check_child(team: Team, name: str, child: Task, book: FaultBook) -> None:
    """Adds every fault of a child that a handler makes; fills in its owner. It stands in no graph."""
    _fill_in(team, name, child, _holders(team), book)
    _check_kind(name, child, book)
    _check_reserve(team, name, child, book)
    if child.output_schema is not None and (fault := schema.schema_fault(child.output_schema)) is not None:
        book.say(("tasks", name, "output_schema", *fault[0]), fault[1], fault[2])


def _twice(names: list[str]) -> str:
    """The first name that stands there again."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _is_name(text: str) -> bool:
    return len(text) <= MAX_NAME and _TASK.fullmatch(text) is not None


def _holders(team: Team) -> dict[str, list[str]]:
    holders: dict[str, list[str]] = {}
    for name, role in team.roles.items():
        for capability in dict.fromkeys(role.capabilities):
            holders.setdefault(capability, []).append(name)
    return holders


def _fill_in(team: Team, name: str, task: Task, holders: dict[str, list[str]], book: FaultBook) -> None:
    """Capability: the task's name. Owner: the only role that has it. A named owner without it is denied at run time."""
    path = ("tasks", name)
    if task.capability is None:
        task.capability = name
    elif not _is_name(task.capability):
        book.add((*path, "capability"), "a name of letters, digits, _ . and -", task.capability)
        book.broken.add((*path, "capability"))
    if task.owner is not None:
        if task.owner not in team.roles and not book.is_broken("roles"):
            book.unknown((*path, "owner"), team.roles, task.owner, "role")
        return
    if book.is_broken(*path, "owner") or book.is_broken(*path, "capability") or book.is_broken("roles"):
        return
    owners = holders.get(task.capability, [])
    if len(owners) == 1:
        task.owner = owners[0]
    elif not task.external and not book.is_broken(*path, "external") and not _any_role_broken(team, book):
        if owners:
            book.say(path, f"an owner, as several roles have {task.capability}", ", ".join(owners))
        else:
            book.say(path, f"a role with the capability {task.capability}", "none that has it")


def _any_role_broken(team: Team, book: FaultBook) -> bool:
    return bool(book.broken) and any(book.is_broken("roles", role, "capabilities") for role in team.roles)


# -- the graph ------------------------------------------------------------------------------------------


def _check_upstream(team: Team, name: str, task: Task, book: FaultBook) -> None:
    path: Path = ("tasks", name)
    _check_tasks(team, name, task.requires, (*path, "requires"), book)
    _check_tasks(team, name, task.after, (*path, "after"), book)
    if task.any_of is not None:
        _check_tasks(team, name, task.any_of.tasks, (*path, "any_of", "tasks"), book)
        if task.any_of.count > len(task.any_of.tasks):
            expected = f"at most {len(task.any_of.tasks)}, as many as `tasks` names"
            book.add((*path, "any_of", "count"), expected, task.any_of.count)


def _check_tasks(team: Team, name: str, others: list[str], path: Path, book: FaultBook) -> None:
    for at, other in enumerate(others):
        if other == name:
            book.say((*path, at), "another task", f"{name} itself")
        elif other not in team.tasks:
            book.unknown((*path, at), team.tasks, other, "task")
    if len(set(others)) != len(others):
        book.add(path, "each task once", _twice(others))


def _check_required(team: Team, book: FaultBook) -> None:
    if book.is_broken("tasks") or any(task.required for task in team.tasks.values()):
        return
    if not team.tasks:
        book.say(("tasks",), "at least one task", "none")
    elif not any(book.is_broken("tasks", name, "required") for name in team.tasks):
        book.say(("tasks",), "at least one required task", "only optional ones")


# -- kinds and budgets ----------------------------------------------------------------------------------


def _check_kind(name: str, task: Task, book: FaultBook) -> None:
    path: Path = ("tasks", name)
    if task.external:
        if task.max_attempts > 1:
            book.add((*path, "max_attempts"), "1, as the task is external", task.max_attempts)
        if task.for_each is not None:
            book.say(
                (*path, "for_each"),
                "a supported key",
                "for_each on an external task, which is not yet supported",
            )
    if task.backoff.max < task.backoff.first:
        book.add((*path, "backoff", "max"), "at least as much as `first`", task.backoff.max)


def _check_reserve(team: Team, name: str, task: Task, book: FaultBook) -> None:
    for key, limit, reserved in (
        ("tokens", team.limits.tokens, task.reserve.tokens),
        ("cost", team.limits.cost, task.reserve.cost),
    ):
        path: Path = ("tasks", name, "reserve", key)
        if limit is None or book.is_broken(*path):
            continue
        if reserved is None:
            book.add(path, f"a reserve, as the Team limits {key} (0 will do)", NOTHING)
        elif reserved > limit:
            shown_limit, shown_reserve = (
                (limit, reserved) if key == "tokens" else (_money(limit), _money(reserved))
            )
            book.say(path, f"at most the whole limit, {shown_limit}", str(shown_reserve))


def _money(micros: int) -> str:
    return f"{micros // 1_000_000}.{micros % 1_000_000:06}"


# -- references -----------------------------------------------------------------------------------------


def _check_for_each(team: Team, name: str, task: Task, book: FaultBook) -> None:
    if task.for_each is None:
        return
    path: Path = ("tasks", name, "for_each")
    if task.for_each.min_success > task.for_each.max:
        book.add((*path, "min_success"), f"at most `max`, {task.for_each.max}", task.for_each.min_success)
    if not is_pointer(task.for_each.at):
        book.add((*path, "at"), "a JSON pointer such as /lines", task.for_each.at)
        return
    try:
        reference = parse_reference({"from": task.for_each.source, "at": task.for_each.at})
    except BadReference:
        reference = Reference(SourceKind.INDEX)
    if reference.kind not in (SourceKind.INPUT, SourceKind.RESULT):
        book.add((*path, "from"), "inputs.NAME or tasks.TASK.result", task.for_each.source)
        return
    _check_reference(team, task.requires, reference, (*path, "from"), book, "requires")
    declared = team.inputs.get(reference.name) if reference.kind is SourceKind.INPUT else None
    if (
        isinstance(declared, dict)
        and not reference.at
        and declared.get("type", "array") not in ("array", ["array"])
    ):
        book.add((*path, "from"), "an input whose type is array", declared["type"])


def _check_input(team: Team, name: str, task: Task, book: FaultBook) -> None:
    if not task.has_input:
        return
    path: Path = ("tasks", name, "input")
    _check_secrets(task.input, path, book)
    for place, reference in references(task.input):
        where = (*path, *place)
        if isinstance(reference, BadReference):
            book.add(where, str(reference), _source_of(task.input, place))
        elif reference.kind in (SourceKind.ITEM, SourceKind.INDEX):
            if task.for_each is None and not book.is_broken("tasks", name, "for_each"):
                book.say(where, "`for_each` beside `from: item` or `from: index`", "none")
        else:
            _check_reference(team, task.requires, reference, where, book, "requires")


def _source_of(template: Any, place: Path) -> Any:
    for part in place:
        template = template[part]
    return template["from"]


def _check_secrets(template: Any, path: Path, book: FaultBook) -> None:
    stack: list[tuple[Path, Any]] = [(path, template)]
    while stack:
        where, item = stack.pop()
        if isinstance(item, dict):
            if item.keys() == {"secret"}:
                book.say(where, "a supported input", "{secret: NAME}, which is not yet supported")
            if not is_reference(item):
                stack.extend(((*where, key), inner) for key, inner in item.items())
        elif isinstance(item, list):
            stack.extend(((*where, at), inner) for at, inner in enumerate(item))


def _check_reference(
    team: Team, upstream: list[str], reference: Reference, path: Path, book: FaultBook, among: str
) -> None:
    if reference.kind is SourceKind.INPUT:
        _check_input_name(team, reference.name, path, book)
    elif reference.kind is SourceKind.RESULT:
        if reference.name not in team.tasks:
            book.unknown(path, team.tasks, reference.name, "task")
        elif reference.name not in upstream and not book.is_broken("tasks", str(path[1])):
            book.add(path, f"a task that this one names in {among}", reference.name)


def _check_input_name(team: Team, name: str, path: Path, book: FaultBook) -> None:
    if name not in team.inputs and not book.is_broken("inputs"):
        book.unknown(path, team.inputs, name, "input of the run")


def _check_output(team: Team, book: FaultBook) -> None:
    if team.output is None or book.is_broken("output"):
        return
    if not is_reference(team.output):
        book.add(("output",), "{from: tasks.TASK.result} or {from: inputs.NAME}", team.output)
        return
    try:
        reference = parse_reference(team.output)
    except BadReference as fault:
        book.add(("output", "from"), str(fault), team.output["from"])
        return
    if reference.kind not in (SourceKind.INPUT, SourceKind.RESULT):
        book.add(("output", "from"), "inputs.NAME or tasks.TASK.result", team.output["from"])
    else:
        _check_reference(team, list(team.tasks), reference, ("output", "from"), book, "the Team")


# -- rules ----------------------------------------------------------------------------------------------


def _check_when(team: Team, name: str, task: Task, book: FaultBook) -> None:
    rule = task.when
    assert rule is not None
    path: Path = ("tasks", name, "when")
    _check_rule_names(team, rule, path, book)
    for part in parts(rule):
        if isinstance(part, (AtLeast, Succeeded, ReporterRole, SignalGiven)):
            book.say(path, "only input, result and state in `when`", _fact_of(part))
        elif isinstance(part, ResultIs) and part.task in team.tasks and part.task not in task.requires:
            book.add((*part.path, "task"), "a task that this one names in requires", part.task)
        elif isinstance(part, StateOf) and part.task in team.tasks and part.task not in task.upstream:
            book.add(
                (*part.path, "task"), "a task that this one names in requires, after or any_of", part.task
            )


def _fact_of(rule: Rule) -> str:
    if isinstance(rule, AtLeast):
        return rule.fact
    names = {Succeeded: "succeeded", ReporterRole: "reporter_role"}
    return next((word for kind, word in names.items() if isinstance(rule, kind)), "signal")


def _check_rule_names(team: Team, rule: Rule, path: Path, book: FaultBook) -> None:
    for part in parts(rule):
        if isinstance(part, (StateOf, ResultIs)) and part.task not in team.tasks:
            book.unknown((*part.path, "task"), team.tasks, part.task, "task")
        elif isinstance(part, Succeeded):
            for at, task in enumerate(part.tasks):
                if task not in team.tasks:
                    book.unknown((*part.path, "of", at), team.tasks, task, "task")
            if not part.tasks and part.count > len(team.tasks):
                book.add(part.path, f"at most {len(team.tasks)}, as many as there are tasks", part.count)
        elif isinstance(part, ReporterRole) and part.role not in team.roles and not book.is_broken("roles"):
            book.unknown(part.path, team.roles, part.role, "role")
        elif isinstance(part, InputIs):
            _check_input_name(team, part.name, (*part.path, "name"), book)


# -- schemas --------------------------------------------------------------------------------------------


def _check_schemas(team: Team, book: FaultBook) -> None:
    for name, declared in team.inputs.items():
        fault = schema.schema_fault(declared)
        if fault is not None:
            book.say(("inputs", name, *fault[0]), fault[1], fault[2])
        elif isinstance(declared, dict) and "default" in declared:
            for place, said in schema.violations_at(declared, declared["default"]):
                book.say(
                    ("inputs", name, "default"),
                    "a default that its own schema accepts",
                    f"{place} {said}".strip(),
                )
    seen: set[int] = set()
    for name, task in team.tasks.items():
        declared = task.output_schema
        if declared is None or id(declared) in seen:
            continue
        seen.add(id(declared))
        fault = schema.schema_fault(declared)
        if fault is not None:
            book.say(("tasks", name, "output_schema", *fault[0]), fault[1], fault[2])
