"""What users test their handlers and teams with; `workers.testing.pytest_plugin` has the same as fixtures (SPEC 8)."""

from workers.testing.handler import HandlerRun, run_handler
from workers.testing.team import TeamRun, run_team

__all__ = ["HandlerRun", "TeamRun", "run_handler", "run_team"]
