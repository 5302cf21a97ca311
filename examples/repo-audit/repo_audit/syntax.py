"""Owns whether Python files can be parsed by the running interpreter.

Must not judge style: a file is sound or has a fault at a line.
"""

from __future__ import annotations

import ast
import warnings

from pydantic import BaseModel

from repo_audit.checkout import Package, read


class Fault(BaseModel):
    file: str
    line: int
    message: str


class Syntax(BaseModel):
    package: str
    files: int
    lines: int
    functions: int
    classes: int
    faults: list[Fault]


def parse(source: bytes) -> ast.Module:
    """The syntax tree of a file; raises SyntaxError or ValueError, and keeps the file's own warnings silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def check(package: Package) -> Syntax:
    """Parses each file of the package and counts what it defines."""
    found = Syntax(package=package.name, files=0, lines=0, functions=0, classes=0, faults=[])
    for name, source in read(package):
        found.files += 1
        found.lines += source.count(b"\n")
        try:
            tree = parse(source)
        except SyntaxError as error:
            found.faults.append(Fault(file=name, line=error.lineno or 0, message=error.msg))
        except (ValueError, RecursionError, MemoryError) as error:
            found.faults.append(Fault(file=name, line=0, message=str(error) or type(error).__name__))
        else:
            for node in ast.walk(tree):
                found.functions += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                found.classes += isinstance(node, ast.ClassDef)
    return found
