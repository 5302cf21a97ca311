"""The house rules that a reader can count: sizes, names, and where a word may stand. Without exceptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("coordinator", "workers")
SOURCES = (*PACKAGES, "tests", "examples", "ops")
PYTHON_LINES = 400
FUNCTION_LINES = 50
LUA_LINES = 80
LUA_RULE_LINES = 120
FOLDER_FILES = 10
VAGUE = re.compile(r"(util|common|helper|misc)s?", re.IGNORECASE)
EXEMPTION = re.compile(
    r"#\s*(type: ignore|noqa)(?P<code>(\[[^\]]*\]|:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?)(?P<reason>.*)"
)
ONE_KIND = (
    "coordinator/cli",  # one file for each family of commands
    "coordinator/api",
    "coordinator/machine/lua",  # commands, reads, rules: one file for each
    "tests",
    "examples",
)
"""Folders in which every file is of one kind, so that their number says nothing."""


def files(folders: tuple[str, ...], suffix: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob(f"*{suffix}")):
            if path.is_file() and not {"__pycache__", ".crewline"} & set(path.parts):
                yield path


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def length(path: Path) -> int:
    return len(path.read_text().splitlines())


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def test_no_python_file_is_too_long() -> None:
    assert {name(p): length(p) for p in files(SOURCES, ".py") if length(p) > PYTHON_LINES} == {}


def test_no_function_is_too_long() -> None:
    found = {}
    for path in files(SOURCES, ".py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    found[f"{name(path)}:{node.name}"] = lines
    assert found == {}


def test_no_lua_file_is_too_long() -> None:
    found = {}
    for path in files(("coordinator",), ".lua"):
        allowed = LUA_LINES if path.parent.name in {"commands", "reads"} else LUA_RULE_LINES
        if length(path) > allowed and not path.read_text().startswith("-- Generated"):
            found[name(path)] = length(path)
    assert found == {}


def test_no_mixed_folder_holds_too_many_files() -> None:
    found = {}
    folders = {path.parent for path in files(SOURCES, ".py")}
    for folder in folders:
        if name(folder).startswith(ONE_KIND):
            continue
        held = [p for p in folder.iterdir() if p.is_file() and p.stem != "__init__" and p.suffix != ".typed"]
        if len(held) > FOLDER_FILES:
            found[name(folder)] = len(held)
    assert found == {}


def test_no_name_says_nothing() -> None:
    vague = [name(p) for p in files(SOURCES, "") if any(VAGUE.fullmatch(Path(part).stem) for part in p.parts)]
    assert vague == []


def test_every_module_says_what_it_owns() -> None:
    silent = [
        name(path)
        for path in files(PACKAGES, ".py")
        if path.stem not in {"__init__", "__main__"}
        and not (ast.get_docstring(tree(path)) or "").startswith("Owns ")
    ]
    assert silent == []


def test_functions_of_redis_are_called_in_one_place() -> None:
    callers = set()
    for path in files(PACKAGES, ".py"):
        for node in ast.walk(tree(path)):
            word = (
                node.attr
                if isinstance(node, ast.Attribute)
                else node.value
                if isinstance(node, ast.Constant)
                else ""
            )
            if isinstance(word, str) and word.lower() in {"fcall", "fcall_ro"}:
                callers.add(name(path))
    assert callers <= {"coordinator/machine/library.py"}


def test_every_exemption_names_its_rule_and_its_reason() -> None:
    bare = []
    for path in files(SOURCES, ".py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = EXEMPTION.search(line)
            if found and path != Path(__file__) and not (found["code"] and found["reason"].strip(" #-:")):
                bare.append(f"{name(path)}:{number}")
    assert bare == []


def test_tests_wait_for_events_not_for_time() -> None:
    sleepers = []
    for path in files(("tests",), ".py"):
        for node in ast.walk(tree(path)) if path.name.startswith("test_") else ():
            if isinstance(node, ast.Attribute) and node.attr == "sleep":
                sleepers.append(f"{name(path)}:{node.lineno}")
    assert sleepers == []
