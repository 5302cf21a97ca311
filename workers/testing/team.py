"""Owns `run_team`: a whole team as `crewline run` runs it, with an embedded Redis, a coordinator and worker processes.

Must not import the coordinator: it starts the command, as a user would, and reads the report.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class TeamRun:
    """How `crewline run` ended. report: the whole report (SPEC 10), empty if there is none (exit codes 2 and 3)."""

    exit_code: int
    report: dict[str, Any]
    stdout: str
    stderr: str

    @property
    def status(self) -> str:
        """The run's status, such as `completed`; empty if it was refused."""
        return str(self.report.get("status", ""))

    @property
    def output(self) -> Any:
        """The run's output."""
        return self.report.get("output")

    def task(self, name: str) -> dict[str, Any]:
        """What the report says of one task; raises KeyError, with what there was instead."""
        tasks: dict[str, dict[str, Any]] = self.report.get("tasks", {})
        if name not in tasks:
            raise KeyError(f"{name}: the report has {', '.join(tasks) or 'no tasks'}; {self.stderr.strip()}")
        return tasks[name]


def run_team(
    team: str | Path | Mapping[str, Any],
    inputs: Mapping[str, Any] | None = None,
    *,
    handlers: str | Path | None = None,
    options: tuple[str, ...] = (),
    timeout: float = 120.0,
    env: Mapping[str, str] | None = None,
) -> TeamRun:
    """Runs a team on this machine with everything real, and gives its report.

    team: a Team file, or its content. handlers: their file or module, if the Team does not say it. options: more
    options of `crewline run`. timeout: seconds. Raises subprocess.TimeoutExpired; then all of it was ended.
    """
    with tempfile.TemporaryDirectory(prefix="crewline-test-") as folder:
        place = Path(folder)
        if isinstance(team, Mapping):
            file = place / "team.json"
            file.write_text(json.dumps(team))
        else:
            file = Path(team).absolute()
        command = [sys.executable, "-P", "-m", "coordinator.cli.main", "run", str(file), "--json", *options]
        if inputs is not None:
            input_file = place / "inputs.json"
            input_file.write_text(json.dumps(inputs))
            command += ["--input-file", str(input_file)]
        if handlers is not None:
            known = Path(handlers)
            command += ["--handlers", str(known.absolute()) if known.exists() else str(handlers)]
        code, stdout, stderr = _run(command, place, {**os.environ, **_import_path(), **(env or {})}, timeout)
    try:
        report = json.loads(stdout)
    except ValueError:
        report = {}
    return TeamRun(code, report, stdout, stderr)


def _run(command: list[str], place: Path, env: dict[str, str], timeout: float) -> tuple[int, str, str]:
    process = subprocess.Popen(
        command,
        cwd=place,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()  # as Ctrl-C: it ends its parts
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        raise
    return process.returncode, stdout, stderr


def _import_path() -> dict[str, str]:
    """Lets the command import the modules that the test can import, ours and the user's handlers."""
    return {"PYTHONPATH": os.pathsep.join(path for path in (str(Path.cwd()), *sys.path) if path)}
