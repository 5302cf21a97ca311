"""What Crewline's worker uses of RQ, pinned: a new RQ that changes it fails here and not in production (DESIGN 3)."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import pytest
import rq
from redis import Redis
from rq.command import send_kill_horse_command, send_shutdown_command
from rq.serializers import JSONSerializer
from rq.suspension import WORKERS_SUSPENDED, resume, suspend
from rq.worker import BaseWorker

from coordinator.wire import channels
from tests.support.waiting import until
from tests.workers.conftest import Start, began, worker_pid
from tests.workers.peer import ROLE, Peer
from workers.link import SUSPENDED, Link
from workers.worker import BLOCK_S, CrewlineWorker, WorkerOptions

MODES = ("fork", "inline")


def test_the_hooks_are_there_and_called_as_we_expect() -> None:
    methods: dict[str, list[str]] = {
        "bootstrap": ["self", "logging_level", "date_format", "log_format"],
        "register_birth": ["self"],
        "register_death": ["self"],
        "subscribe": ["self"],
        "unsubscribe": ["self"],
        "handle_payload": ["self", "message"],
        "request_stop": ["self", "signum", "frame"],
        "request_force_stop": ["self", "signum", "frame"],
        "_install_signal_handlers": ["self"],
        "_shutdown": ["self"],
        "teardown": ["self"],
        "check_for_suspension": ["self", "burst"],
        "run_maintenance_tasks": ["self"],
        "set_state": ["self", "state", "pipeline"],
        "heartbeat": ["self", "timeout", "pipeline"],
        "kill_horse": ["self", "sig"],
    }
    for name, parameters in methods.items():
        assert list(inspect.signature(getattr(rq.Worker, name)).parameters) == parameters, name
    assert isinstance(BaseWorker.dequeue_timeout, property)
    assert isinstance(BaseWorker.connection_timeout, property)
    assert "_shutdown" in inspect.getsource(BaseWorker.request_stop)
    assert "request_force_stop" in inspect.getsource(BaseWorker.request_stop)
    assert "_stop_requested" in inspect.getsource(BaseWorker.check_for_suspension)


def test_our_names_are_those_of_rq(redis: Redis) -> None:
    queue = rq.Queue(channels.queue_name("crewline", ROLE), connection=redis, serializer=JSONSerializer)
    assert Link(redis, "crewline", (ROLE,), "w1").posts[ROLE].queue == queue.key
    assert rq.job.Job.key_for("x") == b"rq:job:x" or rq.job.Job.key_for("x") == "rq:job:x"
    assert SUSPENDED == WORKERS_SUSPENDED


def test_the_socket_timeout_bounds_how_long_a_dead_connection_is_not_seen(
    redis: Redis, redis_url: str
) -> None:
    client = Redis.from_url(redis_url)
    worker = CrewlineWorker(client, {}, WorkerOptions(roles=(ROLE,)))
    options: dict[str, Any] = client.connection_pool.connection_kwargs
    assert BLOCK_S < options["socket_timeout"] <= 15
    assert worker.serializer is JSONSerializer
    client.close()


@pytest.mark.parametrize("mode", MODES)
def test_rq_sees_the_worker_and_its_queues(peer: Peer, start_worker: Start, redis: Redis, mode: str) -> None:
    peer.task("a", "echo")
    start_worker("--mode", mode, roles=(ROLE, "editor"))
    peer.launch("a")
    name = peer.wait("end", task="a").worker
    workers = rq.Worker.all(connection=redis)
    assert [worker.name for worker in workers] == [name]
    assert workers[0].queue_names() == ["crewline:clerk", "crewline:editor"]
    until(lambda: rq.Worker.all(connection=redis)[0].get_state() == "idle", "RQ calls it idle")


@pytest.mark.parametrize("mode", MODES)
def test_suspend_and_resume(peer: Peer, start_worker: Start, redis: Redis, mode: str) -> None:
    peer.task("a", "echo")
    peer.task("b", "echo")
    start_worker("--mode", mode)
    peer.launch("a")
    peer.wait("end", task="a")
    suspend(redis)
    peer.launch("b")
    until(lambda: rq.Worker.all(connection=redis)[0].get_state() == "suspended", "the worker is suspended")
    assert peer.count("start", task="b") == 0
    assert redis.llen("rq:queue:crewline:clerk") == 1
    resume(redis)
    assert peer.wait("end", task="b").outcome == "succeeded"


@pytest.mark.parametrize("mode", MODES)
def test_the_shutdown_command_ends_the_worker_for_good(
    peer: Peer, start_worker: Start, redis: Redis, mode: str
) -> None:
    peer.task("a", "echo")
    process = start_worker("--mode", mode)
    peer.launch("a")
    send_shutdown_command(redis, peer.wait("end", task="a").worker)
    assert process.wait(timeout=10) == 0


def test_the_kill_horse_command_kills_the_child_only(
    peer: Peer, start_worker: Start, redis: Redis, tmp_path: Path
) -> None:
    peer.task("a", "stubborn", input={"file": str(tmp_path / "a")})
    peer.task("b", "echo")
    process = start_worker("--mode", "fork")
    peer.launch("a")
    began(tmp_path / "a")
    worker = worker_pid(process.pid)
    send_kill_horse_command(redis, peer.wait("start", task="a").worker)
    end = peer.wait("end", task="a")
    assert end.outcome == "transient" and "SIGKILL" in end.error
    peer.launch("b")
    assert peer.wait("end", task="b").worker == end.worker
    os.kill(worker, 0)
