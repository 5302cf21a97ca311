"""The coordinator process: it starts, says what is wrong, survives Redis, ends when asked."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError

from coordinator.client import Client
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadRun
from coordinator.runtime.service import Service, Settings
from coordinator.wire.connection import connect
from coordinator.wire.errors import InputFault, Unreachable
from tests.runtime.harness import NAMESPACE, team
from tests.runtime.processes import command, read_until
from tests.support.server import start_server
from tests.support.waiting import until

EXTERNAL = team({"x": {"external": True}})


@pytest.fixture
def process(redis_url: str) -> Iterator[subprocess.Popen[bytes]]:
    with command(redis_url) as started:
        yield started
        started.kill()


def test_it_leads_works_and_ends_on_sigterm(process: subprocess.Popen[bytes], redis: Redis) -> None:
    read_until(process, "lead_taken")
    client = Client(redis, NAMESPACE)
    client.submit(EXTERNAL, run="r1")
    assert client.report("r1", "x", "completed").run_status == "completed"
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"Traceback" not in rest
    assert b"coordinator_ended" in rest


def test_without_redis_it_says_so_and_exits_with_3() -> None:
    with command("redis://127.0.0.1:1") as process:
        _, said = process.communicate(timeout=30)
    assert process.returncode == 3
    assert said.decode().count("\n") == 1
    assert "127.0.0.1:1" in said.decode()


def test_c37_a_server_that_evicts_is_refused(redis: Redis, redis_url: str) -> None:
    redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(InputFault, match="maxmemory-policy"):
            Service(redis_url).run(signals=False)
    finally:
        redis.config_set("maxmemory-policy", "noeviction")


def test_a_redis_that_cannot_be_reached_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        Service("redis://127.0.0.1:1").run(signals=False)


class Running:
    """A service in a thread."""

    def __init__(self, url: str, metrics_port: int | None = None) -> None:
        self.service = Service(url, Settings(idle_ms=50, metrics_port=metrics_port))
        self._leads = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.error: BaseException | None = None
        self._thread.start()
        assert self._leads.wait(30)

    def _run(self) -> None:
        try:
            self.service.run(signals=False, ready=self._leads.set)
        except BaseException as error:
            self.error = error

    def end(self) -> None:
        """Stops it and waits for it; raises what it ended with."""
        self.service.stop()
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error


def _is_another(redis: Redis, born: str) -> bool:
    """Whether another server process answers, and not only with LOADING."""
    return bool(redis.ping()) and redis.info("server")["run_id"] != born


def test_c34_it_survives_a_restart_of_redis_and_loses_nothing(tmp_path: Path) -> None:
    server = start_server(persist_dir=tmp_path)
    running = Running(server.url)
    client = Client(connect(server.url), NAMESPACE, answer_seconds=30)
    client.submit(EXTERNAL, run="r1")
    redis = connect(server.url)
    born = redis.info("server")["run_id"]
    with suppress(ConnectionError):
        redis.execute_command("DEBUG", "RESTART")  # type: ignore[no-untyped-call] # redis-py leaves it untyped
    try:
        back = partial(_is_another, redis, born)
        until(back, "Redis is there again and has loaded its data", ignore=(ConnectionError,))
        assert client.report("r1", "x", "completed").run_status == "completed"
    finally:
        running.end()
        redis.close()
        server.stop()


def test_c34_it_loads_its_library_again_when_it_is_gone(redis: Redis, redis_url: str) -> None:
    running = Running(redis_url)
    client = Client(redis, NAMESPACE, answer_seconds=30)
    client.submit(EXTERNAL, run="r1")
    redis.function_flush()
    redis.script_flush()
    assert client.report("r1", "x", "completed").run_status == "completed"
    running.end()


def test_c38_a_redis_that_is_read_only_for_a_while_fails_no_task(redis: Redis, redis_url: str) -> None:
    running = Running(redis_url)
    client = Client(redis, NAMESPACE, answer_seconds=30)
    client.submit(EXTERNAL, run="r1")
    redis.replicaof("127.0.0.1", "1")
    redis.replicaof("no", "one")
    assert client.report("r1", "x", "completed").run_status == "completed"
    assert Machine(redis, NAMESPACE).read(ReadRun(run="r1"))["status"] == "completed"
    running.end()


def test_its_connections_may_be_killed(redis: Redis, redis_url: str) -> None:
    running = Running(redis_url)
    client = Client(redis, NAMESPACE, answer_seconds=30)
    client.submit(EXTERNAL, run="r1")
    redis.client_kill_filter(_type="normal", skipme=True)
    assert client.report("r1", "x", "completed").run_status == "completed"
    running.end()


def test_metrics_are_served_while_it_works(redis: Redis, redis_url: str) -> None:
    running = Running(redis_url, metrics_port=0)
    assert running.service.health.leads
    running.end()
    assert not running.service.health.leads
