"""Owns the pytest fixtures for users; `pytest_plugins = ["workers.testing.pytest_plugin"]` in a conftest turns them on.

Must not be imported by anything of ours that runs without pytest.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from workers.testing import HandlerRun, TeamRun, run_handler, run_team


@pytest.fixture
def crewline_handler() -> Callable[..., HandlerRun]:
    """Runs one handler alone: `crewline_handler(read_order, {"id": 1}).result` (`workers.testing.run_handler`)."""
    return run_handler


@pytest.fixture
def crewline_team() -> Callable[..., TeamRun]:
    """Runs a whole team: `crewline_team("team.yaml", {"order_id": "A"}).status` (`workers.testing.run_team`)."""
    return run_team
