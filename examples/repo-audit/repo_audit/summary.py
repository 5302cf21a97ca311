"""Owns the end of the audit: one document out of all results, as data and as a short Markdown text.

Must not look at files: all that it says is in the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter

from repo_audit.checkout import Checkout
from repo_audit.imports import Imports, Loose
from repo_audit.licences import Dependency, Licences
from repo_audit.syntax import Fault, Syntax
from repo_audit.tests_found import TestsFound
from repo_audit.todos import Todo, Todos

LISTED = 200
"""Findings of a kind that the summary carries; the counts are always of all."""
SHOWN = 10
"""Findings of a kind that the text shows."""
T = TypeVar("T", bound=BaseModel)


class Totals(BaseModel):
    packages: int
    files: int
    lines: int
    functions: int
    classes: int
    syntax_faults: int
    unresolved_imports: int
    undeclared_imports: int
    todos: int
    dependencies: int
    test_files: int
    tests: int


class Summary(BaseModel):
    root: str
    clean: bool
    """No syntax fault and no unresolved import that the code is not prepared to miss."""
    totals: Totals
    syntax_faults: list[Fault]
    loose_imports: list[Loose]
    todos: list[Todo]
    dependencies: list[Dependency]
    markdown: str


def build(results: Mapping[str, Any]) -> Summary:
    """The summary of the results by task name."""
    checkout = Checkout.model_validate(results["packages"])
    tests = TestsFound.model_validate(results["tests"])
    syntax, imports = _each(Syntax, results["syntax"]), _each(Imports, results["imports"])
    todos = [todo for part in _each(Todos, results["todos"]) for todo in part.todos]
    licences = Licences.model_validate(results["licences"]).dependencies
    faults = [fault for part in syntax for fault in part.faults]
    loose = [item for part in imports for item in part.loose]
    totals = Totals(
        packages=len(checkout.packages),
        files=sum(part.files for part in syntax),
        lines=sum(part.lines for part in syntax),
        functions=sum(part.functions for part in syntax),
        classes=sum(part.classes for part in syntax),
        syntax_faults=len(faults),
        unresolved_imports=sum(item.kind == "unresolved" for item in loose),
        undeclared_imports=sum(item.kind == "undeclared" for item in loose),
        todos=len(todos),
        dependencies=len(licences),
        test_files=len(tests.files),
        tests=tests.tests,
    )
    summary = Summary(
        root=checkout.root,
        clean=not faults and not any(item.kind == "unresolved" and not item.optional for item in loose),
        totals=totals,
        syntax_faults=faults[:LISTED],
        loose_imports=loose[:LISTED],
        todos=todos[:LISTED],
        dependencies=licences,
        markdown="",
    )
    return summary.model_copy(update={"markdown": _markdown(summary)})


def _each(model: type[T], items: list[Any]) -> list[T]:
    return TypeAdapter(list[model]).validate_python(items)  # type: ignore[valid-type]  # a type made at run time


def _markdown(summary: Summary) -> str:
    totals = summary.totals
    lines = [f"# Audit of {summary.root}", ""]
    lines.append(
        f"{totals.packages} packages, {totals.files} files, {totals.lines} lines, {totals.functions} functions, "
        f"{totals.classes} classes; {totals.tests} tests in {totals.test_files} files."
    )
    unresolved, undeclared = totals.unresolved_imports or "none", totals.undeclared_imports or "none"
    lines += [
        "",
        f"- syntax: {totals.syntax_faults or 'no'} faults",
        f"- imports: {unresolved} unresolved, {undeclared} undeclared",
        f"- open ends: {totals.todos or 'no'} marked comments",
        f"- dependencies: {totals.dependencies or 'none'} declared",
    ]
    lines += _section("Syntax", [f"{item.file}:{item.line} {item.message}" for item in summary.syntax_faults])
    lines += _section(
        "Imports",
        [
            f"{item.file}:{item.line} `{item.module}` {item.kind}" + (" (optional)" if item.optional else "")
            for item in summary.loose_imports
        ],
    )
    lines += _section(
        "Open ends", [f"{item.file}:{item.line} {item.marker} {item.text}" for item in summary.todos]
    )
    licences: dict[str, list[str]] = {}
    for item in summary.dependencies:
        licences.setdefault(item.licence, []).append(item.name)
    lines += _section(
        "Licences", [f"{licence}: {', '.join(licences[licence])}" for licence in sorted(licences)]
    )
    return "\n".join(lines) + "\n"


def _section(title: str, items: list[str]) -> list[str]:
    if not items:
        return []
    more = [f"- and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return ["", f"## {title}", "", *(f"- {item}" for item in items[:SHOWN]), *more]
