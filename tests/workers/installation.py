"""A real coordinator in a thread, for tests of what workers and coordinator do together; workers are processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from coordinator.client import Client
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadEvents, ReadRecords, ReadRun, ReadTask
from coordinator.machine.snapshot import snapshot
from coordinator.run_report import build_report
from coordinator.runtime.service import Service, Settings
from coordinator.wire.connection import connect
from tests.support.waiting import until

ENDS_S = 60.0


class Installation:
    """One coordinator, and what can be asked of it."""

    def __init__(self, url: str, namespace: str) -> None:
        self.service = Service(url, Settings(namespace=namespace, idle_ms=50))
        self.redis = connect(url)
        self.machine = Machine(self.redis, namespace)
        self.client = Client(self.redis, namespace)
        leads = threading.Event()
        self._thread = threading.Thread(
            target=self.service.run, kwargs={"signals": False, "ready": leads.set}, daemon=True
        )
        self._thread.start()
        assert leads.wait(30)
        self.machine.load()

    def close(self) -> None:
        """The coordinator ends."""
        self.service.stop()
        self._thread.join(30)
        self.redis.close()

    def submit(self, tasks: dict[str, Any], roles: dict[str, Any], **more: Any) -> str:
        """Submits a Team; gives the run."""
        answer = self.client.submit(
            {"team": "t", "roles": roles, "tasks": tasks, **more}, {}, f"r{id(tasks)}"
        )
        assert answer.status == "applied", answer
        return answer.run

    def status(self, run: str) -> str:
        """The run's status."""
        return str(self.machine.read(ReadRun(run))["status"])

    def task(self, run: str, name: str) -> dict[str, str]:
        """A task's record."""
        found: dict[str, str] = self.machine.read(ReadTask(run, name))
        return found

    def records(self, run: str, kind: str) -> list[dict[str, Any]]:
        """All records of a kind."""
        found: list[dict[str, Any]] = self.machine.read(ReadRecords(run, kind))
        return found

    def kinds(self, run: str, task: str) -> list[str]:
        """The kinds of a task's events."""
        events = self.machine.read(ReadEvents(run, 0, 10_000))
        return [event["kind"] for event in events if event["task_id"] == task]

    def until(self, ask: Callable[[], Any], what: str) -> Any:
        """Waits until it holds."""
        return until(ask, what, seconds=ENDS_S)

    def rest(self, run: str) -> dict[str, Any]:
        """Waits until the run is not running; gives its report."""
        self.until(lambda: self.status(run) != "running", "the run rests")
        picture = snapshot(self.machine, run)
        assert picture is not None
        report: dict[str, Any] = build_report(picture)
        return report
