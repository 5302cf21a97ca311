"""Owns the names of what several processes touch: inboxes, replies, RQ queues and job ids.

Must not know state keys (those are `machine/keys.py`). Every name carries the role, so that one Redis ACL pattern
per role is enough (SPEC 12). `ns` is the installation's namespace, `crewline` by default.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_NAMESPACE = "crewline"

ROLE_PATTERN = r"[A-Za-z0-9_](?:-?[A-Za-z0-9_])*"
"""Role names and run ids: they stand in job ids, which RQ limits to letters, digits, `_` and `-`; no `--` (SPEC 12)."""

TASK_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
"""Task names in a Team file. Children are `PARENT[N]`."""


def inbox(ns: str, role: str) -> str:
    """Stream in which the workers of `role` report."""
    return f"{ns}:inbox:role:{role}"


def scope_inbox(ns: str, scope: str) -> str:
    """Stream for `submit`, `operate` or `review` requests; who may write to it has the scope (SPEC 12)."""
    return f"{ns}:inbox:{scope}"


SCOPES = ("submit", "operate", "review")


def reply(ns: str, role: str, worker: str) -> str:
    """List on which a worker gets grants and answers."""
    return f"{ns}:reply:{role}:{worker}"


def control(ns: str, role: str, worker: str) -> str:
    """List on which a worker is told of cancels while it works."""
    return f"{ns}:control:{role}:{worker}"


def client_reply(ns: str, request: str) -> str:
    """List on which a client gets the answer to one request."""
    return f"{ns}:reply:~client:{request}"


def queue_name(ns: str, role: str) -> str:
    """Name of the RQ queue of a role (RQ adds `rq:queue:` in front)."""
    return f"{ns}:{role}"


@dataclass(frozen=True, slots=True)
class JobId:
    """Identity of an attempt, as it stands in an RQ job id: `ROLE--RUN--TASK--ATTEMPT`, never reused (SPEC 1)."""

    role: str
    run: str
    task: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.role}--{self.run}--{_escape(self.task)}--{self.attempt}"

    @classmethod
    def parse(cls, text: str) -> JobId:
        """Reads a job id; raises ValueError when it is not one of ours."""
        parts = text.split("--")
        if len(parts) != 4 or not parts[3].isdigit():
            raise ValueError(f"not a Crewline job id: {text!r}")
        return cls(parts[0], parts[1], _unescape(parts[2]), int(parts[3]))


def _escape(task: str) -> str:
    """Every character but letters, digits and `_` becomes `-xx`, so `--` never appears inside."""
    return re.sub(r"[^A-Za-z0-9_]", lambda match: f"-{ord(match[0]):02x}", task)


def _unescape(text: str) -> str:
    return re.sub(r"-([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), text)
