"""Leases as a worker keeps them: renewed while a handler lives, never started when they may be over (SPEC 7, C-05)."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from coordinator.wire.reports import RoleReport
from tests.support.waiting import until
from tests.workers.conftest import Start, began, worker_pid
from tests.workers.peer import Peer

pytestmark = pytest.mark.process

MODES = ("fork", "inline")


@pytest.mark.parametrize("mode", MODES)
def test_a_lease_is_renewed_every_third_of_a_heartbeat(peer: Peer, start_worker: Start, mode: str) -> None:
    peer.task("slow", "slow", input={"seconds": 2.0}, heartbeat_ms=900)
    start_worker("--mode", mode)
    peer.launch("slow")
    end = peer.wait("end", task="slow")
    renews = peer.count("renew")
    assert end.outcome == "succeeded"
    assert 3 <= renews <= 7  # every 300 ms, but the first after a handler has run for a little while
    peer.task("after", "echo")
    peer.launch("after")
    peer.wait("end", task="after")
    assert peer.count("renew") == renews


@pytest.mark.parametrize("mode", MODES)
def test_progress_goes_along_with_renewals_and_not_for_every_word(
    peer: Peer, start_worker: Start, mode: str
) -> None:
    peer.task("beats", "beats", input={"seconds": 2.5})
    start_worker("--mode", mode)
    peer.launch("beats")
    peer.wait("end", task="beats")
    progress = [e for e in peer.entries if e.kind == "renew" and e.progress]
    assert 2 <= len(progress) <= 4
    assert all("left" in json.loads(e.details) for e in progress)


def test_c05_a_grant_that_comes_when_its_lease_may_be_over_is_not_started(
    peer: Peer, start_worker: Start
) -> None:
    """The worker stands still between its question and the answer for longer than the lease lasts."""
    stopped: list[int] = []

    def stop_the_worker_first(start: RoleReport) -> dict[str, object] | None:
        if start.attempt == 1:
            stopped.append(int(start.worker.split(".")[1]))
            os.kill(stopped[0], signal.SIGSTOP)
        return peer.grant(start)

    peer.answer = stop_the_worker_first
    peer.task("late", "echo", heartbeat_ms=1500)
    start_worker("--mode", "inline")
    peer.launch("late")
    peer.wait("start", task="late")
    ends = time.monotonic() + 2.0
    until(lambda: time.monotonic() > ends, "the lease's time has passed")
    os.kill(stopped[0], signal.SIGCONT)
    handed_back = peer.wait("hand_back", task="late")
    assert (handed_back.reason, handed_back.lease) == ("refused_start", "lease-late-1")
    peer.launch("late", attempt=2)
    assert peer.wait("end", task="late").attempt == 2


def test_attempts_that_wait_for_a_slow_handler_are_handed_back(peer: Peer, start_worker: Start) -> None:
    for n in range(40):
        peer.task(f"quick{n}", "echo")
    peer.task("slow", "slow", input={"seconds": 1.5})
    names = [f"quick{n}" for n in range(40)]
    peer.relaunches = True
    start_worker("--mode", "inline")
    peer.launch(*names[:33], "slow", *names[33:])
    slow = peer.wait("end", task="slow")
    for name in names:
        assert peer.wait("end", task=name).outcome == "succeeded"
    assert slow.outcome == "succeeded"
    ended = [e.task for e in peer.entries if e.kind == "end"]
    assert len(ended) == len(set(ended)) == 41
    assert {e.reason for e in peer.entries if e.kind == "hand_back"} <= {"busy"}


@pytest.mark.parametrize("mode", MODES)
def test_what_is_refused_or_has_no_handler_is_not_run(peer: Peer, start_worker: Start, mode: str) -> None:
    peer.task("unknown", "no_such_capability")
    peer.task("after", "echo")
    peer.answer = lambda start: None if start.task == "refused" else peer.grant(start)
    start_worker("--mode", mode)
    peer.launch("refused", "unknown", "after")
    peer.wait("end", task="after")
    assert peer.wait("hand_back", task="unknown").reason == "no_worker"
    assert peer.count("end") == 1


@pytest.mark.parametrize("mode", MODES)
def test_what_is_no_job_of_ours_is_passed_over(peer: Peer, start_worker: Start, mode: str) -> None:
    peer.task("a", "echo")
    start_worker("--mode", mode)
    for raw in (
        b"\xff\xfe",
        b"",
        b"x" * 5000,
        b"clerk--r1--a",
        b"clerk--r:1--a--1",
        b"editor--r1--a--1",
        b"clerk--r1--a--0",
    ):
        peer.redis.rpush("rq:queue:crewline:clerk", raw)
    peer.launch("a")
    assert peer.wait("end").task == "a"
    assert peer.count("start") == 1


def test_async_handlers_run_at_the_same_time_and_never_more_than_prefetch(
    peer: Peer, start_worker: Start
) -> None:
    for n in range(12):
        peer.task(f"a{n}", "async_together", input={"count": 4})
    start_worker("--mode", "inline", "--prefetch", "4")
    peer.launch(*(f"a{n}" for n in range(12)))
    for n in range(12):
        assert json.loads(peer.wait("end", task=f"a{n}").payload) == {"most": 4}
    assert peer.count("hand_back") == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_serves_several_roles(
    peer: Peer, start_worker: Start, redis_url: str, namespace: str, mode: str
) -> None:
    other = Peer(redis_url, namespace, role="editor")
    try:
        for one in (peer, other):
            one.task("a", "echo")
            one.task("b", "async_echo")
        start_worker("--mode", mode, roles=("clerk", "editor"))
        for one in (peer, other):
            one.launch("a", "b")
        workers = {one.wait("end", task=task).worker for one in (peer, other) for task in ("a", "b")}
        assert len(workers) == 1
    finally:
        other.close()


def test_c04_a_killed_worker_is_replaced_and_its_child_dies_with_it(
    peer: Peer, start_worker: Start, tmp_path: Path
) -> None:
    file = tmp_path / "said"
    peer.task("works", "stubborn", input={"file": str(file)})
    peer.task("after", "echo")
    supervisor = start_worker("--mode", "fork")
    peer.launch("works")
    child = began(file)
    worker = worker_pid(supervisor.pid)
    os.kill(worker, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{child}").exists(), "the child is gone")
    peer.launch("after")
    assert peer.wait("end", task="after").worker.split(".")[1] != str(worker)
