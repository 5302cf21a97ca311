"""The checker of a chaos run: pure, from what was gathered to a list of violations."""

from ops.chaos.checker.check import check
from ops.chaos.checker.evidence import Evidence, Execution, RunEvidence, Violation

__all__ = ["Evidence", "Execution", "RunEvidence", "Violation", "check"]
