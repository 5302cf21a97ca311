"""A cancel in its two phases, with a coordinator and real worker processes (SPEC 7)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from coordinator.client import Client
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadEvents, ReadMetrics, ReadRecords, ReadRun
from tests.edges.conftest import Call
from tests.support.command import arguments, environment
from tests.support.waiting import until

pytestmark = [pytest.mark.usefixtures("coordinator"), pytest.mark.process]

HANDLERS = Path(__file__).parents[1] / "workers" / "sample_handlers.py"
MODES = ("fork", "inline")
CAPABILITIES = ["until_canceled", "async_until_canceled", "stubborn", "echo"]

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start_worker(redis_url: str) -> Iterator[Start]:
    """Starts `crewline worker` for the clerks; all of its processes are gone after the test."""
    processes = []

    def start(*options: str) -> subprocess.Popen[bytes]:
        words = ["worker", "--role", "clerk", "--handlers", str(HANDLERS), "--redis", redis_url, *options]
        process = subprocess.Popen(arguments(*words), env=environment(), start_new_session=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Scene:
    """One run of the clerks, and what is recorded of it."""

    def __init__(self, redis: Redis, folder: Path) -> None:
        self.client = Client(redis)
        self._machine = Machine(redis)
        self._folder = folder

    def submit(self, run: str = "r1", **tasks: str) -> None:
        """Submits tasks by name and capability; each leaves its words in a file of its name."""
        document = {
            "team": "t",
            "roles": {"clerk": {"capabilities": CAPABILITIES}},
            "tasks": {
                name: {"capability": capability, "input": {"file": str(self._folder / name)}}
                for name, capability in tasks.items()
            },
        }
        assert self.client.submit(document, run=run).status == "applied"

    def words(self, task: str) -> list[str]:
        """What a task's handler has said so far: pairs of a word and a process."""
        file = self._folder / task
        return file.read_text().split() if file.exists() else []

    def await_word(self, task: str, word: str) -> int:
        """Waits until the handler said it; gives its process."""
        words = until(lambda: word in self.words(task) and self.words(task), f"{task} says {word}")
        return int(words[words.index(word) + 1])

    def cancellations(self, run: str = "r1") -> dict[str, dict[str, Any]]:
        """The records of attempts that were told to end, by task."""
        return {entry["task"]: entry for entry in self._machine.read(ReadRecords(run, "cancellations"))}

    def await_outcome(self, task: str, outcome: str) -> dict[str, Any]:
        """Waits until the cancel of a task came to that; gives its record."""
        return until(
            lambda: self.cancellations()[task]["outcome"] == outcome and self.cancellations()[task],
            f"{task} is {outcome}",
        )

    def events(self, run: str = "r1") -> list[dict[str, str]]:
        """The run's history."""
        found: list[dict[str, str]] = self._machine.read(ReadEvents(run, 0, 10_000))
        return found

    def status(self, run: str = "r1") -> str:
        """The run's status."""
        return str(self._machine.read(ReadRun(run))["status"])

    def counter(self, name: str) -> int:
        """A counter of the installation."""
        return int(self._machine.read(ReadMetrics()).get(name, 0))


@pytest.fixture
def scene(redis: Redis, tmp_path: Path) -> Scene:
    return Scene(redis, tmp_path)


@pytest.mark.parametrize("mode", MODES)
def test_a_running_handler_is_told_at_once_and_may_complete_anyway(
    scene: Scene, start_worker: Start, mode: str
) -> None:
    """Told long before its next heartbeat, which would come after ten seconds."""
    scene.submit(a="until_canceled")
    start_worker("--mode", mode, "--cancel-grace", "60")
    scene.await_word("a", "began")
    answer = scene.client.cancel("r1", reason="no longer needed", source="ann")
    assert (answer.status, answer.run_status) == ("applied", "canceled")
    scene.await_word("a", "canceled")
    record = scene.await_outcome("a", "completed_anyway")
    assert record["source"] == "ann"
    [asked] = [event for event in scene.events() if event["kind"] == "cancel_run_requested"]
    assert asked["reason"] == "no longer needed"
    assert 0 <= record["at"] - record["requested_at"] < 5_000
    assert scene.status() == "canceled"
    assert scene.counter("cancellations:completed_anyway") == 1


@pytest.mark.parametrize("mode", MODES)
def test_an_async_handler_gets_cancelled_error_and_the_cancel_is_confirmed(
    scene: Scene, start_worker: Start, mode: str
) -> None:
    scene.submit(a="async_until_canceled")
    start_worker("--mode", mode, "--cancel-grace", "60")
    scene.await_word("a", "began")
    scene.client.cancel("r1", reason="enough")
    scene.await_word("a", "canceled")
    scene.await_outcome("a", "confirmed")
    kinds = [event["kind"] for event in scene.events()]
    assert kinds[-2:] == ["cancel_requested", "cancel_confirmed"]
    assert not {"attempt_lost", "attempt_failed", "task_failed"} & set(kinds), "a stop is no crash"


