"""Owns the processes of the chaos tests: all of them are gone after each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from tests.chaos.processes import Crew


@pytest.fixture
def crew(redis: Redis, redis_url: str, tmp_path: Path) -> Iterator[Crew]:
    """Real processes on an empty Redis."""
    one = Crew(redis, redis_url, tmp_path)
    yield one
    one.close()
