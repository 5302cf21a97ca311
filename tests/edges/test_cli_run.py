"""`crewline run` as a user starts it: real processes, and nothing left of them, however it ends."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
from redis import Redis

from tests.edges.conftest import Call
from tests.edges.desk import Desk, read_until
from tests.support.command import crewline
from tests.support.waiting import until

pytestmark = pytest.mark.process


def test_a_team_completes_and_leaves_nothing_but_its_report(desk: Desk) -> None:
    done = desk.run(desk.team(quick={"input": {"n": 12345678901234567890}}), "--id", "r1", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["tasks"]["quick"]["result"] == {"got": {"n": 12345678901234567890}}
    assert (desk.folder / ".crewline" / "r1" / "report.json").read_text() == done.stdout
    kept = {path.name for path in (desk.folder / ".crewline" / "r1").iterdir()}
    assert kept == {"logs", "report.json", "report.md", "run.json"}
    assert "quick succeeded" in done.stderr
    assert desk.is_clean()


def test_what_can_be_checked_is_checked_before_anything_starts(
    desk: Desk, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.folder)
    (desk.folder / "x.json").write_text("{\n")
    assert (
        "quick -> ask -> quick"
        in call("run", desk.team(quick={"requires": ["ask"]}, ask={"requires": ["quick"]})).err
    )
    unhandled = call("run", desk.team(nothing={}, nowhere={})).err
    assert "capability nothing has no handler" in unhandled
    assert "capability nowhere has no handler" in unhandled
    team = desk.team(quick={})
    for words in (
        ["x.json"],
        [team, "--input", "n=1"],
        [team, "--id", "a--b"],
        [],
        [team, "--continue", "x"],
    ):
        done = call("run", *words)
        assert (done.code, done.out) == (2, ""), words
        assert done.err.startswith("crewline: ")
    assert not (desk.folder / ".crewline").exists()


def test_outside_systems_report_while_it_runs(desk: Desk) -> None:
    process = desk.start(desk.team(order={"external": True}, quick={"requires": ["order"]}), "--id", "r1")
    url = read_until(process, r"order waits .* (unix://\S+)")[1]
    words = ("report-task", "r1", "order", "completed", "--redis", url)
    told = crewline(*words)
    assert (told.returncode, told.stdout) == (0, "running\n")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Finished: order, quick" in out
    assert desk.is_clean()


def test_ctrl_c_keeps_the_run_and_it_can_be_gone_on_with(desk: Desk) -> None:
    process = desk.start(desk.team(gated={"max_attempts": 3, "backoff": 0}), "--id", "r1")
    read_until(process, "gated running")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "crewline run --continue .crewline/r1" in err
    assert desk.is_clean()
    assert desk.report("r1")["status"] == "running"
    desk.gate.touch()
    done = desk.run("--continue", "-")
    assert done.returncode == 0, done.stderr
    assert desk.report("r1")["tasks"]["gated"]["state"] == "succeeded"
    assert not (desk.folder / ".crewline" / "r1" / "redis").exists()


def test_a_second_ctrl_c_ends_even_a_stuck_handler_at_once(desk: Desk) -> None:
    process = desk.start(desk.team(stuck={}), "--id", "r1")
    read_until(process, "stuck running")
    process.send_signal(signal.SIGINT)
    read_until(process, "Ctrl-C again")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=5)
    assert process.returncode == 130
    until(desk.is_clean, "no process or socket is left")


def test_a_killed_run_takes_its_parts_with_it_and_can_be_gone_on_with(desk: Desk) -> None:
    process = desk.start(desk.team(gated={"max_attempts": 3, "backoff": 0, "heartbeat": "1s"}), "--id", "r1")
    read_until(process, "gated running")
    process.kill()
    process.communicate(timeout=60)
    until(lambda: not desk.processes(), "all processes have ended")
    desk.gate.touch()
    done = desk.run("--continue", "r1")
    assert done.returncode == 0, done.stderr
    outcomes = [attempt["outcome"] for attempt in desk.report("r1")["tasks"]["gated"]["attempts"]]
    assert outcomes[-1] == "succeeded"


def test_a_part_that_dies_ends_the_run_with_one_line_and_exit_3(desk: Desk) -> None:
    process = desk.start(desk.team(gated={}), "--id", "r1")
    read_until(process, "gated running")
    log = (desk.folder / ".crewline" / "r1" / "logs" / "coordinator.log").read_text()
    holder = re.search(r'"holder": "[^:]+:(\d+):', log)
    assert holder is not None
    os.kill(int(holder[1]), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "the coordinator ended (by signal SIGKILL)" in err
    assert desk.is_clean()


def test_a_parked_run_is_kept(desk: Desk) -> None:
    done = desk.run(desk.team(ask={}), "--id", "r1")
    assert done.returncode == 1
    assert desk.report("r1")["status"] == "paused"
    assert "· paused" in done.stdout
    assert "which account?" in json.dumps(desk.report("r1")["tasks"]["ask"]["question"])
    assert "crewline answer r1 ask FILE" in done.stderr
    assert "then go on with: crewline run --continue .crewline/r1" in done.stderr
    assert (desk.folder / ".crewline" / "r1" / "redis").is_dir()
    assert desk.is_clean()


def test_a_borrowed_redis_is_left_as_it_was(desk: Desk, redis: Redis, redis_url: str) -> None:
    redis.set("crewline:mine", "1")
    done = desk.run(desk.team(quick={}), "--redis", redis_url)
    assert done.returncode == 0, done.stderr
    assert redis.keys("*") == [b"crewline:mine"]


def test_debug_runs_in_one_process_and_breakpoints_work(desk: Desk) -> None:
    team = desk.team(broken_into={}, quick={"requires": ["broken_into"]})
    done = desk.run(team, "--debug", "--id", "r1", stdin="p 'at ' + context.task\nc\n")
    assert done.returncode == 0, done.stderr
    assert "at broken_into" in done.stdout
    assert desk.report("r1")["tasks"]["quick"]["state"] == "succeeded"
    assert desk.is_clean()


def test_a_task_whose_owner_may_not_is_denied_and_needs_no_handler(desk: Desk) -> None:
    team = json.loads(desk.team(nothing={"owner": "clerk"}).read_text())
    team["roles"]["clerk"]["capabilities"] = []
    (desk.folder / "team.json").write_text(json.dumps(team))
    done = desk.run("team.json", "--id", "r1")
    assert done.returncode == 1, done.stderr
    assert desk.report("r1")["tasks"]["nothing"]["state"] == "denied"
    assert desk.report("r1")["tasks"]["nothing"]["attempts"] == []
    assert "(denied, no attempt)" in done.stdout


def test_several_workers_share_the_work(desk: Desk) -> None:
    desk.gate.touch()
    done = desk.run(desk.team(gated={}, quick={}), "-c", "2", "--mode", "inline", "--id", "r1")
    assert done.returncode == 0, done.stderr
