"""Owns the private Redis of simulations: one server, with an empty database beside the one that is played on.

Must not be used for anything that is to be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redis import Redis

from coordinator.embedded import EmbeddedRedis
from coordinator.wire.connection import connect


@dataclass(frozen=True, slots=True)
class Playground:
    """redis: what is played on. empty: another database of the same server, for `verify`."""

    redis: Redis
    empty: Redis


@contextmanager
def playground() -> Iterator[Playground]:
    """A private server that lives as long as the block. Raises Unreachable when there is none to be had."""
    with EmbeddedRedis() as server:
        ground = playground_on(server.url)
        try:
            yield ground
        finally:
            ground.redis.close()
            ground.empty.close()


def playground_on(url: str) -> Playground:
    """The two databases on a server that somebody else started, and that nobody else uses."""
    return Playground(connect(url), connect(f"{url}?db=1"))
