"""Owns running the `crewline` command the way a user does: a process of its own, its words and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

TIMEOUT_SECONDS = 60.0
"""How long one command may take on a busy machine before the test gives up."""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: nothing of Crewline's own but what the test says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CREWLINE_")}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1", **(extra or {})}


def arguments(*words: str) -> list[str]:
    """The command as it is started."""
    return [sys.executable, "-m", "coordinator.cli.main", *words]


def crewline(
    *words: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    timeout: float = TIMEOUT_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Runs one command to its end."""
    return subprocess.run(
        arguments(*words),
        cwd=cwd or ROOT,
        env=environment(env),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
