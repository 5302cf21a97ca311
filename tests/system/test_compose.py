"""compose.yaml, as an installation is brought up by it: runs come from outside, workers are added and taken away."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator

import pytest
from redis import Redis
from redis.exceptions import ConnectionError

from coordinator.wire.channels import DEFAULT_NAMESPACE, queue_name
from coordinator.wire.connection import connect
from tests.support.command import ROOT, crewline, environment
from tests.support.waiting import until

pytestmark = [pytest.mark.container, pytest.mark.timeout(300)]

PROJECT = f"crewlinetest{os.getpid()}"
TEAM = "examples/refund/team.yaml"


class Compose:
    """The project, on a free port of the loopback."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{port}"
        names = {name: value for name, value in os.environ.items() if name.endswith("_IMAGE")}
        self._environment = environment({**names, "CREWLINE_REDIS_PORT": str(port)})

    def __call__(self, *words: str) -> str:
        """Runs `docker compose WORDS`, whichever version is installed; gives what it prints."""
        done = subprocess.run(
            [*command(), "--project-name", PROJECT, *words],
            cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def up(self, workers: int) -> None:
        """Brings the installation up, or changes the number of workers."""
        self("up", "--detach", "--no-build", "--scale", f"worker={workers}")

    def health(self, service: str) -> str:
        """What Docker says of a service's health."""
        container = self("ps", "--quiet", service).strip()
        form = "{{.State.Health.Status}}"
        words = ["docker", "inspect", "--format", form, container]
        return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def command() -> list[str]:
    """`docker compose`, or the older `docker-compose`."""
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True)
    if plugin.returncode == 0:
        return ["docker", "compose"]
    assert shutil.which("docker-compose"), "neither `docker compose` nor docker-compose is installed"
    return ["docker-compose"]


def workers(client: Redis, role: str) -> int:
    """Workers that are registered for a role, as `rq info` counts them."""
    registered: int = client.scard(f"rq:workers:{queue_name(DEFAULT_NAMESPACE, role)}")
    return registered


@pytest.fixture
def compose() -> Iterator[Compose]:
    """Brought up with one worker; everything is gone afterwards."""
    project = Compose()
    try:
        project.up(workers=1)
        yield project
    finally:
        project("down", "--volumes", "--timeout", "20")


def test_runs_come_from_outside_and_workers_scale(compose: Compose) -> None:
    until(lambda: compose.health("coordinator") == "healthy", "the coordinator is healthy", seconds=90)
    assert submit(compose, "first") == "completed"
    with connect(compose.url) as client:
        for count in (3, 1):
            compose.up(workers=count)
            until(
                lambda count=count: workers(client, "clerk") == workers(client, "editor") == count,
                f"there are {count} workers",
                ignore=(ConnectionError,),
            )
            assert submit(compose, f"with-{count}") == "completed"
    listed = crewline("list", "--redis", compose.url)
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == ["with-1", "with-3", "first"]


def submit(compose: Compose, run: str) -> str:
    """Submits the example and waits for its end; gives the status that the command prints."""
    done = crewline("submit", TEAM, "--id", run, "--wait", "--redis", compose.url)
    assert done.returncode == 0, done
    return done.stdout.strip()
