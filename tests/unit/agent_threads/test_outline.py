"""How each level stands, from its own source, and what the three consumers make of that (cases C-51, C-53)."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.agent_threads import (
    interruptions,
    outline,
    read_thread,
    render_thread,
    thread_document,
    warnings,
)
from tests.support.threads import background, notification, payload, step, thread, turn

Json = dict[str, Any]
AWAITING, CANCELED, COMPLETED = "WORKFLOW_AWAITING_NEXT_STEPS", "WORKFLOW_CANCELED", "WORKFLOW_COMPLETED"
LIMIT = "spending_limit_exceeded"
MARKS = {
    "limit_interrupted": "⏸ limit reached (content ends at the break)",
    "awaiting": "⏸ interrupted, can be continued",
    "canceled": "⛔ canceled",
}
PAIRS = [
    ("completed", COMPLETED, None),
    ("limit_interrupted", AWAITING, LIMIT),
    ("awaiting", AWAITING, None),
    ("canceled", CANCELED, None),
    ("other", "WORKFLOW_FAILED", None),
    ("other", AWAITING, "a_reason_of_tomorrow"),
]


def at_turn(status: str, reason: str | None) -> Json:
    return thread([turn("e", 0, step(text="x"), status=status, reason=reason)], [])


def at_subagent(status: str, reason: str | None) -> Json:
    return thread(
        [turn("e", 0, step(payload("a")))],
        [background(payload("a", status=status), status=status, reason=reason)],
    )


def at_stub(status: str, reason: str | None) -> Json:
    return thread([notification("e", 0)], [background(payload("a", done=0, status=status), reason=reason)])


def unassigned(status: str, reason: str | None) -> Json:
    return thread([], [background(payload("a", status=status), reason=reason)])


def nested(status: str, reason: str | None) -> Json:
    return thread([turn("e", 0, step(payload("wf", status=status, locked_reason=reason)))], [])


LEVELS = [
    (at_turn, "turn_0001", "## Turn 1 · 2026-02-23 10:00:00 UTC"),
    (at_subagent, "turn_0001/subagent", "### Sub-agent: Work of a"),
    (at_stub, "turn_0001/subagent_stub", "#### Work of a"),
    (unassigned, "background_unassigned", "### Work of a"),
    (nested, "turn_0001/nested", "<summary>Nested workflow: Work of wf (0 steps)"),
]


@pytest.mark.parametrize(("make", "location", "heading"), LEVELS)
@pytest.mark.parametrize(("kind", "status", "reason"), PAIRS)
def test_three_consumers_share_one_classification(
    make: Any, location: str, heading: str, kind: str, status: str, reason: str | None
) -> None:
    found = outline(read_thread(make(status, reason)))
    listed = [(entry["location"], entry["kind"], entry["status"]) for entry in interruptions(found)]
    assert listed == ([(location, kind, status)] if kind in MARKS else [])
    told = [(entry["location"], entry["kind"], entry["status"]) for entry in warnings(found)]
    assert told == ([] if kind == "completed" else [(location, kind, status)])
    line = next(line for line in render_thread(found).splitlines() if line.startswith(heading))
    rest = line.removeprefix(heading).removesuffix("</summary>")
    assert rest == (f" {MARKS[kind]}" if kind in MARKS else "")


@pytest.mark.parametrize(("make", "location", "heading"), LEVELS)
@pytest.mark.parametrize("status", ["", COMPLETED, "WORKFLOW_ODD"])
def test_a_thread_without_interruptions_is_rendered_as_if_there_were_none(
    make: Any, location: str, heading: str, status: str
) -> None:
    found = outline(read_thread(make(status, None)))
    assert render_thread(found) == render_thread(found, marks=False)
    assert thread_document(found) == make(status, None)


def test_the_childs_own_status_wins_over_the_anchors_copy() -> None:
    for copy, own in ((COMPLETED, CANCELED), (CANCELED, COMPLETED)):
        document = thread(
            [turn("e", 0, step(payload("a", status=copy)))],
            [background(payload("a", status=own), status=own)],
        )
        found = outline(read_thread(document))
        assert [s.status for s in found.sections()] == ["", own]


def test_where_the_childs_payload_lags_the_background_workflow_that_holds_it_alone_counts() -> None:
    entries = [turn("e", 0, step(payload("a"), payload("b")))]
    alone = thread(entries, [background(payload("a", status=COMPLETED), status=CANCELED)])
    assert [entry["kind"] for entry in interruptions(outline(read_thread(alone)))] == ["canceled"]
    shared = thread(
        entries, [background(payload("a", status=COMPLETED), payload("b", status=COMPLETED), status=CANCELED)]
    )
    assert interruptions(outline(read_thread(shared))) == []


def test_an_appendix_entry_takes_its_status_from_its_payload() -> None:
    found = outline(read_thread(thread([], [background(payload("a", status=COMPLETED), status=CANCELED)])))
    assert interruptions(found) == []


def test_a_reason_at_one_level_says_nothing_of_another() -> None:
    document = thread(
        [turn("e", 0, step(payload("a")), status=AWAITING, reason=LIMIT)],
        [background(payload("a", status=AWAITING))],
    )
    kinds = [entry["kind"] for entry in interruptions(outline(read_thread(document)))]
    assert kinds == ["limit_interrupted", "awaiting"]


def test_a_subagent_without_a_background_side_is_told_from_its_copy() -> None:
    copy = payload("a", status=CANCELED, objective_chunks=["Do ", "it."])
    found = outline(read_thread(thread([turn("e", 0, step(copy), step(copy)), turn("f", 1, step(copy))], [])))
    assert [s.location for s in found.sections()] == ["turn_0001", "turn_0001/subagent", "turn_0002"]
    assert interruptions(found)[0]["headline"] == "Work of a"
    assert "(see turn 1)" in render_thread(found)


def test_an_old_list_of_interruptions_is_made_anew() -> None:
    stale = {"location": "turn_0009", "kind": "awaiting", "headline": "", "status": AWAITING}
    document = at_turn(COMPLETED, None) | {"interruptions": [stale], "unknown": 1}
    assert "interruptions" not in thread_document(outline(read_thread(document)))
    assert thread_document(outline(read_thread(document)))["unknown"] == 1
    document = at_turn(CANCELED, None) | {"interruptions": [stale]}
    assert [e["location"] for e in thread_document(outline(read_thread(document)))["interruptions"]] == [
        "turn_0001"
    ]


def test_six_results_and_one_that_died_are_seven_in_one_place_each() -> None:
    """C-51: the dead one has no end and no notification; nothing says that it is still running."""
    anchors = [payload(f"c{n}", status="WORKFLOW_RUNNING", is_background_anchor=True) for n in range(7)]
    children = [background(payload(f"c{n}", done=n, status=COMPLETED), status=COMPLETED) for n in range(7)]
    children[4] = background(payload("c4", status=AWAITING), status=AWAITING, updated=4)
    found = outline(read_thread(thread([turn("p", 0, step(*anchors)), notification("n", 5)], children)))
    assert [s.location for s in found.sections()].count("turn_0001/subagent") == 7
    assert [(e["location"], e["kind"]) for e in interruptions(found)] == [("turn_0001/subagent", "awaiting")]
    assert [e["kind"] for e in warnings(found)] == ["awaiting"]
