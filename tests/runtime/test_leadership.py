"""Leader and standby as processes: who leads when one is killed, paused, asked to end, or busy (SPEC 7)."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis

from coordinator.client import Client
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadLeader, ReadMetrics
from tests.runtime.harness import NAMESPACE, team
from tests.runtime.processes import command, read_until
from tests.support.waiting import until

pytestmark = pytest.mark.process

EXTERNAL = team({"x": {"external": True}})

Pair = Callable[[str], tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]


def leader(redis: Redis) -> dict[str, str]:
    """Holder, end and epoch of the lead."""
    found: dict[str, str] = Machine(redis, NAMESPACE).read(ReadLeader())
    return found


def redis_now(redis: Redis) -> int:
    seconds, micros = redis.time()
    return int(seconds) * 1000 + int(micros) // 1000


def leads(redis: Redis, process: subprocess.Popen[bytes]) -> bool:
    """Whether this process leads now."""
    found = leader(redis)
    return f":{process.pid}:" in found["holder"] and int(found["until"]) > redis_now(redis)


@pytest.fixture
def pair(redis: Redis, redis_url: str) -> Iterator[Pair]:
    """Starts a leader and, when that leads, a standby; the lead is so many seconds long."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(ttl: str) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
        for event in ("lead_taken", "coordinator_started"):
            processes.append(command(redis_url, "--lead-ttl", ttl))
            read_until(processes[-1], event)
        return processes[0], processes[1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_standby_takes_over_from_a_killed_leader_within_one_lease_length(pair: Pair, redis: Redis) -> None:
    first, second = pair("1.5")
    client = Client(redis, NAMESPACE)
    client.submit(EXTERNAL, run="r1")
    first.kill()
    killed = redis_now(redis)
    [*_, taken] = read_until(second, "lead_taken")
    began = int(leader(redis)["until"]) - 1_500
    assert taken["epoch"] == 2
    assert began - killed <= 1_500 + 500, "half a second for a busy machine"
    assert client.report("r1", "x", "completed").run_status == "completed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_leader_that_is_asked_to_end_hands_over_at_once(
    pair: Pair, redis: Redis, number: signal.Signals
) -> None:
    first, second = pair("600")
    begun = time.monotonic()
    first.send_signal(number)
    read_until(second, "lead_taken")
    assert time.monotonic() - begun < 30
    _, said = first.communicate(timeout=30)
    assert first.returncode == 0
    events = [json.loads(line)["event"] for line in said.decode().splitlines()]
    assert events == ["lead_resigned", "coordinator_ended"]
    assert Client(redis, NAMESPACE).submit(EXTERNAL, run="r1").status == "applied"


def test_a_standby_that_is_asked_to_end_takes_the_lead_from_nobody(pair: Pair, redis: Redis) -> None:
    first, second = pair("600")
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=30)
    assert second.returncode == 0
    assert leads(redis, first)
    assert leader(redis)["epoch"] == "1"


def test_a_paused_leader_that_wakes_is_refused_and_stands_by(pair: Pair, redis: Redis) -> None:
    first, second = pair("1")
    client = Client(redis, NAMESPACE)
    client.submit(EXTERNAL, run="r1")
    first.send_signal(signal.SIGSTOP)
    read_until(second, "lead_taken")
    assert client.report("r1", "x", "working").run_status == "running"
    first.send_signal(signal.SIGCONT)
    [*_, lost] = read_until(first, "lead_lost")
    assert (lost["why"], lost["epoch"]) == ("a write was refused", 1)
    assert int(Machine(redis, NAMESPACE).read(ReadMetrics())["fenced_writes"]) > 0
    assert leads(redis, second)
    assert client.report("r1", "x", "completed").run_status == "completed"
    second.kill()
    read_until(first, "lead_taken")
    assert client.submit(EXTERNAL, run="r2").status == "applied"


@pytest.mark.chaos
def test_a_leader_that_is_busy_for_longer_than_its_lease_keeps_the_lead(pair: Pair, redis: Redis) -> None:
    """Checking and compiling this Team takes seconds; without a renewal meanwhile both would try it in turns."""
    first, second = pair("2")
    document: dict[str, Any] = team({f"t{n}": {} for n in range(40_000)})
    client = Client(redis, NAMESPACE, answer_seconds=100)
    assert client.submit(document, run="large").status == "applied"
    read_until(first, "lead_renewed_in_a_long_step")
    assert (leads(redis, first), leader(redis)["epoch"]) == (True, "1")
    assert second.poll() is None


def test_five_hundred_waiting_tasks_go_on_under_the_next_leader(pair: Pair, redis: Redis) -> None:
    first, second = pair("1")
    client = Client(redis, NAMESPACE, answer_seconds=30)
    client.submit(team({f"x{n}": {"external": True} for n in range(50)}), run="r1")
    for n in range(25):
        client.report("r1", f"x{n}", "completed")
    first.kill()
    for n in range(25, 50):
        last = client.report("r1", f"x{n}", "completed")
    assert last.run_status == "completed"
    until(lambda: leads(redis, second), "the other one leads")
