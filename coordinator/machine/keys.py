"""Owns the map of every state key. Lua builds the same names by `Key.of(kind, ...)`; a test holds both together.

Must not be used to write: the only writer of state is the Lua library. `ns` is the installation's namespace.
"""

from __future__ import annotations

RUN_KEYS: dict[str, str] = {
    "run": "hash: the run's own record: status, version, counters, limits, stop",
    "tasks": "zset: task names by file order",
    "task": "hash per task: definition and state",
    "edges": "list per task: whom to tell when it ends (kind:dependant)",
    "requires": "list per task: what it requires (kind:requirement)",
    "unmet": "set per task: requirements that are not met yet",
    "any": "set per task: any_of members that are undecided",
    "spawned": "hash: children by 'parent key'",
    "children": "list per parent: its children in element order",
    "templates": "hash: input templates by task",
    "documents": "hash: team and inputs as JSON text",
    "capabilities": "set: 'role capability' pairs that the Team grants",
    "lanes": "zset per role: reserves of which ready tasks exist",
    "ready": "zset per role and lane: ready tasks by priority, then file order",
    "running": "zset: tasks under a lease, or reported as working",
    "history": "stream: events, id is the run-local sequence",
    "commands": "list: commands applied, for verify",
    "payloads": "hash: payload texts by digest",
    "keys": "hash: 'task key' to every digest that arrived under it",
    "conflicts": "list: evidence of conflicts",
    "late": "list: the late ledger",
    "facts": "set: ids of rule facts that hold",
    "signals": "set: operators' signals",
    "batch": "list: work of the open batch",
    "cancellations": "hash: cancels of attempts that were running, with how they ended",
    "requests": "hash: operators' request ids and what they asked for",
    "actions": "hash: side effects by 'task key', with state and receipt",
    "artifacts": "hash: named outputs by 'digest task name', with where they lie",
    "artifact_digests": "set: digests of artifacts",
    "reviews": "hash: what a person must decide, with the decision",
}
"""Keys `ns:KIND:RUN[:more]` that belong to one run."""

SHARED_KEYS: dict[str, str] = {
    "runs": "zset: run ids by creation",
    "runs_by": "set per status: run ids",
    "roles": "zset: every role named by a run",
    "timers": "zset: run|task by due time (ms)",
    "batches": "zset: runs with an open batch",
    "outbox": "list: dispatched attempts that are not yet RQ jobs",
    "internal": "zset: for_each parents the coordinator works on",
    "queued": "zset per role: run|task dispatched and not granted",
    "turn": "zset per role: runs with ready work, in the order of service",
    "active": "zset per role: open runs with tasks of the role",
    "serials": "hash: counters for ids and turns",
    "settings": "hash: window and other settings of the installation",
    "metrics": "hash: counters",
    "ledger": "list: malformed inbox entries, bounded",
    "leader": "hash: holder of the leader lease",
    "graces": "zset: run|task|attempt told to end, by the end of its grace (ms)",
    "reviews_open": "zset: run|review by the time it was opened (ms)",
    "epoch": "string: fencing epoch",
}
"""Keys `ns:KIND[:more]` that all runs share."""


def epoch(ns: str) -> str:
    """The fencing epoch."""
    return f"{ns}:epoch"


def outbox(ns: str) -> str:
    """Dispatched attempts that are not yet RQ jobs."""
    return f"{ns}:outbox"


def settings(ns: str) -> str:
    """Settings of the installation that rules read."""
    return f"{ns}:settings"


def of_run(ns: str, run: str) -> list[str]:
    """Patterns (for SCAN, outside the hot path) of every key of one run."""
    return [pattern for kind in RUN_KEYS for pattern in (f"{ns}:{kind}:{run}", f"{ns}:{kind}:{run}:*")]
