"""Cases F: faults of Redis (C-35, C-37, C-39). Restarts and read-only servers: tests/runtime, tests/system."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from redis import Redis

from coordinator.machine import commands as c
from coordinator.machine.machine import Reply
from tests.support.builders import task
from tests.support.replay import Replay


class Resending(Replay):
    """Every command comes by an inbox entry, and is sent again because its answer was lost."""

    def __init__(self, redis: Redis, again: bool) -> None:
        self.again = again
        super().__init__(redis)

    def apply(self, command: c.Command) -> Reply:
        if isinstance(command, c.Dispatch | c.FireTimer):
            return super().apply(command)
        posted = self.post()
        addressed = replace(command, inbox=posted["inbox"], entry=posted["entry"])
        reply = super().apply(addressed)
        if self.again:
            repeated = super().apply(addressed)
            assert repeated.status == "repeated", (command, repeated)
        return reply


def play(redis: Redis, again: bool) -> dict[str, Any]:
    """A team of three tasks with a retry, a hand-back and a conflict; gives what stands afterwards."""
    redis.flushall()
    replay = Resending(redis, again)
    replay.submit(
        task("a", max_attempts=2, backoff_ms=0, tokens=10), task("b", requires=["a"], key="k"), task("c", external=1),
        limits={"tokens": 100, "max_steps": 50},
    )  # fmt: skip
    replay.hand_back(replay.claim("a"))
    replay.fail(replay.claim("a"), "transient", tokens=7)
    lease = replay.claim("a")
    replay.beat(lease)
    replay.result(lease, 1, tokens=9)
    replay.report("c", "working")
    replay.report("c", "completed")
    lease = replay.claim("b")
    replay.result(lease, 1)
    replay.result(lease, 2)
    replay.check()
    ignored = ("seq", "now")
    return {
        "run": {name: value for name, value in replay.run().items() if name not in ignored},
        "tasks": replay.tasks(),
        "events": replay.events(),
        "counters": replay.counters(),
        "conflicts": replay.ledger("conflicts"),
    }


def test_C_35_a_command_sent_again_after_its_answer_was_lost_does_nothing(redis: Redis) -> None:
    """Whatever call loses its answer: entry and effect go together, so the second one finds nothing to do."""
    once, twice = play(redis, again=False), play(redis, again=True)
    for name, value in once.items():
        assert twice[name] == value, name


def test_C_37_a_lost_lease_is_an_expired_one(replay: Replay) -> None:
    """The lease stands in the task's own hash; without it the old token is refused and the task can be claimed anew."""
    replay.submit(task("a", max_attempts=2, backoff_ms=0))
    lease = replay.claim("a")
    replay.redis.hdel("crewline:task:r1:a", "lease")
    assert replay.beat(lease).word == "stale_lease"
    assert replay.result(lease, 1).word == "late_ignored"
    replay.tick(31)
    replay.reap()
    assert replay.work("a").run_status == "completed"
    replay.verifies = False  # what was deleted by hand is in no command


def test_C_39_evidence_survives_a_trimmed_history(replay: Replay) -> None:
    replay.submit(task("a"), task("b", external=1), task("z", external=1))
    lease = replay.claim("a")
    replay.result(lease, 1)
    replay.result(lease, 2)
    replay.fail(lease)
    for _ in range(150):
        replay.report("b", "working")
    replay.redis.xtrim("crewline:history:r1", maxlen=100, approximate=False)
    assert len(replay.ledger("conflicts")) == 2
    assert len(replay.ledger("late")) == 1
    seqs = [int(event["seq"]) for event in replay.events()]
    assert seqs[0] > 1, "a reader that asks from 0 sees by the sequence number that something is missing"
    assert seqs == list(range(seqs[0], int(replay.run()["seq"]) + 1))
    replay.runs.clear()  # I7 is claimed for whole histories only