def test_a_handler_that_ignores_the_cancel_is_stopped_after_the_grace(
    scene: Scene, start_worker: Start
) -> None:
    scene.submit(a="stubborn")
    start_worker("--mode", "fork", "--cancel-grace", "0.3")
    child = scene.await_word("a", "began")
    scene.client.cancel("r1", reason="enough")
    scene.await_outcome("a", "confirmed")
    assert not Path(f"/proc/{child}").exists()


def test_a_stuck_inline_handler_costs_its_process_and_is_confirmed(scene: Scene, start_worker: Start) -> None:
    scene.submit(a="stubborn")
    start_worker("--mode", "inline", "--cancel-grace", "0.3")
    scene.await_word("a", "began")
    scene.client.cancel("r1", reason="enough")
    scene.await_outcome("a", "confirmed")
    scene.submit("r2", b="echo")
    until(lambda: scene.status("r2") == "completed", "another process works")


def test_a_worker_that_says_nothing_is_unconfirmed_until_it_does(
    scene: Scene, start_worker: Start, redis: Redis
) -> None:
    redis.hset("crewline:settings", "cancel_grace_ms", "500")
    scene.submit(a="async_until_canceled")
    worker = start_worker("--mode", "inline", "--cancel-grace", "60")
    scene.await_word("a", "began")
    os.killpg(worker.pid, signal.SIGSTOP)
    scene.client.cancel("r1", reason="enough")
    record = scene.await_outcome("a", "unconfirmed")
    assert record["at"] - record["requested_at"] >= 500
    os.killpg(worker.pid, signal.SIGCONT)
    scene.await_outcome("a", "confirmed")
    kinds = [event["kind"] for event in scene.events()]
    assert kinds[-3:] == ["cancel_requested", "cancel_unconfirmed", "cancel_confirmed"]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_starts_after_a_cancel(scene: Scene, start_worker: Start, redis: Redis, mode: str) -> None:
    """All jobs lie in RQ when the run is canceled; those who pop them get no lease."""
    names = {f"t{n}": "until_canceled" for n in range(30)}
    scene.submit(**names)
    start_worker("--mode", mode, "-c", "2", "--cancel-grace", "60")
    until(lambda: sum("began" in scene.words(name) for name in names) >= 2, "two handlers run")
    scene.client.cancel("r1", reason="enough")
    until(lambda: redis.llen("rq:queue:crewline:clerk") == 0, "the queue is empty")
    open_ones = ("requested", "unconfirmed")
    until(
        lambda: all(record["outcome"] not in open_ones for record in scene.cancellations().values()),
        "all have answered",
    )
    kinds = [event["kind"] for event in scene.events()]
    assert "attempt_started" not in kinds[kinds.index("run_stopped") :]
    started = {event["task_id"] for event in scene.events() if event["kind"] == "attempt_started"}
    assert {name for name in names if "began" in scene.words(name)} <= started
    assert set(scene.cancellations()) == started


def test_one_canceled_task_ends_at_once_and_the_rest_goes_on(scene: Scene, start_worker: Start) -> None:
    scene.submit(a="async_until_canceled", b="until_canceled")
    start_worker("--mode", "fork", "-c", "2", "--cancel-grace", "60")
    scene.await_word("a", "began")
    scene.await_word("b", "began")
    answer = scene.client.cancel("r1", task="a", reason="not this one")
    assert answer.run_status == "running"
    scene.await_outcome("a", "confirmed")
    assert "canceled" not in scene.words("b")
    [moved] = [event for event in scene.events() if event["kind"] == "task_canceled"]
    assert (moved["task_id"], moved["from"]) == ("a", "running")
    scene.client.cancel("r1", reason="enough")
    scene.await_outcome("b", "completed_anyway")


def test_the_report_tells_what_became_of_each_cancel(scene: Scene, start_worker: Start, call: Call) -> None:
    scene.submit(a="async_until_canceled")
    start_worker("--mode", "inline", "--cancel-grace", "60")
    scene.await_word("a", "began")
    done = call("cancel", "r1", "--reason", "enough")
    assert (done.code, done.out) == (0, "canceled\n")
    scene.await_outcome("a", "confirmed")
    report = call("report", "r1", "--json").json
    assert report["tasks"]["a"]["state"] == "canceled"
    [entry] = report["cancellations"]
    assert entry["task"] == "a"
