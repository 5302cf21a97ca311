"""Owns a folder in which `crewline` is used as a person does: real processes, known by a mark, ended by the test."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import uuid
from pathlib import Path
from typing import Any

from tests.support.command import arguments, crewline, environment

HANDLERS = """
import os, pathlib, signal, time
from workers import MissingInput, Transient, handler

@handler("quick")
def quick(context, input):
    return {"got": input}

@handler("gated")
def gated(context):
    while not pathlib.Path(os.environ["GATE"]).exists():
        if context.draining:
            raise Transient("told to stop")
        time.sleep(0.02)
    return {"attempt": context.attempt}

@handler("stuck")
def stuck(context):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)

@handler("ask")
def ask(context):
    if context.attempt == 1:
        raise MissingInput("which account?")
    return {"attempt": context.attempt}

@handler("broken_into")
def broken_into(context):
    breakpoint()
    return {"ok": True}
"""


class Desk:
    """A folder to run in, with its own place for sockets, and a mark by which its processes are known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gate = folder / "gate"
        self.sockets = Path(tempfile.mkdtemp(prefix="cw", dir="/tmp"))
        self._started: list[subprocess.Popen[str]] = []
        self.mark = f"MARK_{uuid.uuid4().hex}"
        self.env = {"TMPDIR": str(self.sockets), "GATE": str(self.gate), self.mark: "1"}
        (folder / "handlers.py").write_text(HANDLERS)

    def team(self, more: dict[str, Any] | None = None, /, **tasks: dict[str, Any]) -> Path:
        """A Team file whose tasks are named like their capabilities. more: other keys of the Team."""
        inside = {name for name, task in tasks.items() if not task.get("external")}
        roles = {"clerk": {"capabilities": sorted(inside)}} if inside else {}
        team: dict[str, Any] = {
            "team": "desk",
            "handlers": "handlers.py",
            "roles": roles,
            "tasks": tasks,
            **(more or {}),
        }
        path = self.folder / "team.json"
        path.write_text(json.dumps(team))
        return path

    def call(self, *words: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs any command to its end."""
        return crewline(*map(str, words), cwd=self.folder, env=self.env, stdin=stdin)

    def run(self, *words: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs `crewline run` to its end."""
        return self.call("run", *words, stdin=stdin)

    def start(self, *words: object, command: str = "run") -> subprocess.Popen[str]:
        """Starts a command as a shell would, in a process group of its own."""
        process = subprocess.Popen(
            arguments(command, *map(str, words)),
            cwd=self.folder,
            env=environment(self.env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def processes(self) -> list[int]:
        """Living processes that were started from here."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def is_clean(self) -> bool:
        """Nothing runs and no socket is left."""
        return not self.processes() and not list(self.sockets.iterdir())

    def report(self, run: str) -> Any:
        """The report that was kept."""
        return json.loads((self.folder / ".crewline" / run / "report.json").read_text())

    def close(self) -> None:
        """Ends what is left."""
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.wait()
            for stream in filter(None, (process.stdout, process.stderr)):
                stream.close()
        shutil.rmtree(self.sockets, ignore_errors=True)


def read_until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Reads the standard error up to a line that matches."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if match := re.search(pattern, line):
            return match
    raise AssertionError(f"no line like {pattern!r} in {''.join(seen)}")
