"""`crewline answer`: a question is answered once, on an installation and on a run that `crewline run` has kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.edges.conftest import Call
from tests.edges.desk import Desk, read_until
from tests.support.waiting import until

pytestmark = pytest.mark.process


@pytest.mark.usefixtures("worker")
def test_a_missing_input_pauses_the_run_until_it_is_answered(call: Call, desk: Desk) -> None:
    team = desk.team(ask={}, quick={"requires": ["ask"]})
    assert call("submit", team, "--id", "r1").code == 0
    paused = call("watch", "r1")
    assert (paused.code, paused.out) == (1, "paused\n")
    said = call("explain", "r1", "--json").json
    assert said["remedies"] == ["crewline answer r1 ask FILE"]
    assert said["open"][0]["waits_for"] == "person"
    (desk.folder / "answer.json").write_text('{"account": 12345678901234567890}')
    answered = call("answer", "r", "ask", desk.folder / "answer.json")
    assert (answered.code, answered.out) == (0, "running\n"), answered.err
    assert call("watch", "r1").out == "completed\n"
    report = call("report", "r1", "--json").json
    assert [attempt["outcome"] for attempt in report["tasks"]["ask"]["attempts"]] == ["awaiting", "succeeded"]
    assert "interruptions" not in report
    kinds = [event["kind"] for event in report["events"]]
    assert kinds.index("run_parked") < kinds.index("run_resumed")


@pytest.mark.usefixtures("worker")
def test_only_the_first_answer_counts(call: Call, desk: Desk) -> None:
    call("submit", desk.team(ask={}, order={"external": True}), "--id", "r1")
    call_until_awaiting(call)
    assert call("answer", "-", "ask", "--text", "yes").code == 0
    again = call("answer", "-", "ask", "--text", "yes", "--json")
    assert (again.code, again.json["answer"]) == (0, "repeated")
    other = call("answer", "-", "ask", "--text", "no")
    assert (other.code, other.out) == (1, "")
    assert "answered already" in other.err
    refused = [e for e in call("events", "-", "--task", "ask", "--json").json if e["kind"] == "refused"]
    assert [event["reason"] for event in refused] == ["already_answered"]


def call_until_awaiting(call: Call) -> None:
    """Waits until the task asks; the order keeps the run from parking."""

    def asks() -> bool:
        states: dict[str, Any] = call("report", "-", "--json").json["tasks"]
        return bool(states["ask"]["state"] == "awaiting")

    until(asks, "the task asks")


@pytest.mark.usefixtures("coordinator")
def test_what_the_caller_got_wrong_exits_2(call: Call, desk: Desk) -> None:
    call("submit", desk.team(order={"external": True}), "--id", "r1")
    (desk.folder / "bad.json").write_text("{")
    for words, said in (
        (["nobody", "--text", "x"], "has no task nobody"),
        (["order", desk.folder / "bad.json"], "not JSON"),
        (["order", desk.folder / "absent.json"], "cannot be read"),
        (["order"], "it asks nothing now"),
        (["order", desk.folder / "bad.json", "--text", "x"], "either as FILE or with --text"),
    ):
        done = call("answer", "r1", *words)
        assert (done.code, done.out) == (2, ""), words
        assert said in done.err
    assert call("answer", "zz", "order", "--text", "x").code == 2
    asks_nothing = call("answer", "r1", "order", "--text", "x")
    assert (asks_nothing.code, "does not wait for this" in asks_nothing.err) == (1, True)


def test_a_run_that_was_kept_is_answered_and_gone_on_with(desk: Desk) -> None:
    done = desk.run(desk.team(ask={}, quick={"requires": ["ask"]}), "--id", "r1")
    assert done.returncode == 1, done.stderr
    assert "  crewline answer r1 ask FILE" in done.stderr
    asked = desk.call("answer", "r1", "ask")
    assert asked.returncode == 2
    assert "which account?" in asked.stderr
    (desk.folder / "FILE").write_text('"the second"')
    answered = desk.call("answer", "r1", "ask", "FILE")
    assert (answered.returncode, answered.stdout) == (0, "running\n"), answered.stderr
    assert "go on with: crewline run --continue .crewline/r1" in answered.stderr
    assert desk.report("r1")["status"] == "running"
    other = desk.call("answer", "-", "ask", "--text", "no")
    assert other.returncode == 1
    assert desk.is_clean()
    done = desk.run("--continue", "r1")
    assert done.returncode == 0, done.stderr
    assert desk.report("r1")["status"] == "completed"
    ended = desk.call("answer", "r1", "ask", "--text", "x")
    assert ended.returncode == 2
    assert "r1 has ended" in ended.stderr


def test_a_run_that_is_gone_on_with_waits_for_its_answer_from_another_terminal(desk: Desk) -> None:
    assert desk.run(desk.team(ask={}), "--id", "r1").returncode == 1
    process = desk.start("--continue", "r1")
    read_until(process, "Ctrl-C keeps the run")
    answered = desk.call("answer", "r1", "ask", "--text", "the second")
    assert answered.returncode == 0, answered.stderr
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "· completed" in out
    assert desk.is_clean()
    assert json.loads((desk.folder / ".crewline" / "r1" / "run.json").read_text())["run"] == "r1"
    assert not (desk.folder / ".crewline" / "r1" / "address").exists()


def test_without_a_redis_and_without_a_kept_run_it_is_said_what_is_missing(
    call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.folder)
    done = call("answer", "r1", "ask", "--text", "x")
    assert done.code == 2
    assert "CREWLINE_REDIS_URL" in done.err
    assert ".crewline" in done.err
