"""Owns the running API of the edge's tests, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.api_server import Served, running_api, running_coordinator


@pytest.fixture
def served(redis_url: str, tmp_path: Path) -> Iterator[Served]:
    """The API of an installation whose coordinator leads."""
    with running_coordinator(redis_url), running_api(redis_url, tmp_path) as served:
        yield served


Open = Callable[[str], httpx.Client]


@pytest.fixture
def open_client(served: Served) -> Iterator[Open]:
    """Gives a client with the token of a scope (`all` for every one, empty for no token)."""
    clients: list[httpx.Client] = []

    def open_one(scope: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {served.secrets[scope]}"} if scope else {}
        clients.append(httpx.Client(base_url=f"{served.url}/api/v1", headers=headers, timeout=30))
        return clients[-1]

    yield open_one
    for client in clients:
        client.close()


@pytest.fixture
def api(open_client: Open) -> httpx.Client:
    """A client that may do everything; its name is `anna`."""
    return open_client("all")
