"""Coordinators that are killed and frozen, as processes: a standby goes on with all runs, and does nothing twice."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import pytest
from redis import Redis

from coordinator.wire import channels
from coordinator.wire.reports import Submit
from ops.chaos.proxy import Gate, Proxy, words
from tests.chaos.processes import LEAD_TTL_S, Crew, team
from tests.support.waiting import until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]

RUNS, TASKS = 5, 100
NAP_S = 4.0
POINTS = (1, 4, 8)
"""Which of its writing commands a coordinator dies at."""
PATIENT = {"heartbeat": "20s"}
"""A lease that outlives a change of leader: no attempt is lost for it, nor handed back because its grant may be old."""


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(unquote(urlsplit(redis_url).path)) as one:
        yield one


def test_c33_500_running_tasks_outlive_their_leader(crew: Crew) -> None:
    """Kill -9 of the leader while all of them run: every run ends as it would have, and no attempt is lost."""
    crew.coordinator("c1")
    crew.coordinator("c2")
    for name in ("w1", "w2"):
        crew.worker(name, "inline", "--prefetch", "260")
    nap = {"capability": "nap", "heartbeat": "20s", "input": {"ms": NAP_S * 1000}}
    document = team({f"t{n}": nap for n in range(TASKS)})
    for n in range(RUNS):
        crew.submit(document, f"r{n}")
    running = until(
        lambda: crew.metrics().get("attempt:le:inf", 0) == 0 and started(crew) == RUNS * TASKS, "all run"
    )
    assert running
    leader = crew.leader()
    crew.signal(leader, signal.SIGKILL)
    died = time.monotonic()
    for n in range(RUNS):
        assert crew.await_end(f"r{n}") == "completed"
    took = time.monotonic() - died
    counters = crew.metrics()
    assert counters["tasks:succeeded"] == counters["attempts:succeeded"] == RUNS * TASKS
    assert "attempts:lost" not in counters
    ran = Counter(e.attempt_of for n in range(RUNS) for e in crew.executions(f"r{n}"))
    assert set(ran.values()) == {1}
    assert took < NAP_S + LEAD_TTL_S + 5.0, "within one leader lease plus the normal time"


def started(crew: Crew) -> int:
    """How many handlers have begun."""
    return sum(len(crew.executions(f"r{n}")) for n in range(RUNS))


@pytest.mark.parametrize("gate", [Gate.HOLD, Gate.LOSE_REPLY])
def test_c60_a_real_coordinator_is_killed_at_a_call(crew: Crew, proxy: Proxy, gate: Gate) -> None:
    """At several of its calls, right before and right after; the next one takes over and nobody gives it a nudge."""
    crew.worker("w1", "inline")
    for number, at in enumerate(POINTS):
        name, run = f"c{number}", f"r{number}"
        process = crew.coordinator(name, url=proxy.url(name))
        until(lambda name=name: "lead_taken" in crew.log(name), f"{name} leads")  # type: ignore[misc] # bound
        killer = Killer(at, gate, process.pid)
        proxy.judge(name, killer)
        submit(crew.redis, run)
        process.wait(60)
    crew.coordinator("last")
    for number in range(len(POINTS)):
        run = f"r{number}"
        assert crew.await_end(run) == "completed"
        assert Counter(e.attempt_of for e in crew.executions(run)) == {(run, t, 1): 1 for t in ("a", "b")}
        assert len(crew.events("attempt_started", run)) == 2


class Killer:
    """Kills a process at one of the commands that change something, before Redis gets it or when it is on its way."""

    def __init__(self, at: int, gate: Gate, pid: int) -> None:
        self._left, self._gate, self._pid = at, gate, pid

    def __call__(self, command: bytes) -> Gate:
        name, *rest = words(command)
        if name == b"EXEC" or (name == b"FCALL" and not rest[0].endswith(b"take_lead")):
            self._left -= 1
        if self._left:
            return Gate.PASS
        os.kill(self._pid, signal.SIGKILL)
        return self._gate


def submit(redis: Redis, run: str) -> None:
    """A chain of two, without waiting for an answer."""
    entry = Submit(
        run=run, team=json.dumps(team({"a": PATIENT, "b": {**PATIENT, "requires": ["a"]}})), inputs="{}"
    )
    redis.xadd(channels.scope_inbox(channels.DEFAULT_NAMESPACE, "submit"), dict(entry.fields().items()))
