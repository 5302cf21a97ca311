"""README.md says of every case where it is tested, or why not yet; it lists every test named after a case."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (Path(__file__).parent / "README.md").read_text()
CASES = {f"C-{number:02}" for number in range(1, 61)}
ROW = re.compile(r"^\| (C-\d\d) \| (.+?) \|", re.MULTILINE)
NAMED_AFTER = re.compile(r"(?<![a-z0-9])c_?(\d\d)(?=_|$)", re.IGNORECASE)


def rows(heading: str) -> dict[str, str]:
    """The rows of one table of the page: the text behind each case."""
    _, _, behind = PAGE.partition(heading)
    return dict(ROW.findall(behind.partition("\n## ")[0]))


def functions() -> dict[str, set[str]]:
    """Every test function, and the cases that its name names."""
    found = {}
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                name = f"{path.relative_to(TESTS.parent)}::{node.name}"
                found[name] = {f"C-{number}" for number in NAMED_AFTER.findall(node.name)}
    return found


def test_every_case_has_its_place() -> None:
    tested, later = rows("# Where each case is"), rows("## Left for later")
    assert set(tested) | set(later) == CASES
    assert not set(tested) & set(later)


def test_every_test_that_the_page_names_is_there_and_the_other_way_round() -> None:
    exist = functions()
    listed = {
        case: set(re.findall(r"`([^`]+)`", cell)) for case, cell in rows("# Where each case is").items()
    }
    assert {name for names in listed.values() for name in names} <= set(exist)
    for case, names in listed.items():
        named_after = {name for name, cases in exist.items() if case in cases}
        assert named_after <= names, f"{case}: tests named after it that the page does not list"
