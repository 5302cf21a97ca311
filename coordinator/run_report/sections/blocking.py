"""Owns the path from a root cause to each blocked task (SPEC 3, 10).

Must not recurse or copy whole paths: a chain of 5,000 gives a report that grows linearly (C-54).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HEAD = 8
"""Hops kept at the root's end of a long path; as many are kept at the task's end."""

_Path = tuple[tuple[str, ...], tuple[str, ...], int]
"""First hops, last hops, number of hops."""


def blocked_paths(tasks: Sequence[Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    """For each blocked task `{root, path}`: the tasks from the root cause to the blocked one, both included.

    A path of more than 16 hops keeps its first 8 and last 8; `omitted` then says how many are missing between
    them.
    """
    via = {
        task["id"]: task.get("via") or task.get("root", "") for task in tasks if task["state"] == "blocked"
    }
    root = {task["id"]: task.get("root", "") for task in tasks}
    known: dict[str, _Path] = {}
    return {task: _shown(root[task], _walk(task, via, known)) for task in via}


def _walk(task: str, via: Mapping[str, str], known: dict[str, _Path]) -> _Path:
    todo: list[str] = []
    at, seen = task, set[str]()
    while at and at not in known and at not in seen:
        todo.append(at)
        seen.add(at)
        at = via.get(at, "")
    head, tail, hops = known.get(at, ((), (), 0))
    for name in reversed(todo):
        head = head if len(head) == HEAD else (*head, name)
        tail, hops = (*tail, name)[-HEAD:], hops + 1
        known[name] = (head, tail, hops)
    return known[task]


def _shown(root: str, path: _Path) -> dict[str, Any]:
    head, tail, hops = path
    beyond_head = min(max(hops - HEAD, 0), HEAD)
    shown: dict[str, Any] = {"root": root, "path": [*head, *tail[len(tail) - beyond_head :]]}
    if hops > 2 * HEAD:
        shown["omitted"] = hops - 2 * HEAD
    return shown
