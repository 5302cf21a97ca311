"""Owns the stepped coordinator of the runtime's tests."""

from __future__ import annotations

import pytest
from redis import Redis

from tests.runtime.harness import Stepped


@pytest.fixture
def stepped(redis: Redis) -> Stepped:
    """A leading coordinator on an empty Redis, stepped by hand."""
    return Stepped(redis)
