"""A team whose members live elsewhere, judged through `report-task`: the rules of the order, policy and style
team.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.edges.conftest import Call

pytestmark = pytest.mark.usefixtures("coordinator")

Refund = Callable[..., Path]


def report(call: Call, task: str, state: str, *more: object) -> str:
    """Reports on the latest run; gives what stands alone on the standard output."""
    done = call("report-task", "-", task, state, *more)
    assert done.code == 0, done.err
    assert done.out.count("\n") == 1
    return done.out.strip()


def states(call: Call) -> dict[str, str]:
    return {name: task["state"] for name, task in call("report", "-", "--json").json["tasks"].items()}


SCENARIOS: dict[str, tuple[dict[str, Any], list[tuple[str, str, str]], dict[str, str]]] = {
    "a required task fails after another one succeeded": (
        {},
        [
            ("order", "completed", "running"),
            ("policy", "failed", "critical_failure"),
            ("style", "completed", "late_ignored"),
        ],
        {"order": "succeeded", "policy": "failed", "style": "canceled"},
    ),
    "a required task fails first": (
        {},
        [("policy", "failed", "critical_failure"), ("order", "completed", "late_ignored")],
        {"order": "canceled", "policy": "failed", "style": "canceled"},
    ),
    "working counts as a step": (
        {"max_steps": 2},
        [("order", "working", "running"), ("policy", "working", "step_limit")],
        {"order": "canceled", "policy": "canceled", "style": "canceled"},
    ),
    "with one step more it still runs": (
        {"max_steps": 3},
        [("order", "working", "running"), ("policy", "working", "running")],
        {"order": "running", "policy": "running", "style": "queued"},
    ),
    "completion comes before the step limit": (
        {"max_steps": 2},
        [("order", "completed", "running"), ("policy", "completed", "completed")],
        {"order": "succeeded", "policy": "succeeded", "style": "canceled"},
    ),
    "an optional task may fail": (
        {},
        [
            ("style", "failed", "running"),
            ("order", "completed", "running"),
            ("policy", "completed", "completed"),
        ],
        {"order": "succeeded", "policy": "succeeded", "style": "failed"},
    ),
    "a task that is required may not": (
        {"style_required": True},
        [
            ("style", "failed", "critical_failure"),
            ("order", "completed", "late_ignored"),
            ("policy", "completed", "late_ignored"),
        ],
        {"order": "canceled", "policy": "canceled", "style": "failed"},
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_team_is_judged_by_what_is_reported(call: Call, refund: Refund, name: str) -> None:
    team, reports, ends = SCENARIOS[name]
    assert call("submit", refund(**team)).code == 0
    for task, state, answer in reports:
        assert report(call, task, state) == answer
    assert states(call) == ends


def test_the_step_limit_is_told_beside_the_completion(call: Call, refund: Refund) -> None:
    call("submit", refund(max_steps=2))
    report(call, "order", "completed")
    report(call, "policy", "completed")
    assert call("report", "-", "--json").json["stop"]["also_true"] == ["step_limit"]


def test_a_late_report_changes_nothing_but_the_late_ledger(
    call: Call, refund: Refund, tmp_path: Path
) -> None:
    payload = tmp_path / "p.json"
    payload.write_text('{"n": 1}')
    call("submit", refund())
    report(call, "order", "completed", "--payload", payload)
    report(call, "policy", "failed")
    before = call("report", "-", "--json").json
    assert report(call, "style", "completed", "--payload", payload) == "late_ignored"
    after = call("report", "-", "--json").json
    assert before["tasks"]["order"]["result"] == {"n": 1}
    assert after["late_results"][0]["payload"] == {"n": 1}
    assert after["late_results"][0]["would_change"] is True
    moved = {"late_results", "events", "digest"}
    assert {k: v for k, v in after.items() if k not in moved} == {
        k: v for k, v in before.items() if k not in moved
    }


@pytest.mark.parametrize(
    ("task", "state", "said"),
    [
        ("nobody", "completed", "no task nobody"),
        ("order", "finished", "working, completed or failed"),
        ("policy", "completed", "has ended"),
    ],
)
def test_what_the_caller_got_wrong_exits_2_and_changes_nothing(
    call: Call, refund: Refund, task: str, state: str, said: str
) -> None:
    call("submit", refund())
    report(call, "policy", "completed")
    before = call("report", "-", "--json").json
    done = call("report-task", "-", task, state)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    after = call("report", "-", "--json").json
    assert after["budgets"] == before["budgets"]
    assert after["tasks"] == before["tasks"]
    assert after["state_version"] == before["state_version"]


def test_a_key_makes_repeats_harmless_and_contradictions_visible(
    call: Call, refund: Refund, tmp_path: Path
) -> None:
    for name, text in {"one": '{"a":1,"b":2}', "same": '{"b":2,"a":1}', "other": '{"a":2,"b":2}'}.items():
        (tmp_path / name).write_text(text)
    call("submit", refund(max_steps=None))
    assert report(call, "order", "completed", "--payload", tmp_path / "one", "--key", "k") == "running"
    version = call("status", "-", "--json").json["state_version"]
    assert report(call, "order", "completed", "--payload", tmp_path / "same", "--key", "k") == "running"
    assert call("status", "-", "--json").json["state_version"] == version
    assert report(call, "order", "completed", "--payload", tmp_path / "other", "--key", "k") == "running"
    found = call("report", "-", "--json").json
    assert found["tasks"]["order"]["state"] == "needs_review"
    assert found["tasks"]["order"]["result"] is None
    assert found["tasks"]["order"]["result_trust"] == "conflicted"
    assert [c["arrival"] for c in found["result_conflicts"]] == [1, 2]
    assert {c["payload"]["a"] for c in found["result_conflicts"]} == {1, 2}


def test_the_payload_must_be_json(call: Call, refund: Refund, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("{")
    call("submit", refund())
    assert call("report-task", "-", "order", "completed", "--payload", tmp_path / "bad").code == 2
    assert states(call)["order"] == "queued"


def test_a_signal_may_end_a_run(call: Call, refund: Refund) -> None:
    rule = {"name": "enough", "ends": "stopped", "rule": {"signal": "stop_now"}}
    call("submit", refund(stop_when=[rule]))
    assert call("signal", "-", "something_else").out == "running\n"
    assert call("signal", "-", "stop_now").out == "stop_rule\n"
    assert call("report", "-", "--json").json["stop"]["rule"] == "enough"
