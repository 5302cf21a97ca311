"""Owns a small true story for the checker's tests: a real machine and loop on a Redis with an append-only file, and its
evidence as a chaos run gathers it.

Must not be made up: a plant is one change of something true.
"""

from __future__ import annotations

from pathlib import Path

from coordinator.simulation.playground import playground
from coordinator.wire import channels
from coordinator.wire.connection import connect
from coordinator.wire.reports import Cancel, End
from ops.chaos.checker import Evidence, Execution
from ops.chaos.gather import gather
from tests.runtime.harness import NAMESPACE, ROLE, Stepped, team
from tests.support.server import start_server

PID = 4711
HOLDER = f"host.{PID}.aa"
GRACE_MS = 30_000
RESERVED = {"reserve": {"tokens": 10}}

DOCUMENT = team(
    {
        "lost": {**RESERVED, "max_attempts": 2, "backoff": 0, "heartbeat": "30s"},
        "keyed": {**RESERVED, "idempotency_key": "k"},
        "stopped": {**RESERVED, "required": False},
        "outside": {"external": True, **RESERVED},
        "last": {**RESERVED, "requires": ["lost", "keyed", "outside"]},
    },
    limits={"tokens": 60},
)


def true_story(folder: Path) -> Evidence:
    """One run with a lost attempt and its late report, a duplicate, a task canceled while it ran, an external task and
    an entry that nobody could read."""
    with start_server(folder / "redis") as server, playground() as ground, connect(server.url) as redis:
        stepped = Stepped(redis)
        stepped.submit(DOCUMENT)
        for task in ("lost", "keyed", "stopped"):
            stepped.start(task, worker=HOLDER)
        first = stepped.leases["r1", "lost"]
        stepped.end("keyed", {"n": 1}, tokens=4)
        stepped.end("keyed", {"n": 1})
        stepped.ask("operate", Cancel(run="r1", task="stopped", ask="q", reason="no", source="op"))
        stepped.end("stopped", outcome="canceled")
        stepped.report("outside", "completed", payload="1")
        stepped.put(channels.inbox(NAMESPACE, ROLE), {"kind": "end"})
        stepped.settle(later_ms=30_000)
        stepped.start("lost", attempt=2, worker=HOLDER)
        stepped.say(
            End(
                run="r1", task="lost", attempt=1, worker=HOLDER, lease=first, outcome="succeeded", payload="1"
            )
        )
        stepped.end("lost", {"n": 2}, attempt=2, tokens=6)
        stepped.settle(later_ms=GRACE_MS)
        stepped.work("last", {"n": 3})
        evidence = gather(stepped.machine, ground.empty, folder / "redis")
    evidence.executions = _executions(evidence)
    return evidence


def _executions(evidence: Evidence) -> list[Execution]:
    """What the handlers would have written down."""
    hows = {("stopped", 1): "cancelled"}
    found = []
    for event in evidence.runs["r1"].events:
        if event["kind"] == "attempt_started" and event["task_id"] != "outside":
            event["worker"] = HOLDER
            at, attempt = int(event["at"]), int(event["attempt"])
            how = hows.get((event["task_id"], attempt), "returned")
            found.append(Execution("r1", event["task_id"], attempt, PID, 1, at + 5, at + 10, how))
    return found
