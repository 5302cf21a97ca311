"""`crewline cancel`: what it prints, how it exits, and that a repeat changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.edges.conftest import Call

pytestmark = pytest.mark.usefixtures("coordinator")

Refund = Callable[..., Path]


def tasks(call: Call) -> dict[str, Any]:
    found: dict[str, Any] = call("report", "-", "--json").json["tasks"]
    return found


def test_a_run_is_canceled_before_anything_else_is_judged(call: Call, refund: Refund) -> None:
    call("submit", refund())
    done = call("cancel", "-", "--reason", "the customer called")
    assert (done.code, done.out) == (0, "canceled\n")
    report = call("report", "-", "--json").json
    assert (report["status"], report["stop"]["reason"]) == ("canceled", "canceled")
    assert {task["state"] for task in report["tasks"].values()} == {"canceled"}
    [asked] = [event for event in report["events"] if event["kind"] == "cancel_run_requested"]
    assert (asked["reason"], asked["worker"]) == ("the customer called", "default")


def test_a_request_id_makes_a_repeat_harmless(call: Call, refund: Refund) -> None:
    call("submit", refund())
    assert call("cancel", "-", "--reason", "x", "--request", "q1").code == 0
    before = call("report", "-", "--json").json
    again = call("cancel", "-", "--reason", "x", "--request", "q1")
    assert (again.code, again.out) == (0, "canceled\n")
    assert "already" in again.err
    assert call("report", "-", "--json").json == before
    other = call("cancel", "-", "--reason", "x", "--request", "q2")
    assert (other.code, other.out) == (1, "")
    assert "has ended" in other.err


def test_one_task_is_canceled_and_the_rest_goes_on(call: Call, refund: Refund) -> None:
    call("submit", refund())
    assert call("cancel", "-", "--task", "style", "--reason", "too late").out == "running\n"
    assert tasks(call)["style"]["state"] == "canceled"
    call("report-task", "-", "order", "completed")
    assert call("report-task", "-", "policy", "completed").out == "completed\n"


def test_a_late_report_on_a_canceled_task_changes_nothing(call: Call, refund: Refund) -> None:
    call("submit", refund())
    call("cancel", "-", "--task", "style", "--reason", "too late")
    assert call("report-task", "-", "style", "completed").code == 2
    assert tasks(call)["style"]["state"] == "canceled"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-", "--task", "nobody", "--reason", "x"], 2, "no task nobody"),
        (["-", "--task", "order", "--reason", "x"], 2, "has ended"),
        (["r0", "--reason", "x"], 2, "no such run"),
        (["-", "--reason", ""], 2, "--reason"),
        (["-"], 2, "--reason"),
        (["-", "--reason", "x", "--request", "q" * 129], 2, "--request"),
    ],
)
def test_what_the_caller_got_wrong(
    call: Call, refund: Refund, words: list[str], code: int, said: str
) -> None:
    call("submit", refund())
    call("report-task", "-", "order", "completed")
    done = call("cancel", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert call("status", "-", "--json").json["status"] == "running"
