"""Owns `crewline coordinator` as a process of its own, for tests that stop, pause and kill it.

Must not look into the process: what it does is known by its log and by what Redis holds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def command(url: str, *more: str) -> subprocess.Popen[bytes]:
    """`crewline coordinator` on a Redis; the caller ends it."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "coordinator.cli.main", "coordinator", "--redis", url, *more],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def read_until(process: subprocess.Popen[bytes], event: str) -> list[dict[str, Any]]:
    """Reads its log until it says `event`; gives the lines."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(json.loads(line))
        if lines[-1]["event"] == event:
            return lines
    raise AssertionError(f"it never said {event}: {lines}")
