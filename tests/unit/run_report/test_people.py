"""What people have decided and still have to: questions, reviews, actions, cancellations, and the commands for them."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.run_report import build_report, explain, remedies, render_markdown

ACTION = {"attempt": 1, "at": 1700000000000, "worker": "w1", "details": "", "receipt": ""}
REVIEW = {"opened_at": 5, "state_version": 7, "evidence": 1, "action": ""}


def asked(snapshot: Any, **task: str) -> None:
    """Task `a` asks which account."""
    snapshot.event("task_queued", "a", "pending>queued", 1)
    snapshot.event("attempt_started", "a", "queued>running", 1, worker="w1")
    snapshot.event("task_awaiting", "a", "running>awaiting", 1)
    digest = snapshot.result("sha256:q", '"which account?"')
    snapshot.task(
        "a", **{"state": "awaiting", "attempt": "1", "waits_for": "input", "question_digest": digest, **task}
    )


def test_an_open_question_is_listed_with_the_command_that_answers_it(new_snapshot: Any) -> None:
    snapshot = new_snapshot("paused", stop_reason="paused", stop_seq="3", stop_at="1300")
    asked(snapshot)
    report = build_report(snapshot)
    question = {
        "task": "a",
        "question": "which account?",
        "question_digest": "sha256:q",
        "since": 1300,
        "open": True,
    }
    assert report["awaiting"] == [question]
    assert report["interruptions"][1]["kind"] == "awaiting"
    assert remedies(report) == ["crewline answer r1 a FILE"]
    said = explain(snapshot, 2000)
    assert "A person can move it:\n  crewline answer r1 a FILE" in said.as_text()
    assert said.as_data()["remedies"] == ["crewline answer r1 a FILE"]


def test_what_a_stop_found_awaiting_is_listed_as_awaiting_but_not_open(new_snapshot: Any) -> None:
    snapshot = new_snapshot(
        "deadline_exceeded", stop_reason="deadline_exceeded", stop_seq="4", stop_at="1400"
    )
    asked(snapshot, state="canceled", was="awaiting")
    report = build_report(snapshot)
    assert report["awaiting"][0]["open"] is False
    assert [entry["kind"] for entry in report["interruptions"]] == ["awaiting"]
    assert remedies(report) == []


def test_a_parent_that_waits_for_children_asks_nobody(new_snapshot: Any) -> None:
    snapshot = new_snapshot()
    snapshot.task("p", "awaiting", waits_for="children")
    assert build_report(snapshot)["awaiting"] == []


@pytest.mark.parametrize(
    ("limit", "fields", "command"),
    [
        ("tokens", {"limit_tokens": "5000"}, "tokens=+5000"),
        ("cost", {"limit_cost": "2500000"}, "cost=+2.50"),
        ("step_budget", {"limit_step_budget": "3"}, "step_budget=+3"),
        ("deadline", {}, "deadline=+10m"),
    ],
)
def test_a_limit_that_paused_a_run_can_be_raised(
    new_snapshot: Any, limit: str, fields: dict[str, str], command: str
) -> None:
    stop = {
        "stop_reason": "paused",
        "stop_limit": limit,
        "locked_reason": limit,
        "stop_seq": "1",
        "stop_at": "1",
    }
    report = build_report(new_snapshot("paused", **stop, **fields))
    assert remedies(report) == [f"crewline resume r1 --raise {command}"]


def test_reviews_are_listed_oldest_first_with_their_decisions(new_snapshot: Any) -> None:
    snapshot = new_snapshot()
    decided = {
        "status": "decided",
        "decision": "accept",
        "digest": "sha256:1",
        "source": "ann",
        "decided_at": 9,
    }
    snapshot.reviews = [
        {**REVIEW, "id": "b.10", "task": "b", "kind": "unknown_action", "status": "open", "action": "pay"},
        {**REVIEW, "id": "a.9", "task": "a", "kind": "conflict", "reason": "it adds up", **decided},
    ]
    report = build_report(snapshot)
    assert [review["id"] for review in report["reviews"]] == ["a.9", "b.10"]
    first, second = report["reviews"]
    assert (first["decision"], first["source"], first["reason"]) == ("accept", "ann", "it adds up")
    assert (second["decision"], second["source"], second["action"]) == (None, None, "pay")
    assert remedies(report) == ["crewline review show r1:b.10"]
    assert "it adds up" in render_markdown(report)


def test_a_name_is_quoted_for_the_shell(new_snapshot: Any) -> None:
    snapshot = new_snapshot()
    review = {"id": "each[0].1", "task": "each[0]", "kind": "conflict", "status": "open"}
    snapshot.reviews = [{**REVIEW, **review}]
    assert remedies(build_report(snapshot)) == ["crewline review show 'r1:each[0].1'"]


def test_actions_are_listed_by_state_and_carry_details_and_receipt(new_snapshot: Any) -> None:
    snapshot = new_snapshot()
    snapshot.task("a", "running")
    snapshot.task("b", "running")
    details, receipt = snapshot.result("sha256:d", '{"amount":5}'), snapshot.result("sha256:r", '{"n":7}')
    snapshot.actions = [
        {**ACTION, "task": "a", "key": "pay", "state": "confirmed", "details": details, "receipt": receipt},
        {**ACTION, "task": "b", "key": "mail", "state": "unknown"},
        {**ACTION, "task": "a", "key": "mail", "state": "unknown"},
    ]
    found = build_report(snapshot)["actions"]
    assert [(a["state"], a["task"], a["key"]) for a in found] == [
        ("unknown", "a", "mail"),
        ("unknown", "b", "mail"),
        ("confirmed", "a", "pay"),
    ]
    assert (found[2]["details"], found[2]["receipt"]) == ({"amount": 5}, {"n": 7})


def test_a_cancel_is_listed_with_both_of_its_phases(refund: Any) -> None:
    record = {"worker": "w1", "requested_at": 1600, "reason": "enough", "source": "ann"}
    refund.task("told", "canceled", attempt="1", was="running")
    refund.cancellations = [
        {**record, "task": "told", "attempt": 1, "outcome": "confirmed", "at": 1650},
        {**record, "task": "order", "attempt": 1, "outcome": "unconfirmed", "at": 1700},
    ]
    found = {entry["task"]: entry for entry in build_report(refund)["cancellations"]}
    assert list(found) == ["order", "style", "told"]
    assert (found["told"]["outcome"], found["told"]["source"], found["told"]["at"]) == (
        "confirmed",
        "ann",
        1650,
    )
    assert found["order"]["outcome"] == "unconfirmed"
    assert found["style"]["outcome"] is None
    assert "Canceled by it: style, told" in explain(refund, 2000).as_text()
