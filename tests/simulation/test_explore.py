"""The exploration: sound machines pass it, broken ones do not, and a seed can be played again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coordinator.machine.library import Library
from coordinator.simulation.exploration.driver import Driver
from coordinator.simulation.explore import explore
from coordinator.simulation.faults import Fault, FaultyMachine
from coordinator.simulation.playground import Playground
from coordinator.simulation.scene import Scene, read_scene
from tests.simulation.random_scenes import random_scene
from tests.simulation.scenes import scene_of

EXAMPLES = Path(__file__).parents[2] / "examples"

RANDOM_SCENES = int(os.environ.get("CREWLINE_RANDOM_SCENES", "40"))
"""How many random teams are explored; more of them find more."""

CHAIN = {
    "a": {
        "max_attempts": 2,
        "backoff": "1s",
        "reserve": {"tokens": 10},
        "outcome_plan": ["transient_error", "success"],
    },
    "b": {"requires": ["a"], "max_attempts": 2, "reserve": {"tokens": 10}, "outcome_plan": {"tokens": 5}},
    "c": {"requires": ["a"], "required": False, "outcome_plan": "conflict", "reserve": {"tokens": 0}},
    "d": {"requires": ["b", "c"], "required": False, "reserve": {"tokens": 0}},
    "e": {"external": True, "reserve": {"tokens": 0}},
}


def chain() -> Scene:
    return scene_of(CHAIN, limits={"tokens": 60, "step_budget": 12}, on_completion="drain")


def test_a_sound_machine_passes(ground: Playground) -> None:
    outcome = explore(ground, chain(), range(25))
    assert outcome.finding is None
    assert outcome.seeds == 25
    assert sum(outcome.faults.values()) > 25


@pytest.mark.parametrize("team", ["refund/team.yaml", "refund/team-external.yaml"])
def test_the_examples_pass(ground: Playground, team: str) -> None:
    assert explore(ground, read_scene(EXAMPLES / team, {}), range(8)).finding is None


def test_a_fan_out_with_children_passes(ground: Playground) -> None:
    tasks = {
        "each": {"for_each": {"from": "inputs.items", "max_parallel": 2, "min_success": 2}},
        "sum": {"requires": ["each"]},
    }
    inputs = {"items": {"type": "array", "default": [1, 2, 3]}}
    assert explore(ground, scene_of(tasks, inputs=inputs), range(12)).finding is None


@pytest.mark.parametrize("block", range(max(1, RANDOM_SCENES // 10)))
def test_random_teams_pass(ground: Playground, block: int) -> None:
    for seed in range(block * 10, block * 10 + 10):
        outcome = explore(ground, random_scene(seed), range(seed, seed + 1))
        assert outcome.finding is None, f"random_scene({seed}): {outcome.finding}"


def test_the_same_seed_is_played_the_same_way(ground: Playground) -> None:
    traces = []
    for _ in range(2):
        ground.redis.flushall()
        driver = Driver(ground, chain(), 11)
        assert driver.play() == []
        traces.append((driver.trace, driver.status, driver.faults))
    assert traces[0] == traces[1]


def test_every_fault_comes_up(ground: Playground) -> None:
    outcome = explore(ground, chain(), range(60))
    assert outcome.finding is None
    assert set(outcome.faults) == set(Fault)


BROKEN = {
    "a reservation that is never given back": (
        "Record.add(run, kind.reserved, -reserve)",
        "Record.add(run, kind.reserved, 0)",
        "I3",
    ),
    "a counter that is not raised": (
        '(state == "queued" or state == "running"',
        '(state == "running"',
        "counters",
    ),
    "a lease that is not looked at": (
        'if Record.get(task, "state") ~= "running" or Record.get(task, "lease") ~= lease or lease == "" then',
        "if false then",
        None,
    ),
    "a failure that blocks nobody": (
        "function Blocking.block(run, dependant, root, root_state, via)\n",
        "function Blocking.block(run, dependant, root, root_state, via)\n  do return end\n",
        "blocking",
    ),
    "an entry that stays": (
        'redis.call("XDEL", c.inbox, c.entry)',
        'redis.call("XLEN", c.inbox)',
        "once",
    ),
    "an old leader that is obeyed": ('(redis.call("GET", Key.of("epoch")) or "0")', "args[1]", "fencing"),
    "a timer that is not set": ("Timer.task(run, task, run.now + delay)", "local _ = delay", "timers"),
    "a refusal without a record": (
        'History.note(run, "refused", task or Gate.call.task or "", word)',
        "local _ = word",
        "I5",
    ),
    "a function that fails": ("function Blocking.doubt(", "function Blocking.forgotten(", "fault"),
    "commands that are not recorded": (
        'redis.call("RPUSH", Key.of("commands", run.id), cjson.encode(entry))',
        "local _ = entry",
        "verify",
    ),
}
"""What is broken: the Lua that stands there, what is put in its place, the invariant that sees it (None: any)."""


def broken_machine(old: str, new: str) -> type[FaultyMachine]:
    sound = Library.build()
    assert old in sound.code, "the machine was changed: break it in another place"
    code = sound.code.replace(old, new).replace(sound.hash, "0badc0de")
    library = Library("0badc0de", code, sound.starts)

    class Broken(FaultyMachine):
        def __init__(self, redis, namespace):  # type: ignore[no-untyped-def] # the base class' own signature
            super().__init__(redis, namespace, library)

    return Broken


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_machine_is_found_out(ground: Playground, name: str) -> None:
    old, new, invariant = BROKEN[name]
    outcome = explore(ground, chain(), range(150), machine_type=broken_machine(old, new))
    ground.redis.function_flush()
    assert outcome.finding, f"{name}: nobody noticed in {outcome.seeds} seeds"
    if invariant:
        assert invariant in {violation.invariant for violation in outcome.finding.violations}
