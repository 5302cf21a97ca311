"""Owns the fixture on which the cases are replayed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from coordinator.embedded import EmbeddedRedis
from coordinator.simulation.playground import playground_on
from tests.support.replay import Replay


@pytest.fixture
def replay(redis: Redis, redis_server: EmbeddedRedis) -> Iterator[Replay]:
    """A machine on an empty Redis; what holds in every case is checked at the end of each, and that the recorded
    commands alone lead to the same end (I7)."""
    made = Replay(redis)
    yield made
    ground = playground_on(redis_server.url)
    made.check(ground.empty)
    ground.redis.close()
    ground.empty.close()
