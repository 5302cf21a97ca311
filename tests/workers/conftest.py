from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis

from tests.support.command import environment
from tests.support.waiting import until
from tests.workers.installation import Installation
from tests.workers.peer import ROLE, Peer

HANDLERS = Path(__file__).with_name("sample_handlers.py")
ROOT = Path(__file__).parents[2]

Start = Callable[..., subprocess.Popen[bytes]]


def worker_pid(parent: int) -> int:
    """The one child of a process: the worker of a supervisor."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    return int(until(lambda: children.read_text().split(), "there is a child")[0])


def began(file: Path) -> int:
    """Waits until a handler said in its file that it began, and gives its process."""
    return until(
        lambda: file.exists() and "\n" in file.read_text() and int(file.read_text().split()[1]), "it began"
    )


@pytest.fixture
def peer(redis: Redis, redis_url: str, namespace: str) -> Iterator[Peer]:
    """A scripted coordinator for the role of the tests."""
    one = Peer(redis_url, namespace)
    yield one
    one.close()


@pytest.fixture
def installation(redis: Redis, redis_url: str, namespace: str) -> Iterator[Installation]:
    """A real coordinator on the test's Redis."""
    one = Installation(redis_url, namespace)
    yield one
    one.close()


@pytest.fixture
def start_worker(request: pytest.FixtureRequest, namespace: str) -> Iterator[Start]:
    """Starts `crewline worker` with more options; all of its processes are gone after the test."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(
        *options: str,
        handlers: Path = HANDLERS,
        roles: tuple[str, ...] = (ROLE,),
        redis: str = "",
        below_a_shell: bool = False,
    ) -> subprocess.Popen[bytes]:
        url = redis or request.getfixturevalue("redis_url")
        command = [sys.executable, "-m", "coordinator.cli.main", "worker", "--redis", url]
        command += ["--namespace", namespace, "--handlers", str(handlers), *options]
        for role in roles:
            command += ["--role", role]
        if below_a_shell:
            command = ["/bin/sh", "-c", '"$@"; exit $?', "sh", *command]
        process = subprocess.Popen(command, cwd=ROOT, env=environment(), start_new_session=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
