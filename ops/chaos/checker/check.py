"""Owns the order of the checks. Must not look at anything itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ops.chaos.checker.budgets import check_budgets
from ops.chaos.checker.counters import check_counters
from ops.chaos.checker.evidence import Evidence, Violation
from ops.chaos.checker.executions import check_executions
from ops.chaos.checker.histories import check_histories
from ops.chaos.checker.letters import check_letters


def check(evidence: Evidence) -> list[Violation]:
    """Every violation that the evidence shows, those of runs first."""
    checks: list[Callable[[Evidence], Iterable[Violation]]] = [
        check_histories,
        check_executions,
        check_budgets,
        check_letters,
        check_counters,
        _check_rest,
    ]
    return [violation for each in checks for violation in each(evidence)]


def _check_rest(evidence: Evidence) -> Iterable[Violation]:
    for run in evidence.runs.values():
        if run.verified != "equal":
            yield Violation("not verified", run.id, run.verified)
    for complaint in evidence.complaints:
        yield Violation("process", "", complaint)
    for key in evidence.left:
        yield Violation("left behind", "", key)
