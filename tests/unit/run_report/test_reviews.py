"""What a reviewer sees: each payload once, every arrival, what differs, what hangs on the decision."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.run_report import build_report
from coordinator.run_report.reviews import differences, review_view, visible


@pytest.fixture
def doubt(new_snapshot: Any) -> Any:
    """`a` is in doubt: A came, then B twice. `b` had started from A, `c` is blocked."""
    snapshot = new_snapshot("needs_review")
    for name, text in (("sha256:A", '{"v":1,"w":[1,2]}'), ("sha256:B", '{"v":1.0,"w":[1,2]}')):
        snapshot.result(name, text)
    base = {"task": "a", "key": "k", "worker": "w1", "lease": "L1", "attempt": 1, "state_version": 4, "at": 1}
    for arrival, digest in enumerate(("sha256:A", "sha256:B", "sha256:B"), start=1):
        snapshot.conflicts.append(
            {**base, "arrival": arrival, "digest": digest, "accepted": int(arrival == 1)}
        )
    snapshot.task("a", "needs_review", review="a.1", result_trust="conflicted")
    snapshot.task("b", "succeeded", tainted="1", doubt_root="a")
    snapshot.task("c", "blocked", root="a", root_state="needs_review", via="a")
    snapshot.task("d", "succeeded")
    snapshot.reviews = [
        {
            "id": "a.1",
            "task": "a",
            "kind": "conflict",
            "status": "open",
            "opened_at": 5,
            "state_version": 4,
            "evidence": 2,
        }
    ]
    action = {
        "attempt": 1,
        "at": 5,
        "worker": "w1",
        "details": "",
        "receipt": "",
        "key": "mail",
        "state": "confirmed",
    }
    snapshot.actions = [{**action, "task": "b"}, {**action, "task": "d"}]
    return build_report(snapshot)


def test_holds_each_payload_once_and_every_arrival(doubt: Any) -> None:
    view = review_view(doubt, "a.1")
    assert view is not None
    assert [(c["digest"], c["arrivals"]) for c in view["candidates"]] == [
        ("sha256:A", [1]),
        ("sha256:B", [2, 3]),
    ]
    assert [entry["arrival"] for entry in view["evidence_list"]] == [1, 2, 3]
    assert view["evidence_list"][0]["lease"] == "L1"


def test_says_what_hangs_on_it(doubt: Any) -> None:
    view = review_view(doubt, "a.1")
    assert view is not None
    assert view["tainted"] == [{"task": "b", "state": "succeeded"}]
    assert view["blocked"] == ["c"]
    assert [action["task"] for action in view["actions"]] == ["b"]


def test_there_is_no_view_of_what_does_not_exist(doubt: Any) -> None:
    assert review_view(doubt, "a.2") is None


def test_values_that_are_equal_to_python_alone_differ(doubt: Any) -> None:
    view = review_view(doubt, "a.1")
    assert view is not None
    lines = differences(*view["candidates"])
    assert '-  "v": 1,' in lines
    assert '+  "v": 1.0,' in lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain ä", "plain ä"), ("a\u202eb", "a\\u202eb"), ("\x1b[2J", "\\u001b[2J"), ("\u200b", "\\u200b")],
)
def test_what_a_screen_would_hide_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown
