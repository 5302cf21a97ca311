"""Owns a really running API for tests: a coordinator in a thread, the server in another, on a free port.

Must not reach around HTTP: tests of the edge ask as a client would.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from coordinator.api.app import build_api
from coordinator.api.gate import Settings
from coordinator.api.place import Place
from coordinator.api.serving import Listener
from coordinator.api.tokens import SCOPES, TokenFile, add_token
from coordinator.runtime.service import Service
from coordinator.runtime.service import Settings as CoordinatorSettings
from coordinator.wire.channels import DEFAULT_NAMESPACE
from coordinator.wire.connection import connect

NO_LIMITS = Settings(rate=1e6, burst=1e6, failures=1e6, stream_seconds=20)


@dataclass(frozen=True)
class Served:
    """A running API. tokens: the file; secrets: a token of each scope, and `all` with every scope."""

    url: str
    tokens: Path
    secrets: dict[str, str]
    place: Place


@contextmanager
def running_coordinator(redis_url: str) -> Iterator[Service]:
    """A coordinator that leads, in a thread."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    service = Service(redis_url, CoordinatorSettings(idle_ms=50))
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


@contextmanager
def running_api(
    redis_url: str, folder: Path, settings: Settings = NO_LIMITS, answer_seconds: float = 10
) -> Iterator[Served]:
    """The API on a free port, with one token for each scope and one, `anna`, for all of them."""
    tokens = folder / "tokens.jsonl"
    secrets = {scope: add_token(tokens, f"only-{scope}", [scope]) for scope in SCOPES}
    secrets["all"] = add_token(tokens, "anna", SCOPES)
    client = connect(redis_url)
    place = Place(client, DEFAULT_NAMESPACE, answer_seconds=answer_seconds)
    app = build_api(place, TokenFile(tokens), settings)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = Listener(app)
    thread = threading.Thread(target=server.run, args=[listener])
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", tokens, secrets, place)
    finally:
        server.stop()
        thread.join(30)
        listener.close()
        client.close()
    assert not thread.is_alive()
