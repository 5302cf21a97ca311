"""Which field means what, and what stands in for a missing one (docs/thread-format.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from coordinator.agent_threads import (
    InvalidThread,
    is_thread,
    outline,
    read_thread,
    render_thread,
    thread_document,
)
from coordinator.agent_threads.times import first_instant, instant, shown_instant
from tests.support.threads import START_US, background, payload, step, thread, turn

ROOT = Path(__file__).parents[3]
EXAMPLE = json.loads((ROOT / "examples/threads/library.json").read_text())
SCHEMA = json.loads((ROOT / "docs/thread.schema.json").read_text())


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ("2026-02-23T10:00:00Z", START_US),
        ("2026-02-23T11:00:00.000001+01:00", START_US + 1),
        ("2026-02-23T10:00:00", START_US),
        (1_771_840_800, START_US),
        (1_771_840_800.25, START_US + 250_000),
        (1_771_840_800_000, START_US),
        (START_US, START_US),
        (str(START_US), START_US),
        (True, None),
        (None, None),
        ("soon", None),
        ("", None),
        (float("nan"), None),
        (10**40, None),
        ([], None),
    ],
)
def test_times(value: Any, at: int | None) -> None:
    assert instant(value) == at


def test_the_first_time_that_can_be_read_counts() -> None:
    assert first_instant({"a": "soon", "b_us": 5, "c": 7}, "a", "b_us", "c") == 5
    assert shown_instant(None) == ""
    assert shown_instant(10**17) == "5138-11-16 09:46:40 UTC"


@pytest.mark.parametrize("value", [None, [], {}, {"entries": {}}, "x", 1])
def test_what_is_no_thread_is_refused(value: Any) -> None:
    assert not is_thread(value)
    with pytest.raises(InvalidThread, match="no exported thread"):
        read_thread(value)


def test_the_smallest_thread() -> None:
    found = outline(read_thread({"entries": []}))
    assert render_thread(found) == "# (untitled)\n"
    assert thread_document(found) == {"entries": []}


def test_wrong_types_are_read_as_missing() -> None:
    broken: dict[str, Any] = {
        "title": 5,
        "thread_metadata": "x",
        "lastUpdated": True,
        "entries": [
            None,
            7,
            {
                "blocks": [{"workflow_block": []}, 1, {"workflow_block": {"status": 3, "steps": "x"}}],
                "text": 9,
            },
            {"blocks": {"workflow_block": {}}, "created_us": "never", "sources": [{"url": None}, 4]},
            {
                "blocks": [
                    {
                        "workflow_block": {
                            "steps": [{"items": [{"payload": "x"}, {"payload": {"workflow_payload": 1}}]}]
                        }
                    }
                ]
            },
        ],
        "background_entries": {"a": 1},
    }
    found = read_thread(broken)
    assert [t.number for t in found.turns] == [1, 2, 3]
    assert (found.title, found.last_updated) == ("5", "")
    render_thread(outline(found))


def test_an_entry_without_a_time_stays_behind_the_one_it_follows() -> None:
    entries = [turn("b", 50), turn("b2", None), turn("a", 10), turn("a2", None), turn("a3", None)]
    assert [t.id for t in read_thread(thread(entries, [])).turns] == ["a", "a2", "a3", "b", "b2"]
    entries = [turn("z", None), turn("y", None)]
    assert [t.id for t in read_thread(thread(entries, [])).turns] == ["z", "y"]


@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        ({"answer": "A", "text": "B"}, "A"),
        ({"text": "Just the answer."}, "Just the answer."),
        (
            {
                "text": json.dumps(
                    [{"step_type": "FINAL", "content": {"answer": json.dumps({"answer": "Deep"})}}]
                )
            },
            "Deep",
        ),
        (
            {"text": json.dumps([{"step_type": "FINAL", "content": {"answer": "Flat"}}, {"step_type": "X"}])},
            "Flat",
        ),
        ({"text": "{}"}, ""),
        ({}, ""),
    ],
)
def test_where_an_answer_is_found(entry: dict[str, Any], answer: str) -> None:
    assert read_thread({"entries": [entry]}).turns[0].answer == answer


def test_the_answer_of_a_nested_workflow_is_not_its_parents() -> None:
    inner = payload("wf", steps=[step(text="Inner.", variant="answer")])
    found = read_thread(thread([turn("e", 0, step(inner))], [background(payload("a", steps=[step(inner)]))]))
    assert found.turns[0].answer == ""
    assert found.children[0].payload.answer == ""


def test_sources_are_listed_once() -> None:
    raw = {"name": "N", "url": "https://x.example/"}
    item = {"payload": {"sources_payload": {"sources": [raw, {"title": "M", "link": "https://y.example/"}]}}}
    entry = turn("e", 0, {"items": [item]}, sources=[raw | {"name": "First"}])
    assert [s.name for s in read_thread(thread([entry], [])).turns[0].sources] == ["First", "M"]


def test_a_thread_nested_beyond_reason_is_refused_and_not_a_crash() -> None:
    inner: dict[str, Any] = payload("x")
    for _ in range(3000):
        inner = payload("x", steps=[{"items": [{"payload": {"workflow_payload": inner}}]}])
    with pytest.raises(InvalidThread, match="nested too deeply"):
        read_thread({"entries": [turn("e", 0, step(inner))]})


def test_the_example_is_what_the_schema_says() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    validator = Draft202012Validator(SCHEMA)
    validator.validate(EXAMPLE)
    rendered = thread_document(outline(read_thread(EXAMPLE)))
    assert len(rendered["interruptions"]) == 3
    validator.validate(rendered)


def test_the_schema_accepts_unknown_fields_and_what_is_missing() -> None:
    validator = Draft202012Validator(SCHEMA)
    validator.validate({"entries": [{"later": 1}], "new": {}})
    assert not validator.is_valid({"title": "x"})
    assert not validator.is_valid({"entries": [], "interruptions": []})


def test_the_example_shown_in_the_format_is_one() -> None:
    text = (ROOT / "docs/thread-format.md").read_text()
    shown = json.loads(text.split("```json\n")[1].split("```")[0])
    Draft202012Validator(SCHEMA).validate(shown)
    kinds = [entry["kind"] for entry in thread_document(outline(read_thread(shown)))["interruptions"]]
    assert kinds == ["limit_interrupted", "canceled"]
