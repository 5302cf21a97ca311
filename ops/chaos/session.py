"""Owns one chaos run from its first process to its verdict: work and faults, then quiet, then the checker.

Must not know a fault or a check by name.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from redis.exceptions import RedisError

from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadMetrics
from coordinator.simulation.playground import playground
from coordinator.wire.connection import connect
from coordinator.wire.errors import MachineFault
from ops.chaos.checker import Evidence, Violation, check
from ops.chaos.checker.executions import late_begins
from ops.chaos.checker.letters import tally
from ops.chaos.faults import Faults
from ops.chaos.fleet import Fleet
from ops.chaos.gather import gather, read_logs
from ops.chaos.load import NAMESPACE, Load
from ops.chaos.proxy import Proxy
from ops.chaos.store import Store

FLEET = {
    "coordinator-1": "coordinator",
    "coordinator-2": "coordinator",
    "inline-1": "inline",
    "inline-2": "inline",
    "forked-1": "forked",
    "forked-2": "forked",
}
TICK_S = 0.05
SETTLE_S = 120.0
"""How long the runs may take to end once nothing is done to anybody any more."""
GRACE_MS = 2_500
"""The installation's grace for cancels: short, so that it passes within the run."""


class Session:
    """A chaos run in `folder`. most: runs in all."""

    def __init__(self, folder: Path, seed: int, open_runs: int = 20, most: int = 100_000) -> None:
        self._folder, self._seed, self._open_runs, self._most = folder, seed, open_runs, most
        self.faults: Counter[str] = Counter()
        self.work: Counter[str] = Counter()
        self.evidence = Evidence()

    def run(self, seconds: float) -> list[Violation]:
        """Works under faults for so long, lets everything come to rest, and checks."""
        store = Store(self._folder / "redis")
        try:
            with Proxy(store.socket) as proxy:
                store.moved = lambda path: setattr(proxy, "target", path)
                fleet = Fleet(self._folder, proxy)
                try:
                    rested = self._play(seconds, store, proxy, fleet)
                finally:
                    fleet.destroy()
                self._gather(store, fleet)
        finally:
            store.stop()
        if not rested:
            self.evidence.complaints.append(f"not everything came to rest within {SETTLE_S:g} s")
        return check(self.evidence)

    def _play(self, seconds: float, store: Store, proxy: Proxy, fleet: Fleet) -> bool:
        """The living part; True when everything came to rest in time."""
        random = Random(self._seed)
        with store.client() as client:
            client.hset(f"{NAMESPACE}:settings", "cancel_grace_ms", GRACE_MS)
        for name, kind in FLEET.items():
            fleet.start(name, kind)
        redis = connect(proxy.url("driver"), socket_timeout=2.0)
        load = Load(redis, Random(random.random()), self._open_runs, self._most)
        faults = Faults(random, fleet, proxy, store, load)
        machine = Machine(redis, NAMESPACE)
        try:
            _for(60, lambda: _leads(machine))
            _for(seconds, lambda: self._tick(load, fleet, faults))
            load.submitting = False
            faults.heal()
            rested = _for(SETTLE_S, lambda: self._tick(load, fleet, None) or _rests(machine, load))
            fleet.stop()
        finally:
            redis.close()
            self.faults, self.work = faults.tally, load.done
        return rested

    @staticmethod
    def _tick(load: Load, fleet: Fleet, faults: Faults | None) -> bool:
        load.tick()
        fleet.tend()
        if faults is not None:
            faults.tick()
        return False

    def _gather(self, store: Store, fleet: Fleet) -> None:
        with store.client() as client, playground() as ground:
            machine = Machine(client, NAMESPACE)
            machine.load()
            self.evidence = gather(machine, ground.empty, store.folder, fleet.effects)
        said, self.evidence.dropped = read_logs(fleet.logs)
        self.evidence.complaints = [*fleet.bad_ends, *said]
        self.evidence.pauses, self.evidence.killed = fleet.pauses, fleet.killed

    def told(self) -> str:
        """The tally, for a person."""
        evidence = self.evidence
        statuses = Counter(run.run["status"] for run in evidence.runs.values())
        work = Counter(self.work) + tally(evidence)
        work["handlers begun"] = len(evidence.executions)
        work["handlers begun in the moment of their cancel"] = late_begins(evidence)
        work["attempts lost"] = evidence.counters.get("attempts:lost", 0)
        work["attempts never started"] = evidence.counters.get("attempts:never_started", 0)
        work["writes of old leaders refused"] = evidence.counters.get("fenced_writes", 0)
        work["events"] = sum(len(run.events) for run in evidence.runs.values())
        work["commands applied again by verify"] = sum(len(run.commands) for run in evidence.runs.values())
        work["reports dropped by workers that had to leave"] = evidence.dropped
        parts = [
            (f"faults injected: {sum(self.faults.values())}", self.faults),
            ("work done", work),
            (f"runs ended or parked: {sum(statuses.values())}", statuses),
        ]
        return "\n".join(line for heading, counts in parts for line in _listed(heading, counts))


def _listed(heading: str, counts: Counter[str]) -> list[str]:
    return [heading, *(f"  {name:<50} {counts[name]:>7}" for name in sorted(counts) if counts[name])]


def _for(seconds: float, step: Callable[[], bool]) -> bool:
    """Does a step again and again, for so long or until it says True; gives whether it did."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if step():
            return True
        time.sleep(TICK_S)
    return False


def _leads(machine: Machine) -> bool:
    try:
        return int(machine.read(ReadMetrics())["epoch"]) > 0
    except (RedisError, MachineFault):
        return False


def _rests(machine: Machine, load: Load) -> bool:
    """Whether no run is open, no cancel waits for its word, and no entry for anybody."""
    if load.open:
        return False
    try:
        counters = machine.read(ReadMetrics())
        graces = machine.redis.zcard(f"{machine.namespace}:graces")
    except (RedisError, MachineFault):
        return False
    return counters["runs:running"] == "0" and not graces
