"""submit, and the commands that read: what they print, for people and as JSON, and how a run is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.edges.conftest import Call

pytestmark = pytest.mark.usefixtures("coordinator")

Refund = Callable[..., Path]


def test_submit_prints_the_run(call: Call, refund: Refund) -> None:
    done = call("submit", refund(), "--id", "abc", "--json")
    assert done.code == 0
    assert (done.json["run"], done.json["status"]) == ("abc", "running")
    made = call("submit", refund())
    assert made.out.startswith("refund-")
    assert made.out.count("\n") == 1


def test_the_same_id_is_the_same_run_and_other_content_is_refused(call: Call, refund: Refund) -> None:
    assert call("submit", refund(), "--id", "abc").code == 0
    assert call("submit", refund(), "--id", "abc", "--json").json["repeated"] is True
    done = call("submit", refund(max_steps=9), "--id", "abc")
    assert (done.code, done.out) == (1, "")
    assert len(call("list", "--json").json) == 1


@pytest.mark.parametrize("run", ["a--b", "", "x" * 200, "ä"])
def test_an_impossible_id_is_refused(call: Call, refund: Refund, run: str) -> None:
    assert call("submit", refund(), f"--id={run}").code == 2


def test_a_faulty_team_is_not_submitted(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"team": "t", "tasks": {"a": {"requires": ["b"]}, "b": {"requires": ["a"]}}}))
    done = call("submit", file)
    assert done.code == 2
    assert "a -> b -> a" in done.err
    assert call("list", "--json").json == []


def test_a_run_may_be_named_by_a_unique_prefix_or_a_dash(call: Call, refund: Refund) -> None:
    for run in ("aa1", "aa2", "b1"):
        call("submit", refund(), "--id", run)
    assert call("status", "b", "--json").json["run"] == "b1"
    assert call("status", "-", "--json").json["run"] == "b1"
    assert call("status", "aa1", "--json").json["run"] == "aa1"
    assert "several" in call("status", "aa").err
    assert call("status", "aa").code == 2
    missing = call("status", "zz")
    assert (missing.code, "no such run" in missing.err) == (2, True)


def test_list_is_newest_first_and_can_be_filtered(call: Call, refund: Refund) -> None:
    for run in ("one", "two"):
        call("submit", refund(), "--id", run)
    call("report-task", "one", "order", "failed")
    assert [run["run"] for run in call("list", "--json").json] == ["two", "one"]
    assert [run["run"] for run in call("list", "--json", "--status", "running").json] == ["two"]
    assert call("list").out.splitlines()[1].startswith("two  refund  running")


def test_status_says_how_a_run_stands(call: Call, refund: Refund) -> None:
    call("submit", refund(), "--id", "abc")
    call("report-task", "abc", "order", "working")
    said = call("status", "abc", "--json").json
    assert (said["run"], said["status"], said["team"]) == ("abc", "running", "refund")
    assert said["tasks"] == {"queued": 2, "running": 1}
    assert said["budgets"]["max_steps"] == {"limit": 4, "used": 1, "reserved": 0, "overrun": False}
    assert "max_steps: 1 of 4 used" in call("status", "abc").out
    call("report-task", "abc", "policy", "failed")
    assert call("status", "abc", "--json").json["tasks"] == {"failed": 1, "canceled": 2}


def test_events_have_every_field_and_versions_rise_by_one(call: Call, refund: Refund) -> None:
    call("submit", refund(), "--id", "abc")
    for task, state in (("order", "completed"), ("policy", "failed"), ("style", "completed")):
        call("report-task", "abc", task, state)
    events = call("events", "abc", "--json").json
    wanted = {"seq", "at", "kind", "task_id", "attempt", "state_version", "from", "to", "reason"}
    assert all(wanted <= set(event) for event in events)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    moved = [event["state_version"] for event in events if event["to"]]
    assert moved == list(range(1, len(moved) + 1))
    assert events[-1]["kind"] == "late_ignored"
    only = call("events", "abc", "--json", "--task", "policy", "--after", "4").json
    assert {event["task_id"] for event in only} == {"policy"}
    assert "task_failed" in call("events", "abc").out


def test_the_report_is_the_same_bytes_each_time_and_in_every_form(
    call: Call, refund: Refund, tmp_path: Path
) -> None:
    call("submit", refund(), "--id", "abc")
    call("report-task", "abc", "order", "failed")
    file = tmp_path / "r.json"
    assert call("report", "abc", "--output", file).out == ""
    assert file.read_text() == call("report", "abc", "--json").out
    assert call("report", "abc").out.startswith("# abc: critical_failure")
    assert call("report", "abc", "--output", tmp_path / "no" / "r.json").code == 2


def test_explain_tells_of_live_and_of_stopped_runs(call: Call, refund: Refund) -> None:
    call("submit", refund(), "--id", "abc")
    live = call("explain", "abc", "--json").json
    assert (live["open"][0]["task"], live["open"][0]["waits_for"]) == ("order", "report")
    call("report-task", "abc", "policy", "failed")
    assert "because the required task policy failed" in call("explain", "abc").out


def test_explain_names_a_role_without_workers(call: Call, write_team: Callable[..., Path]) -> None:
    team = {"team": "t", "roles": {"clerk": {"capabilities": ["a"]}}, "tasks": {"a": {}}}
    call("submit", write_team(team), "--id", "abc")
    assert call("explain", "abc", "--json").json["open"][0]["waits_for"] == "no_worker"


def test_watch_ends_with_the_run_and_exits_by_its_status(call: Call, refund: Refund) -> None:
    for run, ends, code in (("good", ("completed", "completed"), 0), ("bad", ("completed", "failed"), 1)):
        call("submit", refund(), "--id", run)
        for task, state in zip(("order", "policy"), ends, strict=True):
            call("report-task", run, task, state)
        done = call("watch", run)
        assert (done.code, done.out) == (code, "completed\n" if code == 0 else "critical_failure\n")
        assert "run stopped" in done.err
        assert call("watch", run, "--json").json["run"] == run
