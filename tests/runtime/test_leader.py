"""The lead: one coordinator acts, another stands by and takes over when the lease has ended (SPEC 7)."""

from __future__ import annotations

import pytest
from redis import Redis

from coordinator.machine.commands import Dispatch
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadLeader
from coordinator.runtime.leader import Deposed, Fenced, Leader
from coordinator.runtime.renewal import Renewal
from tests.runtime.harness import NAMESPACE


class Hand:
    """A clock that is turned by hand (the lead itself is judged by Redis' own)."""

    now = 1_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


def candidate(redis: Redis, name: str, clock: Hand, ttl_ms: int = 60_000) -> tuple[Leader, Machine]:
    """A process that would lead."""
    machine = Machine(redis, NAMESPACE)
    machine.load()
    return Leader(machine, name, clock, ttl_ms), machine


def test_the_first_leads_and_the_second_stands_by(redis: Redis, clock: Hand) -> None:
    first, machine = candidate(redis, "one", clock)
    second, _ = candidate(redis, "two", clock)
    assert (first.hold(), second.hold()) == (True, False)
    assert machine.epoch == first.epoch == 1
    assert machine.read(ReadLeader())["holder"] == "one"


def test_the_lead_is_renewed_after_a_third_of_it(redis: Redis, clock: Hand) -> None:
    leader, machine = candidate(redis, "one", clock)
    leader.hold()
    until = machine.read(ReadLeader())["until"]
    redis.hset(f"{NAMESPACE}:leader", "until", "1")
    clock.now += 19_999
    assert leader.hold()
    assert machine.read(ReadLeader())["until"] == "1"
    clock.now += 1
    assert leader.hold()
    assert machine.read(ReadLeader())["until"] >= until


def test_a_lead_that_expired_is_taken_under_a_new_epoch(redis: Redis, clock: Hand) -> None:
    first, old = candidate(redis, "one", clock, ttl_ms=1)
    second, new = candidate(redis, "two", clock, ttl_ms=60_000)
    assert first.hold()
    while not second.hold():
        clock.now += 60_000
    assert new.epoch == old.epoch + 1
    with pytest.raises(Deposed):
        Fenced(old).apply_many([Dispatch(now=clock.now, limit=1)])
    clock.now += 60_000
    assert not first.hold()


def test_who_stepped_down_asks_again_later(redis: Redis, clock: Hand) -> None:
    first, _ = candidate(redis, "one", clock)
    first.hold()
    first.step_down()
    assert not first.leads
    assert first.ask_at == clock.now + 250
    assert not first.hold()


def test_resigning_lets_the_next_one_in_at_once(redis: Redis, clock: Hand) -> None:
    first, _ = candidate(redis, "one", clock)
    second, _ = candidate(redis, "two", clock)
    first.hold()
    first.resign()
    assert not first.leads
    assert second.hold()
    assert second.epoch > first.epoch


def test_who_does_not_lead_takes_nothing_away_by_resigning(redis: Redis, clock: Hand) -> None:
    first, machine = candidate(redis, "one", clock)
    second, _ = candidate(redis, "two", clock)
    first.hold()
    second.hold()
    second.resign()
    assert machine.read(ReadLeader())["holder"] == "one"
    clock.now += 60_000
    assert not second.hold()


def test_a_standby_looks_often_but_not_all_the_time(redis: Redis, clock: Hand) -> None:
    first, _ = candidate(redis, "one", clock)
    second, _ = candidate(redis, "two", clock, ttl_ms=2_000)
    first.hold()
    second.hold()
    assert second.ask_at == clock.now + 100


def test_a_long_step_is_no_reason_to_lose_the_lead(redis: Redis, clock: Hand) -> None:
    """Another thread renews when half of the lead has passed, but not for a process that seems to hang."""
    leader, machine = candidate(redis, "one", clock, ttl_ms=60_000)
    leader.hold()
    renewal = Renewal(redis, NAMESPACE, leader, clock)
    assert not renewal.look()
    redis.hset(f"{NAMESPACE}:leader", "until", "99999999999999")
    for _ in range(3):
        clock.now += 30_000
        assert renewal.look()
        assert not renewal.look()
        assert int(machine.read(ReadLeader())["until"]) < 99999999999999
    assert leader.epoch == machine.epoch
    clock.now += 30_000
    assert not renewal.look(), "the step takes longer than any that makes sense"


def test_a_lead_that_has_ended_is_not_renewed_by_the_way(redis: Redis, clock: Hand) -> None:
    """A process that was paused hears of its successor by its own first write."""
    leader, _ = candidate(redis, "one", clock, ttl_ms=60_000)
    leader.hold()
    clock.now += 60_000
    assert not Renewal(redis, NAMESPACE, leader, clock).look()
