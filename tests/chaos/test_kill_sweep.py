"""A small run is played once for each Redis command that its coordinator sends, cut there: the same end each time."""

from __future__ import annotations

import pytest
from redis import Redis

from coordinator.machine.machine import Machine
from coordinator.simulation.playground import playground
from coordinator.simulation.verify import Verdict, verify
from tests.chaos.scalpel import Scalpel
from tests.chaos.sweep import RUN, Ended, World
from tests.runtime.harness import NAMESPACE

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180)]


def undisturbed(redis: Redis, url: str) -> tuple[Ended, Scalpel]:
    """How the run ends when nobody is cut, and what its coordinator sends meanwhile."""
    scalpel = Scalpel()
    ended = World(redis, url, scalpel).play()
    assert ended.run["status"] == "completed"
    assert set(ended.started) == {("a", 1), ("b", 1), ("c", 1), ("c", 2)}
    assert set(ended.started.values()) == {1}
    return ended, scalpel


def test_c60_the_coordinator_may_die_before_and_after_every_single_command(
    redis: Redis, redis_url: str
) -> None:
    """Dying after n commands, for every n, is dying right before and right after each of them."""
    expected, whole = undisturbed(redis, redis_url)
    assert {"XRANGE", "EXEC", "WATCH"} <= set(whole.sent)
    assert sum(name.startswith("FCALL crewline_") for name in whole.sent) >= 10
    for done in range(len(whole.sent)):
        scalpel = Scalpel(dies_after=done)
        assert World(redis, redis_url, scalpel).play() == expected, f"died after {scalpel.sent[:done][-3:]}"
        assert scalpel.cut


def test_c35_every_single_answer_may_be_lost(redis: Redis, redis_url: str) -> None:
    """The whole pipeline was done, and nobody knows: everything is asked again, and done once."""
    expected, whole = undisturbed(redis, redis_url)
    for first in whole.batches:
        scalpel = Scalpel(loses=first)
        assert World(redis, redis_url, scalpel).play() == expected, f"lost the answer to {whole.sent[first]}"
        assert scalpel.cut


def test_what_was_cut_in_the_middle_is_verified_too(redis: Redis, redis_url: str) -> None:
    _, whole = undisturbed(redis, redis_url)
    middle = [n for n, name in enumerate(whole.sent) if name.startswith("FCALL crewline_")]
    with playground() as ground:
        for done in middle[1::3]:
            World(redis, redis_url, Scalpel(dies_after=done)).play()
            assert verify(Machine(redis, NAMESPACE), RUN, ground.empty).verdict == Verdict.EQUAL
