"""Where background work belongs: three rules in their order, their boundary, their ties, and any thread."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.agent_threads.attribution import (
    Notice,
    Parent,
    Place,
    Placement,
    Work,
    attribute,
    attribute_thread,
)
from coordinator.agent_threads.outline import Outline, Section, outline, thread_document
from coordinator.agent_threads.reading import read_thread
from coordinator.agent_threads.render import render_thread
from tests.support.threads import background, notification, payload, step, thread, turn

Json = dict[str, Any]


def places(document: Json) -> dict[str, tuple[str, str]]:
    """Placement and parent by the id of the child."""
    found = attribute_thread(read_thread(document))
    return {
        key.removeprefix("child:"): (str(place.placement), place.parent.removeprefix("child:"))
        for key, place in found.items()
    }


def test_a_payload_in_the_parents_steps_anchors_its_child() -> None:
    document = thread([turn("e1", 0, step(payload("a")))], [background(payload("a", done=500))])
    assert places(document) == {"a": ("anchored", "turn_0001")}


def test_an_anchor_may_be_nested_and_stand_anywhere_below_the_steps() -> None:
    inner = payload("wf", steps=[step(payload("wf2", steps=[step(payload("a"))]))])
    strange: Json = {"items": [{"extra": [{"deep": {"workflow_payload": payload("b")}}]}]}
    document = thread([turn("e1", 0, step(inner), strange)], [background(payload("a"), payload("b"))])
    assert places(document) == {"a": ("anchored", "turn_0001"), "b": ("anchored", "turn_0001")}


def test_anchoring_comes_before_matching() -> None:
    document = thread(
        [turn("e1", 0, step(payload("a"))), notification("e2", 100)], [background(payload("a", done=100))]
    )
    assert places(document)["a"] == ("anchored", "turn_0001")


def test_only_top_level_payloads_are_attributed() -> None:
    inner = payload("inner", done=100)
    document = thread([notification("e1", 100)], [background(payload("a", done=300, steps=[step(inner)]))])
    assert places(document) == {"a": ("unassigned", "")}


def test_a_child_of_a_child_is_anchored_in_it() -> None:
    document = thread(
        [turn("e1", 0, step(payload("a")))],
        [background(payload("a", steps=[step(payload("b"))])), background(payload("b", done=3))],
    )
    assert places(document) == {"a": ("anchored", "turn_0001"), "b": ("anchored", "a")}
    found = outline(read_thread(document))
    assert [s.location for s in found.sections()] == [
        "turn_0001",
        "turn_0001/subagent",
        "turn_0001/subagent/subagent",
    ]


def test_children_that_hold_each_other_hang_on_something_all_the_same() -> None:
    document = thread(
        [],
        [
            background(payload("a", steps=[step(payload("b"))])),
            background(payload("b", steps=[step(payload("c"))])),
            background(payload("c", steps=[step(payload("a"))])),
        ],
    )
    assert places(document) == {"a": ("unassigned", ""), "b": ("anchored", "a"), "c": ("anchored", "b")}


def test_a_child_that_stands_in_its_own_steps_is_not_its_own_parent() -> None:
    assert places(thread([], [background(payload("a", steps=[step(payload("a"))]))])) == {
        "a": ("unassigned", "")
    }


def test_the_first_turn_that_holds_a_child_is_its_parent() -> None:
    document = thread(
        [turn("e2", 50, step(payload("a"))), turn("e1", 40, step(payload("a")))], [background(payload("a"))]
    )
    assert places(document)["a"] == ("anchored", "turn_0001")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("beyond_us", "placement"), [(-1, "matched"), (0, "matched"), (1, "unassigned")])
def test_the_window_is_ten_seconds_inclusive(sign: int, beyond_us: int, placement: str) -> None:
    document = thread(
        [notification("e1", 100)], [background(payload("a", done=100 + sign * (10 + beyond_us / 1e6)))]
    )
    assert places(document)["a"][0] == placement


def test_the_entrys_update_time_stands_in_for_a_missing_completion() -> None:
    document = thread(
        [notification("e1", 100)],
        [
            background(payload("a"), updated=95),
            background(payload("b", done=200), updated=100),
            background(payload("c")),
        ],
    )
    assert places(document) == {
        "a": ("matched", "turn_0001"),
        "b": ("unassigned", ""),
        "c": ("unassigned", ""),
    }


@pytest.mark.parametrize(
    "entry",
    [
        turn("e1", 100, step(text="It worked itself."), trigger="subagent_result"),
        turn("e1", 100, trigger="something_else"),
        turn("e1", 100),
        notification("e1", None),
    ],
)
def test_what_is_no_notification_matches_nothing(entry: Json) -> None:
    assert places(thread([entry], [background(payload("a", done=100))]))["a"] == ("unassigned", "")


def test_a_notification_may_hold_several_and_a_child_is_used_once() -> None:
    document = thread(
        [notification("e1", 100), notification("e2", 108)],
        [background(payload("a", done=99), payload("b", done=101)), background(payload("c", done=107))],
    )
    assert places(document) == {
        "a": ("matched", "turn_0001"),
        "b": ("matched", "turn_0001"),
        "c": ("matched", "turn_0002"),
    }


def test_of_two_notifications_equally_near_the_earlier_one_is_taken() -> None:
    document = thread([notification("z", 95), notification("a", 105)], [background(payload("x", done=100))])
    assert places(document)["x"] == ("matched", "turn_0001")
    document = thread([notification("z", 100), notification("a", 100)], [background(payload("x", done=100))])
    found = read_thread(document)
    assert [t.id for t in found.turns] == ["a", "z"]
    assert places(document)["x"] == ("matched", "turn_0001")


def test_several_copies_of_a_child_are_one_child_as_last_updated() -> None:
    document = thread(
        [notification("e1", 10), notification("e2", 90)],
        [
            background(payload("a", done=90, status="WORKFLOW_CANCELED"), updated=91),
            background(payload("a", done=10, status="WORKFLOW_COMPLETED"), updated=11),
        ],
    )
    found = read_thread(document)
    assert [child.payload.status for child in found.children] == ["WORKFLOW_CANCELED"]
    assert places(document) == {"a": ("matched", "turn_0002")}


def test_a_background_entry_without_payloads_is_itself_the_work() -> None:
    entry = turn("bg", 0, step(text="Work."), status="WORKFLOW_CANCELED", completed_at="2026-02-23T10:01:40Z")
    assert places(thread([notification("e1", 100)], [entry])) == {"bg": ("matched", "turn_0001")}


def test_the_core_gives_the_same_words_for_anything() -> None:
    works = [Work("w1", "a", 5), Work("w2", "b", 7_000_000), Work("w3", "", None)]
    parents = [Parent("p", (0, "p"), ["a"])]
    notices = [Notice("n", (0, "n"), 8_000_000)]
    assert attribute(works, parents, notices) == {
        "w1": Place(Placement.ANCHORED, "p"),
        "w2": Place(Placement.MATCHED, "n"),
        "w3": Place(Placement.UNASSIGNED),
    }


NAMES = [f"c{number}" for number in range(6)]
seconds = st.one_of(
    st.none(), st.integers(0, 60).map(float), st.sampled_from([9.999999, 10.0, 10.000001, 20.0])
)
statuses = st.sampled_from(
    ["", "COMPLETED", "WORKFLOW_AWAITING_NEXT_STEPS", "WORKFLOW_CANCELED", "WORKFLOW_ODD"]
)


def payloads(depth: int) -> st.SearchStrategy[Json]:
    inner = st.lists(payloads(depth - 1), max_size=2) if depth else st.just([])
    return st.builds(
        lambda name, done, status, below, spawned: payload(
            name,
            done=done,
            status=status,
            steps=[step(*below, text="x")] if below else [],
            **({"objective_chunks": ["Do it."]} if spawned else {}),
        ),
        st.sampled_from(["", *NAMES]),
        seconds,
        statuses,
        inner,
        st.booleans(),
    )


@st.composite
def threads(draw: st.DrawFn) -> Json:
    entries = []
    for number in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, 60))
        if draw(st.booleans()):
            entries.append(notification(f"e{number}", float(at)))
        else:
            entries.append(
                turn(
                    f"e{number}",
                    float(at),
                    step(*draw(st.lists(payloads(2), max_size=2))),
                    status=draw(statuses),
                )
            )
    backgrounds = [
        background(
            *draw(st.lists(payloads(2), min_size=1, max_size=3)), updated=draw(seconds), status=draw(statuses)
        )
        for _ in range(draw(st.integers(0, 5)))
    ]
    return thread(entries, backgrounds)


def sections_of_children(found: Outline) -> list[Section]:
    own = {id(child.payload) for child in found.thread.children}
    return [section for section in found.sections() if id(section.work) in own]


@given(threads())
def test_every_background_payload_lands_in_exactly_one_place(document: Json) -> None:
    found = outline(read_thread(document))
    told = sections_of_children(found)
    assert len(told) == len(found.thread.children) == len({id(section.work) for section in told})
    ids = [child.payload.id for child in found.thread.children if child.payload.id]
    assert len(ids) == len(set(ids))
    raw = [p for entry in document["background_entries"] for p in top_level(entry)]
    assert set(ids) == {p["id"] for p in raw if "id" in p}
    assert len(found.thread.children) - len(ids) == sum("id" not in p for p in raw)


@given(threads())
def test_each_child_is_rendered_once(document: Json) -> None:
    document = json.loads(json.dumps(document))
    for number, entry in enumerate(document["background_entries"]):
        for place, inner in enumerate(top_level(entry)):
            inner["answer"] = f"Answer{number}x{place}."
    found = outline(read_thread(document))
    page = render_thread(found)
    for child in found.thread.children:
        assert page.count(child.payload.answer) == 1


@given(threads(), st.randoms(use_true_random=False))
def test_the_order_of_the_file_changes_nothing(document: Json, random: Any) -> None:
    shuffled = json.loads(json.dumps(document))
    random.shuffle(shuffled["entries"])
    random.shuffle(shuffled["background_entries"])
    for entry in shuffled["background_entries"]:
        random.shuffle(entry["blocks"])
    one, other = outline(read_thread(document)), outline(read_thread(shuffled))
    assert one.places == other.places
    assert render_thread(one) == render_thread(other)
    assert thread_document(one).get("interruptions") == thread_document(other).get("interruptions")


@given(threads())
def test_a_matched_child_lies_in_the_window_of_the_nearest_notification(document: Json) -> None:
    found = read_thread(document)
    created = {t.key: t.created_at for t in found.turns if t.notification and t.created_at is not None}
    for child in found.children:
        place = attribute_thread(found)[child.key]
        gaps = (
            {key: abs(at - child.done_at) for key, at in created.items()} if child.done_at is not None else {}
        )
        near = sorted((gap, key) for key, gap in gaps.items() if gap <= 10_000_000)
        if place.placement is Placement.MATCHED:
            assert place.parent == near[0][1]
        elif place.placement is Placement.UNASSIGNED:
            assert near == []


def top_level(entry: Json) -> list[Json]:
    steps = entry["blocks"][0]["workflow_block"]["steps"]
    return [
        i["payload"]["workflow_payload"]
        for s in steps
        for i in s["items"]
        if "workflow_payload" in i["payload"]
    ]
