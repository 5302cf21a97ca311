"""Owns the fixtures that every test may use: a real private Redis and a check for keys left behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog
from redis import Redis

from coordinator.embedded import EmbeddedRedis
from coordinator.wire.channels import DEFAULT_NAMESPACE
from coordinator.wire.connection import connect
from tests.support.key_leaks import foreign_keys
from tests.support.server import start_server


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    """A command that ran in this process set the logs to its own standard error, which is closed by now."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[EmbeddedRedis]:
    """The server of this pytest process. Tests take `redis` or `redis_url`, which empty it first."""
    with start_server() as server:
        yield server


@pytest.fixture(scope="session")
def _client(redis_server: EmbeddedRedis) -> Iterator[Redis]:
    client = connect(redis_server.url)
    yield client
    client.close()


@pytest.fixture
def namespace() -> str:
    """The namespace of the test's keys; a module that uses another one overrides this fixture."""
    return DEFAULT_NAMESPACE


@pytest.fixture
def redis(_client: Redis, namespace: str) -> Iterator[Redis]:
    """A client of an empty database (loaded functions stay). Fails the test that leaves foreign keys behind."""
    _client.flushall()
    _client.config_resetstat()
    yield _client
    foreign = foreign_keys(_client, namespace)
    assert not foreign, f"keys outside {namespace}: and rq: were left behind: {foreign[:20]}"


@pytest.fixture
def redis_url(redis: Redis, redis_server: EmbeddedRedis) -> str:
    """Address of the same database as `redis`, for a process or a client of its own."""
    return redis_server.url
