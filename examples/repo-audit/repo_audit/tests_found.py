"""Owns which tests a checkout has: files and functions that pytest or unittest would collect by their names.

Must not run or import them; parametrised tests count once.
"""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

from pydantic import BaseModel

from repo_audit.checkout import Checkout, read
from repo_audit.syntax import parse


class FileWithTests(BaseModel):
    file: str
    tests: int


class TestsFound(BaseModel):
    files: list[FileWithTests]
    tests: int
    empty: list[str]
    """Test files without a test."""


def find(checkout: Checkout) -> TestsFound:
    """The test files of the checkout, by name, each with the number of its tests."""
    files = []
    for package in checkout.packages:
        for name, source in read(package):
            stem = PurePosixPath(name).stem
            if stem.startswith("test_") or stem.endswith("_test"):
                files.append(FileWithTests(file=name, tests=_count(source)))
    files.sort(key=lambda item: item.file)
    return TestsFound(
        files=files,
        tests=sum(item.tests for item in files),
        empty=[item.file for item in files if item.tests == 0],
    )


def _count(source: bytes) -> int:
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    return sum(_tests(node) for node in tree.body)


def _tests(node: ast.stmt) -> int:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return int(node.name.startswith("test"))
    if isinstance(node, ast.ClassDef):
        collected = node.name.startswith("Test") or any(
            "TestCase" in ast.unparse(base) for base in node.bases
        )
        return sum(_tests(child) for child in node.body) if collected else 0
    return 0
