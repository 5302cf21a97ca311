"""Owns the processes of a chaos run: real `crewline coordinator`s and `crewline worker`s, their signals and their logs.

Every process reaches Redis by a listener of its own in the proxy. What was done to a process and when is written down,
because the checker must know it. Must not choose faults.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ops.chaos import handlers
from ops.chaos.proxy import Proxy
from ops.chaos.teams import FORKED, INLINE

ROOT = Path(__file__).parents[2]
LEAD_TTL_S = 2.0
END_SECONDS = 40.0
"""How long a process may take to end after SIGTERM before that is a fault of its own."""
EARLY_ENDS, START_S = (3, -signal.SIGTERM), 15.0
"""How a process may end while it starts, and how long that takes at most: it finds no Redis (SPEC 9), or is told to
end before it listens to signals."""

KINDS: dict[str, list[str]] = {
    "coordinator": ["coordinator", "--lead-ttl", str(LEAD_TTL_S)],
    "inline": ["worker", "--role", INLINE, "--mode", "inline", "--prefetch", "4"],
    "forked": ["worker", "--role", FORKED, "--mode", "fork"],
}
WORKER_OPTIONS = ["--handlers", handlers.__file__, "--drain-timeout", "1.5", "--cancel-grace", "1"]


@dataclass(slots=True)
class Member:
    """One place in the fleet; its process is replaced when it ends."""

    name: str
    kind: str
    process: subprocess.Popen[bytes]
    since: float
    ending: bool = False
    """It was asked to end."""

    @property
    def is_worker(self) -> bool:
        return self.kind != "coordinator"


@dataclass(frozen=True, slots=True)
class Pause:
    """Time (ms) in which a process could not do what it meant to. pid 0: it may have been any of them."""

    pid: int
    began: int
    ended: int


class Fleet:
    """The processes. folder: for logs and effects."""

    def __init__(self, folder: Path, proxy: Proxy) -> None:
        self.logs, self.effects = folder / "logs", folder / "effects"
        self.logs.mkdir(parents=True)
        self.effects.mkdir()
        self._proxy = proxy
        self.members: dict[str, Member] = {}
        self.pauses: list[Pause] = []
        self.killed: set[int] = set()
        """Processes that were killed, or told twice to end."""
        self._frozen: dict[str, tuple[list[int], int]] = {}
        self.bad_ends: list[str] = []

    def start(self, name: str, kind: str) -> None:
        """Starts a member, or its next process."""
        words = KINDS[kind] + ([] if kind == "coordinator" else WORKER_OPTIONS)
        with (self.logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "coordinator.cli.main",
                    *words,
                    "--redis",
                    self._proxy.url(name),
                ],
                env={**os.environ, "PYTHONPATH": str(ROOT), handlers.FOLDER: str(self.effects)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.members[name] = Member(name, kind, process, time.monotonic())

    def names(self, *kinds: str) -> list[str]:
        """Members of these kinds that are there and not frozen, in order."""
        return [
            name
            for name, member in sorted(self.members.items())
            if (not kinds or member.kind in kinds) and not member.ending and name not in self._frozen
        ]

    # -- what is done to them ------------------------------------------------------------------------------

    def kill(self, name: str, *, whole: bool) -> None:
        """Does kill -9. whole: everything, as when the host is lost; else the working process alone, which a worker's
        supervisor replaces."""
        member = self.members[name]
        pids = family(member.process.pid)
        doomed = pids if whole or not member.is_worker else pids[1:2] or pids
        self._signal(doomed, signal.SIGKILL)
        self.killed.update(doomed)
        if doomed[0] == member.process.pid:
            member.process.wait()
            self.start(name, member.kind)

    def kill_handler(self, name: str) -> bool:
        """Does kill -9 to the child that runs a handler; False when there is none."""
        doomed = family(self.members[name].process.pid)[2:]
        self._signal(doomed, signal.SIGKILL)
        self.killed.update(doomed)
        return bool(doomed)

    def drain(self, name: str) -> None:
        """SIGTERM; `tend` starts another one when it has ended."""
        member = self.members[name]
        member.ending = True
        member.process.send_signal(signal.SIGTERM)

    def freeze(self, name: str) -> None:
        """SIGSTOP to all of it."""
        pids = family(self.members[name].process.pid)
        self._signal(pids, signal.SIGSTOP)
        self._frozen[name] = (pids, now())

    def thaw(self, name: str) -> None:
        """SIGCONT."""
        pids, since = self._frozen.pop(name)
        self._signal(pids, signal.SIGCONT)
        self.pauses += [Pause(pid, since, now()) for pid in pids]

    @property
    def frozen(self) -> list[str]:
        """Who stands still."""
        return list(self._frozen)

    def tend(self) -> None:
        """Replaces what was asked to end and has; what ended by itself is a fault of its own."""
        for name, member in list(self.members.items()):
            code = member.process.poll()
            if code is None:
                continue
            early = code in EARLY_ENDS and time.monotonic() - member.since < START_S
            if not early and (not member.ending or code != 0):
                self.bad_ends.append(
                    f"{name} ended with {code}, {'asked to' if member.ending else 'unasked'}"
                )
            self.start(name, member.kind)

    def stop(self) -> None:
        """Asks all to end, workers first, and waits."""
        for members in (
            [m for m in self.members.values() if m.is_worker],
            [m for m in self.members.values() if not m.is_worker],
        ):
            for member in members:
                member.process.send_signal(signal.SIGTERM)
            for member in members:
                try:
                    code = member.process.wait(END_SECONDS)
                except subprocess.TimeoutExpired:
                    self.bad_ends.append(f"{member.name} did not end within {END_SECONDS:g} s of SIGTERM")
                    continue
                if code != 0:
                    self.bad_ends.append(f"{member.name} ended with {code}, asked to")
        self.destroy()

    def destroy(self) -> None:
        """Kills whatever is left of it."""
        for member in self.members.values():
            self._signal(family(member.process.pid), signal.SIGKILL)
            member.process.wait()

    @staticmethod
    def _signal(pids: list[int], number: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def family(pid: int) -> list[int]:
    """A process and all below it, parents first."""
    found = [pid]
    for one in found:
        with suppress(FileNotFoundError, ProcessLookupError):
            children = Path(f"/proc/{one}/task/{one}/children").read_text().split()
            found += [int(child) for child in children]
    return found


def now() -> int:
    """Wall time, ms: that of the coordinators, on this machine."""
    return time.time_ns() // 1_000_000
