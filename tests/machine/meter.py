"""Owns what size guards measure on a real server: commands that Redis ran, calls that its slow log names.

Must not measure seconds of the test itself: those are the machine's. The slow log counts wall time, so on a shared
machine it names calls in which the kernel let the server wait for a core; such a call is told from one that worked for
too long by the CPU time of the server's own thread. Nothing is repeated, so nothing is hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from coordinator.machine.commands import Command
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import Query

SLOWEST_US = 10_000
"""No call of Lua may take longer, at any size of Team (SPEC 3)."""
WINDOW = 30
"""Small calls in one pipeline. CPU time is known for a pipeline, and all of it is held against each of its calls."""
OWN_COMMANDS = ("info", "config|", "slowlog|", "ping")
"""What the meter itself asks."""


def commands_run(redis: Redis) -> int:
    """Commands that the server has run since its statistics were reset, those inside Lua included."""
    stats: Any = redis.info("commandstats")
    return sum(
        int(entry["calls"])
        for name, entry in stats.items()
        if not name.removeprefix("cmdstat_").startswith(OWN_COMMANDS)
    )


@dataclass(frozen=True, slots=True)
class SlowCall:
    """A call that the slow log names. took_us: its wall time. cpu_us: CPU time of its whole pipeline."""

    what: str
    took_us: int
    cpu_us: int

    @property
    def is_slow(self) -> bool:
        """Whether it also worked for so long."""
        return min(self.took_us, self.cpu_us) > SLOWEST_US

    def __str__(self) -> str:
        return f"{self.what}: {self.took_us} us, at most {self.cpu_us} us of them on a core"


class Metered:
    """A machine whose every call is looked up in the slow log. calls: how many there were; named: what it named.

    longest: the most CPU time of a call sent alone, by the call's name.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._redis: Any = machine.redis
        self._redis.config_set("slowlog-log-slower-than", SLOWEST_US)
        self._redis.slowlog_reset()
        self._cpu_us, _ = self._state()
        self.calls = 0
        self.named: list[SlowCall] = []
        self.longest: dict[str, int] = {}

    @property
    def slow(self) -> list[SlowCall]:
        """Calls that worked for too long, the longest first."""
        return sorted((call for call in self.named if call.is_slow), key=lambda call: -call.cpu_us)

    def apply(self, *commands: Command, window: int = 1) -> list[Reply]:
        """Applies commands, `window` of them in a pipeline: 1 for large ones, WINDOW for small ones."""
        replies: list[Reply] = []
        for start in range(0, len(commands), window):
            part = commands[start : start + window]
            replies += self._machine.apply_many(part)
            self._look(part)
        return replies

    def read(self, query: Query) -> Any:
        """Asks one question."""
        answer = self._machine.read(query)
        self._look([query])
        return answer

    def _state(self) -> tuple[int, bool]:
        """CPU time of the server's thread so far in us, and whether its slow log holds anything."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.info("cpu")
            pipe.slowlog_len()
            cpu, named = pipe.execute()
        spent = cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"]
        return round(1e6 * spent), named > 0

    def _look(self, part: Sequence[Command | Query]) -> None:
        """Notes what the slow log says of the calls that were just made."""
        worked, named = self._state()
        spent, self._cpu_us = worked - self._cpu_us, worked
        self.calls += len(part)
        if len(part) == 1:
            name = part[0].name()
            self.longest[name] = max(spent, self.longest.get(name, 0))
        for entry in self._redis.slowlog_get(1_000) if named else []:
            words = bytes(entry["command"]).split()
            if words[0].upper().startswith(b"FCALL"):  # FCALL crewline_HASH_NAME ...
                called = words[1].decode().split("_", 2)[-1]
                self.named.append(SlowCall(called, int(entry["duration"]), spent))
        if named:
            self._redis.slowlog_reset()
