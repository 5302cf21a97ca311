"""The processes of `crewline worker -c N`: replaced when they die, told once when it ends (C-58)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from redis import Redis
from rq import Worker

from tests.support.waiting import until
from tests.workers.conftest import Start
from tests.workers.peer import Peer

pytestmark = pytest.mark.process


def children(pid: int) -> set[int]:
    try:
        return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except FileNotFoundError:
        return set()


def test_several_processes_share_the_work_and_the_dead_are_replaced(
    peer: Peer, start_worker: Start, redis: Redis
) -> None:
    process = start_worker("--mode", "fork", "-c", "3")
    until(lambda: len(Worker.all(connection=redis)) == 3, "three workers are registered")
    before = children(process.pid)
    dead = min(before)
    os.kill(dead, signal.SIGKILL)
    until(
        lambda: len(children(process.pid)) == 3 and dead not in children(process.pid),
        "the dead one is replaced",
    )
    for n in range(9):
        peer.task(f"t{n}", "slow", input={"seconds": 0.3})
    peer.launch(*(f"t{n}" for n in range(9)))
    peer.wait("end", count=9)
    assert len({e.worker for e in peer.entries if e.kind == "end"}) == 3
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=15) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in before)


def test_workers_of_a_killed_supervisor_end_by_themselves(
    peer: Peer, start_worker: Start, redis: Redis
) -> None:
    process = start_worker("--mode", "inline", "-c", "2")
    until(lambda: len(Worker.all(connection=redis)) == 2, "two workers are registered")
    workers = children(process.pid)
    process.kill()
    process.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "the workers have ended")
    assert Worker.all(connection=redis) == []
