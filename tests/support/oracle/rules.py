"""Owns the evaluation of rules (`when`, `stop_when`): facts of SPEC 4 over a run.

Must not change anything.
"""

from __future__ import annotations

from typing import Any

from coordinator.wire.names import TaskState
from tests.support.oracle.state import Run


def holds(run: Run, rule: list[Any], role: str = "") -> bool:
    """Whether a rule of the plan is true now; `role` is that of the report being judged."""
    kind, *rest = rule
    match kind:
        case "all":
            return all(holds(run, part, role) for part in rest)
        case "any":
            return any(holds(run, part, role) for part in rest)
        case "not":
            return not holds(run, rest[0], role)
        case "const":
            return bool(rest[0])
        case "ge":
            return number(run, rest[0]) >= int(rest[1])
        case "succeeded":
            return _succeeded(run, rest[0], rest[1])
        case "state":
            task = run.tasks.get(rest[0])
            return task is not None and str(task.state) == rest[1]
        case "role":
            return bool(role) and role == rest[0]
        case "signal":
            return rest[0] in run.signals
        case "fact":
            return any(rest[0] in task.facts for task in run.tasks.values())
    raise ValueError(f"no such rule: {rule}")


def number(run: Run, fact: str) -> int:
    """A counting fact."""
    return {
        "attempts_started": run.used["step_budget"],
        "reports_accepted": run.reports,
        "tokens": run.used["tokens"],
        "cost": run.used["cost"],
        "elapsed": run.now - run.created_at,
        "idle": run.now - run.progress_at,
    }[fact]


def _succeeded(run: Run, count: int, names: list[str]) -> bool:
    tasks = [run.tasks[name] for name in names] if names else list(run.tasks.values())
    done = sum(task.state is TaskState.SUCCEEDED for task in tasks)
    return done >= (len(tasks) if count == -1 else count)
