"""Owns a small installation for the commands: a coordinator on the test's Redis; the commands run in this process."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from coordinator.cli.main import main
from coordinator.runtime.service import Service, Settings
from tests.edges.desk import Desk


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its data as JSON."""
        return json.loads(self.out)


Call = Callable[..., Done]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs `crewline WORDS` in this process; Redis is that of the test when `coordinator` is used too."""
    for name in ("CREWLINE_REDIS_URL", "CREWLINE_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: object) -> Done:
        capfd.readouterr()
        code: Any = 0
        try:
            main([str(word) for word in words])
        except SystemExit as exit_:
            code = exit_.code
        out, err = capfd.readouterr()
        return Done(int(code or 0), out, err)

    return run


@pytest.fixture
def coordinator(call: Call, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A coordinator that leads, in a thread; commands find its Redis in their environment."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    monkeypatch.setenv("CREWLINE_REDIS_URL", redis_url)
    service = Service(redis_url, Settings(idle_ms=50))
    leads = threading.Event()
    thread = threading.Thread(target=service.run, kwargs={"signals": False, "ready": leads.set})
    thread.start()
    try:
        assert leads.wait(30)
        yield service
    finally:
        service.stop()
        thread.join(30)
        structlog.reset_defaults()
    assert not thread.is_alive()


@pytest.fixture
def write_team(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Writes a Team file."""

    def write(team: dict[str, Any]) -> Path:
        path = tmp_path / f"{team['team']}.json"
        path.write_text(json.dumps(team))
        return path

    return write


@pytest.fixture
def refund(write_team: Callable[[dict[str, Any]], Path]) -> Callable[..., Path]:
    """The Team of order and policy (required) and style (optional), all done outside; `max_steps` 4."""

    def make(max_steps: int | None = 4, style_required: bool = False, **more: Any) -> Path:
        tasks = {
            "order": {"external": True},
            "policy": {"external": True},
            "style": {"external": True, "required": style_required},
        }
        limits = {"max_steps": max_steps} if max_steps else {}
        return write_team({"team": "refund", "tasks": tasks, "limits": limits, **more})

    return make


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A folder to use the command line in."""
    place = Desk(tmp_path)
    yield place
    place.close()


@pytest.fixture
def worker(coordinator: Service, desk: Desk, redis_url: str) -> Iterator[None]:
    """A worker of the desk's handlers, in a process of its own, on the coordinator's Redis."""
    words = ("--role", "clerk", "--handlers", "handlers.py", "--mode", "inline", "--redis", redis_url)
    process = desk.start(*words, command="worker")
    yield
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0
