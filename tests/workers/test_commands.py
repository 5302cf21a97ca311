"""How many Redis commands a task costs its worker. Commands are counted, not seconds."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from tests.workers.conftest import Start
from tests.workers.peer import Peer

TASKS = 64
OF_THE_PEER = {
    "xread",
    "xdel",
    "multi",
    "exec",
    "rpush",
    "hset",
    "sadd",
    "info",
    "config|resetstat",
    "client|list",
}


def calls(redis: Redis) -> dict[str, int]:
    stats: dict[str, Any] = redis.info("commandstats")
    found = {name.removeprefix("cmdstat_"): int(entry["calls"]) for name, entry in stats.items()}
    return {name: count for name, count in found.items() if name not in OF_THE_PEER}


def cost(peer: Peer, redis: Redis, *, one_by_one: bool) -> float:
    """Commands of the worker per task, while it does TASKS of them."""
    names = [f"t{n}" for n in range(TASKS)]
    for name in names:
        peer.task(name, "echo")
    before = calls(redis)
    if one_by_one:
        for name in names:
            peer.launch(name)
            peer.wait("end", task=name)
    else:
        peer.launch(*names)
        peer.wait("end", count=TASKS)
    after = calls(redis)
    return sum(after[name] - before.get(name, 0) for name in after) / TASKS


@pytest.mark.parametrize(("options", "one_by_one", "most"), [
    (("--mode", "fork"), True, 8.5),
    (("--mode", "fork"), False, 6.5),
    (("--mode", "inline", "--prefetch", "1"), True, 8.5),
    (("--mode", "inline", "--prefetch", "1"), False, 6.5),
    (("--mode", "inline", "--prefetch", "16"), False, 4.5),
])  # fmt: skip
def test_a_task_costs_its_worker_few_commands(
    peer: Peer, start_worker: Start, redis: Redis, options: tuple[str, ...], one_by_one: bool, most: float
) -> None:
    """One at a time at most 8 a task (the rest is what an idle worker sends by the clock), in batches about 3."""
    peer.task("first", "echo")
    start_worker(*options)
    peer.launch("first")
    peer.wait("end", task="first")
    assert cost(peer, redis, one_by_one=one_by_one) <= most


def test_a_short_handler_causes_no_renewal_and_no_listening(
    peer: Peer, start_worker: Start, redis: Redis
) -> None:
    peer.task("first", "echo")
    start_worker("--mode", "inline")
    peer.launch("first")
    peer.wait("end", task="first")
    cost(peer, redis, one_by_one=False)
    assert peer.count("renew") == 0
