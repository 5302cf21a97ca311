"""Somebody deleted keys of one run: the coordinator goes on with all others, and says what it failed on."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from coordinator.runtime.loop import Bounds
from coordinator.wire.reports import Cancel
from tests.runtime.harness import NAMESPACE, Stepped, team

KINDS = (
    *("run", "running", "task", "tasks", "children", "edges", "requires", "unmet", "capabilities"),
    *("documents", "templates", "payloads", "keys", "commands", "history"),
)
"""Kinds of keys (machine/keys.py) that the run has when they are deleted."""
DOCUMENT = team(
    {
        "a": {},
        "b": {"requires": ["a"], "heartbeat": "20s", "max_attempts": 2, "backoff": "5s"},
        "c": {"requires": ["b"]},
        "each": {"requires": ["a"], "for_each": {"from": "inputs.list"}, "required": False},
        "last": {"after": ["c", "each"], "required": False},
    },
    inputs={"list": {"type": "array"}},
    on_completion="drain",
)


def begin(stepped: Stepped, run: str) -> None:
    """a has succeeded, b and the first child run, the rest waits."""
    stepped.submit(DOCUMENT, run, inputs={"list": [1, 2, 3]})
    stepped.work("a", 1, run=run)
    stepped.start("b", run=run)
    stepped.start("each[0]", run=run)


def finish(stepped: Stepped, run: str) -> None:
    """What is left of the run, without looking whether it is believed."""
    stepped.end("b", 1, run=run)
    stepped.end("each[0]", 1, run=run)
    for task in ("c", "each[1]", "each[2]", "last"):
        if stepped.start(task, run=run)["kind"] == "grant":
            stepped.end(task, 1, run=run)


def delete(redis: Redis, kind: str, run: str) -> int:
    """Deletes all keys of a kind of a run; gives how many."""
    found: Any = [
        key
        for pattern in (f"{kind}:{run}", f"{kind}:{run}:*")
        for key in redis.scan_iter(f"{NAMESPACE}:{pattern}")
    ]
    return redis.delete(*found) if found else 0  # type: ignore[return-value] # redis-py types both of its clients


@pytest.mark.parametrize("later", ["reports", "time", "cancel"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_deleted_of_one_run_stops_no_other(redis: Redis, kind: str, later: str) -> None:
    stepped = Stepped(redis, Bounds())
    begin(stepped, "broken")
    begin(stepped, "sound")
    assert delete(redis, kind, "broken") > 0
    if later == "reports":
        finish(stepped, "broken")
    elif later == "time":
        stepped.settle(19_000)
        stepped.renew("b", "sound")
        stepped.renew("each[0]", "sound")
        stepped.settle(6_000)
    else:
        stepped.ask("operate", Cancel(run="broken", reason="x"))
    finish(stepped, "sound")
    assert stepped.run("sound")["status"] == "completed"
    assert stepped.inbox_lengths() == {}
    assert not stepped.step(1_000).more, "nothing is tried again all the time"


def test_what_breaks_dispatching_stops_no_report(redis: Redis) -> None:
    """A record of the wrong type makes the whole call fail: nothing new is dispatched, but what runs may end."""
    stepped = Stepped(redis)
    begin(stepped, "broken")
    begin(stepped, "sound")
    redis.delete(f"{NAMESPACE}:task:broken:c")
    redis.set(f"{NAMESPACE}:task:broken:c", "no hash")
    stepped.submit(team({"a": {}}), "later")
    stepped.end("b", 1, run="sound")
    assert stepped.state("b", "sound") == "succeeded"
    stepped.end("b", 1, run="broken")
    stepped.settle(1_000)
    stepped.end("each[0]", 1, run="sound")
    assert stepped.state("each[0]", "sound") == "succeeded"
    assert stepped.inbox_lengths() == {}
