"""Redis restarts, is cut off without a word, kills its clients: whoever waits for work finds it again by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.wire.connection import connect
from ops.chaos.proxy import Proxy
from ops.chaos.store import Store
from tests.chaos.processes import Crew, team
from tests.support.waiting import until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]

SOCKET_S, BLOCK_S = 15, 5
"""An idle worker's socket timeout, and how long it blocks at a time."""


class Away:
    """A crew whose worker and coordinator reach Redis by the proxy, and a Redis that can be restarted."""

    def __init__(self, store: Store, proxy: Proxy, crew: Crew) -> None:
        self.store, self.proxy, self.crew = store, proxy, crew


@pytest.fixture
def away(tmp_path: Path) -> Iterator[Away]:
    store = Store(tmp_path / "redis")
    with Proxy(store.socket) as proxy:
        store.moved = lambda path: setattr(proxy, "target", path)
        redis = connect(proxy.url("test"))
        crew = Crew(redis, proxy.url("crew"), tmp_path)
        try:
            yield Away(store, proxy, crew)
        finally:
            crew.close()
            redis.close()
            store.stop()


def begin(away: Away, mode: str) -> None:
    """A coordinator and a worker that has worked, and waits for more."""
    away.crew.coordinator(url=away.proxy.url("coordinator"))
    away.crew.worker("w1", mode, url=away.proxy.url("worker"))
    away.crew.submit(team({"a": {}}))
    assert away.crew.await_end() == "completed"


def test_c36_an_idle_worker_whose_cable_was_cut_finds_work_within_its_timeouts(away: Away) -> None:
    """No RST: nothing tells it, but its own timeouts. The next connection works."""
    begin(away, "inline")
    away.proxy.swallow("worker")
    away.crew.submit(team({"a": {}}), "r2")
    assert away.crew.await_end("r2", seconds=SOCKET_S + BLOCK_S + 10) == "completed"
    assert "redis_lost" in away.crew.log("w1")


def test_c36_idle_processes_outlive_a_killed_redis(away: Away) -> None:
    begin(away, "fork")
    away.store.restart(killed=True)
    until(away.crew.redis.ping, "Redis is there again", ignore=(Exception,))
    away.crew.submit(team({"a": {}, "b": {"requires": ["a"]}}), "r2")
    assert away.crew.await_end("r2") == "completed"
    assert [e.attempt_of for e in away.crew.executions("r2")] == [("r2", "a", 1), ("r2", "b", 1)]
