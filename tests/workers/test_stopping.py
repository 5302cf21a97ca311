"""How attempts and workers are stopped: cancel, timeout, drain, second signal, lost Redis (SPEC 7)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from redis import Redis

from tests.support.server import start_server
from tests.support.waiting import until
from tests.workers.conftest import Start, began, worker_pid
from tests.workers.peer import Peer, keys_of

pytestmark = pytest.mark.process

MODES = ("fork", "inline")


@pytest.mark.parametrize("mode", MODES)
def test_a_cancel_is_told_at_once_and_the_handler_may_finish(
    peer: Peer, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    peer.task("a", "until_canceled", input={"file": str(tmp_path / "a")})
    start_worker("--mode", mode, "--cancel-grace", "60")
    peer.launch("a")
    began(tmp_path / "a")
    peer.cancel(peer.wait("start", task="a"))
    end = peer.wait("end", task="a", timeout=10)
    assert (end.outcome, end.payload) == ("succeeded", '{"canceled":true}')


@pytest.mark.parametrize("mode", MODES)
def test_an_async_handler_gets_cancelled_error(
    peer: Peer, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    peer.task("a", "async_until_canceled", input={"file": str(tmp_path / "a")})
    start_worker("--mode", mode, "--cancel-grace", "60")
    peer.launch("a")
    began(tmp_path / "a")
    peer.cancel(peer.wait("start", task="a"))
    assert peer.wait("end", task="a", timeout=10).outcome == "canceled"
    assert "canceled" in (tmp_path / "a").read_text()


def test_c26_after_the_grace_a_child_is_stopped_with_a_last_chance(
    peer: Peer, start_worker: Start, tmp_path: Path
) -> None:
    peer.task("a", "stubborn", input={"file": str(tmp_path / "a")})
    peer.task("after", "echo")
    start_worker("--mode", "fork", "--cancel-grace", "0.3")
    peer.launch("a", "after")
    child = began(tmp_path / "a")
    peer.cancel(peer.wait("start", task="a"))
    end = peer.wait("end", task="a", timeout=10)
    assert (end.outcome, json.loads(end.error)["type"]) == ("canceled", "AttemptCanceled")
    assert "finally" in (tmp_path / "a").read_text()
    assert peer.wait("end", task="after").outcome == "succeeded"
    assert not Path(f"/proc/{child}").exists()


def test_a_stuck_inline_handler_costs_the_process_which_is_replaced(
    peer: Peer, start_worker: Start, tmp_path: Path
) -> None:
    peer.task("a", "stubborn", input={"file": str(tmp_path / "a")})
    peer.task("after", "echo")
    start_worker("--mode", "inline", "--cancel-grace", "0.3")
    peer.launch("a")
    stuck = began(tmp_path / "a")
    peer.cancel(peer.wait("start", task="a"))
    assert peer.wait("end", task="a", timeout=10).outcome == "canceled"
    peer.launch("after")
    assert int(peer.wait("end", task="after").worker.split(".")[1]) != stuck


@pytest.mark.parametrize("mode", MODES)
def test_c06_a_handler_does_not_outlive_its_timeout(
    peer: Peer, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    now = int(time.time() * 1000)
    peer.task("a", "stubborn", input={"file": str(tmp_path / "a")}, now=now, timeout_at=now + 500)
    peer.task("after", "echo")
    start_worker("--mode", mode, "--cancel-grace", "0.2")
    peer.launch("a")
    end = peer.wait("end", task="a", timeout=10)
    assert (end.outcome, json.loads(end.error)["type"]) == ("transient", "TimedOut")
    peer.launch("after")
    assert peer.wait("end", task="after").outcome == "succeeded"


@pytest.mark.parametrize("mode", MODES)
def test_an_idle_worker_ends_at_once_and_leaves_nothing(
    peer: Peer, start_worker: Start, redis: Redis, mode: str
) -> None:
    peer.task("a", "echo")
    process = start_worker("--mode", mode)
    peer.launch("a")
    peer.wait("end", task="a")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 0
    left = {key for key in keys_of(redis) if not key.startswith(("rq:worker:", "crewline:inbox:"))}
    assert left == {"rq:queues"}  # RQ's list of queue names; RQ keeps a dead worker's own hash for a minute


@pytest.mark.parametrize("mode", MODES)
def test_c57_a_signal_drains_what_runs_may_finish_and_nothing_new_begins(
    peer: Peer, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    peer.task("a", "until_draining", input={"file": str(tmp_path / "a")})
    process = start_worker("--mode", mode)
    peer.launch("a")
    began(tmp_path / "a")
    peer.task("b", "echo")
    peer.launch("b")
    process.send_signal(signal.SIGTERM)
    assert peer.wait("end", task="a", timeout=10).payload == '{"drained":true}'
    assert process.wait(timeout=10) == 0
    assert peer.count("end", task="b") == 0


@pytest.mark.parametrize("mode", MODES)
def test_c58_a_signal_to_the_whole_group_and_again_is_one_drain(
    peer: Peer, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    peer.task("a", "until_draining", input={"file": str(tmp_path / "a")})
    process = start_worker("--mode", mode)
    peer.launch("a")
    began(tmp_path / "a")
    os.killpg(process.pid, signal.SIGTERM)
    os.killpg(process.pid, signal.SIGINT)
    assert peer.wait("end", task="a", timeout=10).payload == '{"drained":true}'
    assert process.wait(timeout=10) == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_second_signal_stops_what_runs(peer: Peer, start_worker: Start, tmp_path: Path, mode: str) -> None:
    peer.task("a", "stubborn", input={"file": str(tmp_path / "a")})
    process = start_worker("--mode", mode)
    peer.launch("a")
    began(tmp_path / "a")
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):  # the same signal told twice within a second is one
        process.wait(timeout=1.5)
    process.send_signal(signal.SIGTERM)
    end = peer.wait("end", task="a", timeout=10)
    assert (end.outcome, json.loads(end.error)["type"]) == ("transient", "WorkerStopped")
    assert process.wait(timeout=10) == 0


@pytest.mark.parametrize("mode", MODES)
def test_the_drain_timeout_stops_what_runs(
    peer: Peer, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    peer.task("a", "stubborn", input={"file": str(tmp_path / "a")})
    peer.task("b", "async_until_canceled", input={"file": str(tmp_path / "b")})
    process = start_worker("--mode", mode, "--drain-timeout", "0.5")
    names = ("a",) if mode == "fork" else ("b",)
    peer.launch(*names)
    began(tmp_path / names[0])
    process.send_signal(signal.SIGTERM)
    end = peer.wait("end", timeout=10)
    assert (end.outcome, json.loads(end.error)["type"]) == ("transient", "WorkerStopped")
    assert process.wait(timeout=10) == 0


def test_c36_an_idle_worker_whose_connections_were_cut_goes_on(
    peer: Peer, start_worker: Start, redis: Redis
) -> None:
    peer.task("a", "echo")
    peer.task("b", "echo")
    ours = {client["id"] for client in redis.client_list()}
    start_worker("--mode", "inline")
    peer.launch("a")
    peer.wait("end", task="a")
    for client in redis.client_list():
        if client["id"] not in ours:
            redis.client_kill_filter(_id=client["id"])
    peer.launch("b")
    assert peer.wait("end", task="b").outcome == "succeeded"


@pytest.mark.parametrize("mode", MODES)
def test_a_result_is_offered_until_redis_is_back(start_worker: Start, tmp_path: Path, mode: str) -> None:
    """Redis is away while the handler ends; with its data it comes back on the same socket."""
    with start_server(tmp_path / "data") as server:
        namespace = "crewline"
        peer = Peer(server.url, namespace)
        peer.task("a", "until_file", input={"file": str(tmp_path / "a"), "go": str(tmp_path / "go")})
        start_worker("--mode", mode, redis=server.url)
        peer.launch("a")
        began(tmp_path / "a")
        away = Redis.from_url(server.url)
        away.config_set("requirepass", "closed")  # nobody gets in; those who are in are thrown out
        guard = Redis.from_url(server.url, password="closed")
        guard.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        guard.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        (tmp_path / "go").touch()
        until(lambda: (tmp_path / "a").read_text().count("\n") == 2, "the handler ended")
        guard.config_set("requirepass", "")
        assert peer.wait("end", task="a", timeout=20).outcome == "succeeded"
        peer.close()
        away.close()
        guard.close()


def test_with_die_with_parent_nothing_outlives_a_killed_parent(
    peer: Peer, start_worker: Start, tmp_path: Path
) -> None:
    peer.task("a", "stubborn", input={"file": str(tmp_path / "a")})
    process = start_worker("--mode", "fork", "--die-with-parent", below_a_shell=True)
    peer.launch("a")
    child = began(tmp_path / "a")
    supervisor = worker_pid(process.pid)
    worker = worker_pid(supervisor)
    process.kill()
    until(lambda: not any(map(_runs, (supervisor, worker, child))), "all are gone")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
