"""Every Lua file says what it takes and when it refuses; here that is held against the Python side and the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coordinator.machine import commands, keys, reads
from coordinator.machine.commands import Command
from coordinator.machine.library import LUA, Library
from coordinator.machine.reads import Query
from coordinator.machine.render import lua_table, main, stop_order
from coordinator.machine.transitions import TABLE
from coordinator.wire.names import Refusal, TaskState

COMMANDS = [cls for cls in vars(commands).values() if isinstance(cls, type) and issubclass(cls, Command)]
COMMANDS.remove(Command)
READS = [
    cls
    for cls in vars(reads).values()
    if isinstance(cls, type) and issubclass(cls, Query) and cls.__module__ == reads.__name__
]
READS = [cls for cls in READS if cls not in (Query, reads.Flat, reads.Records, reads.Texts)]


def lua_fields(path: Path) -> tuple[str, ...]:
    """The names in the file's `fields = {...}`."""
    found = re.search(r"fields = \{(.*?)\}", path.read_text(), re.DOTALL)
    assert found, f"{path.name} names no fields"
    return tuple(re.findall(r'"(\w+)"', found[1]))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda cls: cls.__name__)
def test_command_and_lua_file_bind_the_same_fields(command: type[Command]) -> None:
    path = LUA / "commands" / f"{command.name()}.lua"
    assert lua_fields(path) == command.own_fields()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda cls: cls.__name__)
def test_command_header_says_when_it_is_refused(command: type[Command]) -> None:
    """The header names each refusal word that the file itself uses, and no word that does not exist."""
    text = (LUA / "commands" / f"{command.name()}.lua").read_text()
    header = "".join(line for line in text.splitlines(keepends=True) if line.startswith("--"))
    assert header.startswith(f"-- {command.name()}: ")
    assert "Applied:" in header and "Events:" in header
    code = text[len(header) :]
    used = {word for word in re.findall(r'"([a-z_]+)"', code) if word in {r.value for r in Refusal}}
    assert used <= set(re.findall(r"[a-z_]+", header)), f"not in the header: {sorted(used)}"


@pytest.mark.parametrize("read", READS, ids=lambda cls: cls.__name__)
def test_read_and_lua_file_bind_the_same_fields(read: type[Query]) -> None:
    assert lua_fields(LUA / "reads" / f"{read.name()}.lua") == read.own_fields()


def test_every_lua_file_has_its_python_side() -> None:
    assert {path.stem for path in (LUA / "commands").glob("*.lua")} == {cls.name() for cls in COMMANDS}
    assert {path.stem for path in (LUA / "reads").glob("*.lua")} == {cls.name() for cls in READS}


def test_every_key_that_lua_names_is_in_the_map() -> None:
    used: set[str] = set()
    for path in LUA.rglob("*.lua"):
        used |= set(re.findall(r'Key\.of\("(\w+)"', path.read_text()))
    known = set(keys.RUN_KEYS) | set(keys.SHARED_KEYS) | {"control"}
    assert used <= known, f"not in keys.py: {sorted(used - known)}"
    ledgers = {"conflicts", "late"}
    assert known - {"control"} <= used | ledgers, f"in keys.py and unused: {sorted(known - used - ledgers)}"


def test_every_cause_in_the_table_is_used_and_every_used_cause_is_in_the_table() -> None:
    used: set[str] = set()
    for path in [*(LUA / "rules").glob("*.lua"), *(LUA / "commands").glob("*.lua")]:
        used |= set(re.findall(r'"([a-z_]+)"', path.read_text()))
    assert {row.cause for row in TABLE} <= used


def test_no_row_of_the_table_stands_twice() -> None:
    rows = [(row.cause, source, row.target) for row in TABLE for source in row.sources]
    assert len(rows) == len(set(rows))


def test_every_state_can_be_entered_and_only_ends_are_never_left() -> None:
    entered = {row.target for row in TABLE} | {TaskState.PENDING}
    left = {source for row in TABLE for source in row.sources}
    assert entered == set(TaskState)
    assert {TaskState.DENIED, TaskState.SKIPPED, TaskState.CANCELED} & left == set()


def test_generated_files_are_up_to_date() -> None:
    assert (LUA / "rules" / "table.lua").read_text() == lua_table()
    assert main(check=True) == 0


def test_an_error_names_its_file_and_line() -> None:
    library = Library.build()
    joined = library.code.splitlines()
    line = next(number for number, text in enumerate(joined, 1) if text.startswith("function Stop.judge"))
    own = (LUA / "rules" / "stop.lua").read_text().splitlines()
    expected = next(number for number, text in enumerate(own, 1) if text.startswith("function Stop.judge"))
    assert library.locate(f"user_function:{line}: boom") == f"rules/stop.lua:{expected}: boom"


def test_the_stop_order_is_that_of_the_specification() -> None:
    assert stop_order() == [
        "critical_failure",
        "completed",
        "stop_rule",
        "deadline_exceeded",
        "step_limit",
        "no_progress",
        "budget_exhausted",
    ]
