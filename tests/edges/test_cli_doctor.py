"""`doctor` and `health`: how an installation stands, for people, programs and container health checks."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from coordinator.cli.doctor import shadows
from coordinator.runtime.service import Service
from tests.edges.conftest import Call
from tests.support.command import arguments, environment
from tests.support.waiting import until

HANDLERS = Path(__file__).parents[1] / "workers" / "sample_handlers.py"
CLERKS = {
    "team": "clerks",
    "roles": {"clerk": {"capabilities": ["echo"]}, "editor": {"capabilities": ["slow"]}},
    "tasks": {"a": {"capability": "echo"}, "b": {"capability": "slow"}},
}

WriteTeam = Callable[[dict[str, Any]], Path]


def texts(call: Call, level: str) -> list[str]:
    """What doctor says at a level, with what it is about."""
    found = call("doctor", "--json").json["findings"]
    return [f"{one['about']}: {one['text']}" for one in found if one["level"] == level]


@pytest.mark.usefixtures("redis")
def test_without_a_leader_nothing_is_healthy(call: Call, redis_url: str) -> None:
    done = call("health", "--redis", redis_url)
    assert done.code == 1
    assert done.err.startswith("unhealthy: ")
    found = call("doctor", "--json", "--redis", redis_url)
    assert found.code == 0, "it could be read"
    assert [one for one in found.json["findings"] if one["level"] == "fault"]


@pytest.mark.parametrize("command", ["health", "doctor"])
def test_without_redis_it_exits_with_3(call: Call, command: str) -> None:
    done = call(command, "--redis", "redis://127.0.0.1:1")
    assert (done.code, done.out) == (3, "")
    assert "127.0.0.1:1" in done.err


def test_with_a_leader_it_is_healthy_and_doctor_says_who_leads(call: Call, coordinator: Service) -> None:
    assert (call("health").code, call("health").out) == (0, "healthy\n")
    found = call("doctor", "--json").json
    assert found["leader"]["epoch"] == coordinator.health.epoch
    assert found["leader"]["holder"]
    assert found["redis"]["maxmemory_policy"] == "noeviction"
    assert (found["outbox"], found["runs"]["running"]) == (0, 0)
    assert any(line.startswith("ok       leader    ") for line in call("doctor").out.splitlines())


@pytest.mark.usefixtures("coordinator")
def test_a_policy_that_evicts_is_a_fault(call: Call, redis: Redis) -> None:
    redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        assert "maxmemory-policy" in texts(call, "fault")[0]
        assert call("health").code == 1
    finally:
        redis.config_set("maxmemory-policy", "noeviction")


@pytest.mark.usefixtures("coordinator")
def test_roles_without_a_worker_are_named(call: Call, redis_url: str, write_team: WriteTeam) -> None:
    assert call("submit", write_team(CLERKS)).code == 0
    assert "roles: editor has no worker: 1 attempts wait" in texts(call, "warning")
    assert call("health", "worker").code == 1
    words = ["worker", "--role", "clerk", "--handlers", str(HANDLERS), "--redis", redis_url]
    with subprocess.Popen(arguments(*words), env=environment(), start_new_session=True) as worker:
        try:
            until(lambda: call("health", "worker").code == 0, "the worker has registered")
            found = call("doctor", "--json").json["roles"]
            assert (len(found["clerk"]["workers"]), found["editor"]["workers"]) == (1, [])
        finally:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)


@pytest.mark.usefixtures("coordinator")
def test_entries_that_could_not_be_applied_are_told(call: Call, redis: Redis) -> None:
    redis.xadd("crewline:inbox:operate", {"kind": "dance"})
    until(lambda: redis.llen("crewline:ledger") == 1, "the entry is in the ledger")
    assert "ledger: 1 entries could not be applied; the newest: kind: unknown" in texts(call, "warning")


@pytest.mark.usefixtures("redis")
def test_inboxes_that_nobody_reads_and_runs_that_stand_still_are_told(
    call: Call, coordinator: Service, redis: Redis, redis_url: str, write_team: WriteTeam
) -> None:
    call("submit", write_team(CLERKS), "--id", "r1")
    coordinator.stop()
    until(lambda: "no coordinator leads" in "".join(texts(call, "fault")), "nobody leads")
    redis.xadd("crewline:inbox:operate", {"kind": "x"}, id="1000-0")
    redis.zadd("crewline:timers", {"r1|a": 1})
    warnings = texts(call, "warning")
    assert any(text.startswith("inbox: operate: 1 entries, the oldest waits for ") for text in warnings)
    assert "runs: r1 is stuck: a timer of a has been due for more than a minute" in warnings


def test_files_that_hide_our_packages_are_warned_of(tmp_path: Path) -> None:
    assert list(shadows(tmp_path)) == []
    (tmp_path / "workers.py").touch()
    [finding] = shadows(tmp_path)
    assert (finding.level, finding.about) == ("warning", "imports")
    assert str(tmp_path / "workers.py") in finding.text
