"""Cycles: named exactly, told from what waits for them, at any size."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.team.graph import cycle_text, edges_of, find_cycle, stuck
from coordinator.team.loader import make_team, parse_team
from coordinator.team.models import Team
from coordinator.wire.errors import InputFault


def team(tasks: dict[str, dict[str, Any]], *, allow_cycle: bool = False) -> Team:
    given_tasks = {name: {"capability": "go", **task} for name, task in tasks.items()}
    return make_team(
        {"team": "t", "roles": {"w": {"capabilities": ["go"]}}, "tasks": given_tasks}, allow_cycle=allow_cycle
    )


def requires(**edges: str) -> dict[str, dict[str, Any]]:
    return {name: {"requires": others.split()} for name, others in edges.items()}


def test_C_12_a_diamond_is_no_cycle() -> None:
    assert team(requires(a="", b="a", c="a", d="b c")).cycle is None


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        (requires(a="a"), "a itself"),
        (requires(a="b", b="a"), "a -> b -> a"),
        (requires(a="c", b="a", c="b", free=""), "a -> c -> b -> a"),
        (requires(free="", z="y", y="x", x="y w", w=""), "y -> x -> y"),
        ({"a": {"after": ["b"]}, "b": {"requires": ["a"]}}, "a -> b -> a"),
        (
            {"a": {"any_of": {"count": 1, "tasks": ["b", "c"]}}, "b": {"requires": ["a"]}, "c": {}},
            "a -> b -> a",
        ),
    ],
)
def test_C_12_a_cycle_is_refused_and_named(tasks: dict[str, dict[str, Any]], said: str) -> None:
    with pytest.raises(InputFault) as caught:
        team(tasks)
    assert len(caught.value.faults) == 1
    assert said in str(caught.value)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    size = draw(st.integers(1, 12))
    names = draw(st.permutations([f"t{at}" for at in range(size)]))
    return {
        name: draw(st.lists(st.sampled_from(names[:at]), unique=True, max_size=4)) if at else []
        for at, name in enumerate(names)
    }


@given(graphs(), st.randoms(use_true_random=False))
def test_C_12_any_dag_is_accepted_and_with_a_back_edge_refused(
    edges: dict[str, list[str]], random: Any
) -> None:
    order = sorted(edges)
    shuffled = {name: edges[name] for name in random.sample(order, len(order))}
    assert find_cycle(shuffled) is None
    assert team({name: {"requires": others} for name, others in shuffled.items()}).cycle is None
    reachable = {name: {name} for name in edges}
    for name, others in edges.items():
        for other in others:
            reachable[name] |= reachable[other]
    pairs = [(low, high) for high, below in reachable.items() for low in below if low != high]
    if not pairs:
        return
    low, high = random.choice(sorted(pairs))
    looped = {
        name: [*others, high] if name == low and high not in others else others
        for name, others in shuffled.items()
    }
    cycle = find_cycle(looped)
    assert cycle is not None
    assert len(set(cycle)) == len(cycle)
    assert all(after in looped[name] for name, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    with pytest.raises(InputFault, match="without a cycle"):
        team({name: {"requires": others} for name, others in looped.items()})


def test_a_simulated_team_may_have_a_cycle_and_tells_it_from_what_waits() -> None:
    tasks = requires(free="", a="b", b="a", c="b", d="c free", x="y", y="z", z="x", e="free")
    tasks["any"] = {"any_of": {"count": 1, "tasks": ["a", "free"]}}
    tasks["all"] = {"any_of": {"count": 2, "tasks": ["a", "free"]}}
    loaded = team(tasks, allow_cycle=True)
    assert loaded.cycle == ["a", "b"]
    found = stuck(loaded)
    assert found.cycles == (("a", "b"), ("x", "y", "z"))
    assert found.waiting == ("c", "d", "all")


def test_a_team_without_a_cycle_has_nothing_stuck() -> None:
    found = stuck(team(requires(a="", b="a")))
    assert (found.cycles, found.waiting) == ((), ())


def test_long_cycles_are_shortened_for_people() -> None:
    names = [f"t{at}" for at in range(100)]
    assert cycle_text(names).startswith("t0 -> t1 -> ")
    assert "89 more" in cycle_text(names)
    assert cycle_text(names).endswith("t99 -> t0")


def chain(size: int, **more: Any) -> dict[str, Any]:
    tasks: dict[str, Any] = {f"t{at:05}": {"capability": "go"} for at in range(size)}
    for at in range(1, size):
        tasks[f"t{at:05}"]["requires"] = [f"t{at - 1:05}"]
    return {"team": "chain", "roles": {"w": {"capabilities": ["go"]}}, "tasks": tasks, **more}


def test_C_54_a_chain_of_5000_is_validated_iteratively_and_fast() -> None:
    document = chain(5000)
    began = time.process_time()
    loaded = make_team(document)
    assert time.process_time() - began < 2
    assert len(edges_of(loaded)) == 5000
    document["tasks"]["t00000"]["requires"] = ["t04999"]
    looped = make_team(document, allow_cycle=True)
    assert looped.cycle is not None
    assert len(looped.cycle) == 5000
    assert len(stuck(looped).cycles[0]) == 5000


def test_C_54_an_input_nested_1000_deep_is_refused_cleanly() -> None:
    deep = '{"a":' * 1000 + "1" + "}" * 1000
    text = (
        f'{{"team": "x", "roles": {{"w": {{"capabilities": ["a"]}}}}, "tasks": {{"a": {{"input": {deep}}}}}}}'
    )
    with pytest.raises(InputFault, match="nesting of at most 64"):
        parse_team(text)
    nested: Any = 1
    for _ in range(1000):
        nested = {"a": nested}
    with pytest.raises(InputFault, match="deeper than 64"):
        team({"a": {"input": nested}})
