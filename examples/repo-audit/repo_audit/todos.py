"""Owns the open ends that a checkout admits: comments that begin with TODO, FIXME, XXX or HACK.

Must not look into strings: a marker counts in a comment alone.
"""

from __future__ import annotations

import io
import re
import tokenize

from pydantic import BaseModel

from repo_audit.checkout import Package, read

MARKER = re.compile(r"#[#:\s]*(TODO|FIXME|XXX|HACK)\b\s*:?\s*(.*)")
TEXT_LIMIT = 200


class Todo(BaseModel):
    file: str
    line: int
    marker: str
    text: str


class Todos(BaseModel):
    package: str
    todos: list[Todo]


def find(package: Package) -> Todos:
    """Every marked comment of the package, in the order of its files; text is cut at TEXT_LIMIT characters."""
    found = []
    for name, source in read(package):
        for line, comment in _comments(source):
            if match := MARKER.match(comment):
                found.append(Todo(file=name, line=line, marker=match[1], text=match[2].strip()[:TEXT_LIMIT]))
    return Todos(package=package.name, todos=found)


def _comments(source: bytes) -> list[tuple[int, str]]:
    """Comments up to the end of the file, or up to where it can no longer be split into tokens."""
    comments = []
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type == tokenize.COMMENT:
                comments.append((token.start[0], token.string))
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass  # the syntax check reports the fault itself
    return comments
