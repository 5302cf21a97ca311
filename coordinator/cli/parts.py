"""Owns the processes of one local run: starts them, notices when one dies, and ends them all, whatever
happens.

Must not know what a part does. Each part is a process group of its own, so that a Ctrl-C on the terminal
reaches only the command, which then ends its parts in order; killed parts leave nothing behind, because whole
groups are killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import coordinator
from coordinator.run_report.wording import clean
from coordinator.wire.errors import Unreachable

GRACE_SECONDS = 10.0
"""How long the parts may take to end when asked; then they are killed."""


# Runs as `python -c`, becomes `crewline`. Where the kernel can, it is asked to end as soon as its parent has ended.
_BOUND_TO_PARENT = """
import os, runpy, sys
parent = int(sys.argv.pop(1))
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)
runpy.run_module("coordinator.cli.main", run_name="__main__", alter_sys=True)
"""


@dataclass(slots=True)
class Part:
    """One process. name: for messages and its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def last_words(self) -> str:
        """The last line of its log that says something."""
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return clean(lines[-1], 300) if lines else "it said nothing"


class Parts:
    """The processes of a run: the coordinator, which is started first, and its workers."""

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        """logs: folder for one log file a part. environment: variables that the parts get besides our own."""
        self._logs = logs
        self._environment = {**os.environ, **environment, **_import_path()}
        self._parts: list[Part] = []

    def start(self, name: str, arguments: Sequence[str]) -> None:
        """Starts `crewline ARGUMENTS` as a part."""
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"{name}.log"
        with log.open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOUND_TO_PARENT, str(os.getpid()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._environment,
                start_new_session=True,
            )
        self._parts.append(Part(name, process, log))

    def check(self) -> None:
        """Raises Unreachable when a part has ended: none of them does so by itself."""
        for part in self._parts:
            code = part.process.poll()
            if code is not None:
                raise Unreachable(
                    f"the {part.name} ended ({_how(code)}): {part.last_words()} (see {part.log})"
                )

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Ends all parts, the coordinator last; kills those that take longer than `grace` seconds
        altogether.
        """
        end = time.monotonic() + grace
        try:
            for group in (self._parts[1:], self._parts[:1]):  # workers first: the coordinator hears them out
                for part in group:
                    _signal(part, signal.SIGTERM)
                for part in group:
                    with suppress(subprocess.TimeoutExpired):
                        part.process.wait(max(end - time.monotonic(), 0))
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends all parts at once, with everything that they started."""
        for part in self._parts:
            _signal(part, signal.SIGKILL)
        for part in self._parts:
            part.process.wait()
        self._parts.clear()


def _signal(part: Part, number: signal.Signals) -> None:
    """To the part alone when it is asked to end; to its whole group when it is killed."""
    with suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(part.process.pid, number)
        else:
            part.process.send_signal(number)


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"by signal {signal.Signals(-code).name}"


def _import_path() -> dict[str, str]:
    """Lets a part import the same Crewline as we do, also one that runs from its source folder."""
    root = Path(coordinator.__file__).parents[1]
    if {"site-packages", "dist-packages"} & set(root.parts):
        return {}
    known = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": f"{root}{os.pathsep}{known}" if known else str(root)}
