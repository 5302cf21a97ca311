"""`verify`: what was recorded leads to the same end, what was changed by hand does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.machine.machine import Machine
from coordinator.simulation.playground import Playground
from coordinator.simulation.simulate import simulate
from coordinator.simulation.verify import Verdict, first_difference, verify
from coordinator.wire.errors import InputFault
from tests.simulation.scenes import scene_of

RUN = "sim-0"
TASKS = {
    "a": {"outcome_plan": "duplicate_reordered"},
    "b": {"requires": ["a"], "max_attempts": 3, "outcome_plan": ["crash", {"outcome": "late"}, "conflict"]},
    "c": {"requires": ["a"], "for_each": {"from": "inputs.items"}},
    "d": {"external": True, "outcome_plan": "missing_input"},
    "e": {"outcome_plan": "missing_input"},
}
INPUTS = {"items": {"type": "array", "default": [1, {"x": "é"}]}}


@pytest.fixture
def machine(ground: Playground) -> Machine:
    """The machine of an installation in which one run has been played."""
    simulate(ground.redis, scene_of(TASKS, inputs=INPUTS, on_required_failure="drain"))
    return Machine(ground.redis)


def test_a_played_run_is_equal(ground: Playground, machine: Machine) -> None:
    result = verify(machine, RUN, ground.empty)
    assert (result.verdict, result.differs) == (Verdict.EQUAL, "")
    assert result.commands > 20


def test_the_installation_is_left_as_it_is(ground: Playground, machine: Machine) -> None:
    before = ground.redis.execute_command("DEBUG", "DIGEST")
    ground.empty.flushdb()
    verify(machine, RUN, ground.empty)
    ground.empty.flushdb()
    assert ground.redis.execute_command("DEBUG", "DIGEST") == before


@pytest.mark.parametrize(
    ("key", "field", "value", "said"),
    [
        (f"crewline:run:{RUN}", "used_step_budget", "77", "run: used_step_budget is '77'"),
        (f"crewline:task:{RUN}:a", "state", "failed", "task:a: state is 'failed'"),
        (f"crewline:payloads:{RUN}", "sha256:0", "{}", "payloads: sha256:0"),
    ],
)
def test_what_was_changed_by_hand_is_named(
    ground: Playground, machine: Machine, key: str, field: str, value: str, said: str
) -> None:
    ground.redis.hset(key, field, value)
    result = verify(machine, RUN, ground.empty)
    assert result.verdict is Verdict.DIFFERS
    assert result.differs.startswith(said)


def test_a_lost_key_and_a_lost_event_are_named(ground: Playground, machine: Machine) -> None:
    ground.redis.xdel(f"crewline:history:{RUN}", "3-0")
    assert verify(machine, RUN, ground.empty).differs.startswith("history: entry 2")
    ground.redis.delete(f"crewline:history:{RUN}")
    assert verify(machine, RUN, ground.empty).differs == "history is missing"


def test_a_library_that_is_gone_is_no_difference(ground: Playground, machine: Machine) -> None:
    ground.redis.hset(f"crewline:run:{RUN}", "library", "00000000")
    assert verify(machine, RUN, ground.empty).verdict is Verdict.NOT_VERIFIABLE


def test_another_version_verifies_by_the_library_on_the_server(ground: Playground, machine: Machine) -> None:
    older = machine.library
    newer = replace(older, hash="ffffffff", code=older.code.replace(older.hash, "ffffffff"))
    another = Machine(ground.redis, library=newer)
    another.load()
    try:
        assert verify(another, RUN, ground.empty).verdict is Verdict.EQUAL
    finally:
        ground.redis.function_delete("crewline_ffffffff")


def test_a_run_that_nobody_knows(ground: Playground, machine: Machine) -> None:
    with pytest.raises(InputFault, match="no such run"):
        verify(machine, "nobody", ground.empty)


def test_a_large_cascade_in_batches_is_equal(ground: Playground) -> None:
    tasks = {"root": {"outcome_plan": "permanent_error"}}
    tasks |= {f"t{number}": {"requires": ["root"]} for number in range(700)}
    tasks |= {f"u{number}": {"requires": [f"t{number}"]} for number in range(700)}
    simulate(ground.redis, scene_of(tasks, on_required_failure="drain"))
    assert verify(Machine(ground.redis), RUN, ground.empty).verdict is Verdict.EQUAL


def test_the_first_difference_says_where() -> None:
    assert first_difference({"a": {"x": "1"}}, {"a": {"x": "1"}}) == ""
    assert first_difference({"a": ["1"]}, {"a": ["1", "2"]}) == "a: 1 entries, the commands give 2"
    assert first_difference({"b": "1"}, {"a": "1", "b": "1"}) == "a is missing"
