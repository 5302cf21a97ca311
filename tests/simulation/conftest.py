"""Owns the fixtures of the simulation's tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from redis import Redis

from coordinator.embedded import EmbeddedRedis
from coordinator.run_report.build import build_report
from coordinator.simulation.playground import Playground, playground_on
from coordinator.simulation.simulate import simulate
from tests.simulation.scenes import Play, Report, scene_of


@pytest.fixture
def ground(redis: Redis, redis_server: EmbeddedRedis) -> Iterator[Playground]:
    """Both databases of the test server, empty."""
    both = playground_on(redis_server.url)
    yield both
    both.redis.close()
    both.empty.close()


@pytest.fixture
def play(redis: Redis) -> Play:
    """Plays a team and gives the report."""

    def run(tasks: Mapping[str, Mapping[str, Any]], **team: Any) -> Report:
        redis.flushdb()
        return build_report(simulate(redis, scene_of(tasks, **team)))

    return run
