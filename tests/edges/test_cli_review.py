"""`crewline review`: the evidence, and decisions of which exactly one counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.wire.digest import digest
from tests.edges.conftest import Call
from tests.edges.desk import Desk, read_until
from tests.support.command import environment
from tests.support.waiting import until

pytestmark = [pytest.mark.usefixtures("coordinator"), pytest.mark.process]

ONE, OTHER = {"total": 10, "lines": ["a", "b"]}, {"total": 12, "lines": ["a", "b"]}
Conflict = Callable[..., None]


@pytest.fixture
def conflict(call: Call, desk: Desk) -> Conflict:
    """Makes a run whose order was reported twice, differently; `quick` requires it."""

    def make(**tasks: dict[str, Any]) -> None:
        team = desk.team(order={"external": True}, quick={"requires": ["order"]}, **tasks)
        assert call("submit", team, "--id", "r1").code == 0
        contradict(call, desk)

    return make


def contradict(call: Call, desk: Desk) -> None:
    for name, payload in (("one", ONE), ("other", OTHER)):
        file = desk.folder / name
        file.write_text(json.dumps(payload))
        assert call("report-task", "r1", "order", "completed", "--payload", file, "--key", "k").code == 0


def states(call: Call) -> dict[str, str]:
    return {name: task["state"] for name, task in call("report", "r1", "--json").json["tasks"].items()}


def test_a_conflict_parks_the_run_and_is_listed(call: Call, conflict: Conflict) -> None:
    conflict()
    assert call("status", "r1", "--json").json["status"] == "needs_review"
    [review] = call("review", "list", "--json").json
    assert (review["run"], review["id"], review["kind"], review["evidence"]) == (
        "r1",
        "order.1",
        "conflict",
        1,
    )
    listed = call("review", "list", "-").out
    assert "r1:order.1  conflict  open" in listed
    assert call("explain", "r1", "--json").json["remedies"] == ["crewline review show r1:order.1"]


def test_show_holds_all_that_a_decision_is_made_on(call: Call, conflict: Conflict) -> None:
    conflict()
    view = call("review", "show", "r1:order.1", "--json").json
    assert [candidate["digest"] for candidate in view["candidates"]] == [digest(ONE), digest(OTHER)]
    assert [candidate["payload"] for candidate in view["candidates"]] == [ONE, OTHER]
    assert [entry["arrival"] for entry in view["evidence_list"]] == [1, 2]
    assert view["blocked"] == ["quick"]
    text = call("review", "show", "-").out
    for part in (
        f"state version {view['state_version']}",
        digest(ONE),
        digest(OTHER),
        '-  "total": 10',
        '+  "total": 12',
        "(was accepted)",
        "Waits for the decision: quick",
        f"crewline review accept r1:order.1 --digest {digest(OTHER)}",
    ):
        assert part in text, part


@pytest.mark.usefixtures("worker")
def test_accept_unblocks_and_the_run_completes(call: Call, conflict: Conflict) -> None:
    conflict()
    done = call("review", "accept", "r:order.1", "--digest", digest(OTHER)[7:20], "--reason", "it adds up")
    assert (done.code, done.out) == (0, "running\n"), done.err
    assert call("watch", "r1").out == "completed\n"
    report = call("report", "r1", "--json").json
    assert report["tasks"]["order"]["result"] == OTHER
    assert report["tasks"]["order"]["result_trust"] == "reviewed"
    [review] = report["reviews"]
    assert (review["decision"], review["digest"], review["reason"]) == ("accept", digest(OTHER), "it adds up")
    assert review["source"]
    assert call("review", "list", "--json").json == []
    assert "accept" in call("review", "list", "r1").out


@pytest.mark.usefixtures("worker")
def test_supply_takes_a_third_result(call: Call, conflict: Conflict, desk: Desk) -> None:
    conflict()
    (desk.folder / "mine").write_text('{"total": 11}')
    assert call("review", "supply", "r1", desk.folder / "mine").out == "running\n"
    assert call("watch", "r1").out == "completed\n"
    assert call("report", "r1", "--json").json["tasks"]["order"]["result"] == {"total": 11}


def test_reject_is_a_critical_failure(call: Call, conflict: Conflict) -> None:
    conflict()
    assert call("review", "reject", "r1:order.1", "--reason", "neither").out == "critical_failure\n"
    assert states(call) == {"order": "failed", "quick": "blocked"}
    again = call("review", "rerun", "r1:order.1")
    assert again.code == 1
    assert 'reject: "neither"' in again.err


def test_rerun_asks_for_the_result_again(call: Call, conflict: Conflict, desk: Desk) -> None:
    conflict()
    assert call("review", "rerun", "r1:order.1").out == "running\n"
    assert states(call)["order"] == "queued"
    assert (
        call("report-task", "r1", "order", "completed", "--payload", desk.folder / "other").out == "running\n"
    )
    assert states(call) == {"order": "succeeded", "quick": "queued"}


def test_of_two_deciders_one_wins_and_the_other_is_told_by_whom(
    call: Call, conflict: Conflict, desk: Desk, redis_url: str
) -> None:
    conflict()
    desk.env["CREWLINE_REDIS_URL"] = redis_url
    assert environment(desk.env)["CREWLINE_REDIS_URL"] == redis_url
    choices = [digest(ONE), digest(OTHER)]
    deciders = [desk.start("accept", "r1:order.1", "--digest", c, command="review") for c in choices]
    ends = [(*decider.communicate(timeout=60), decider.returncode) for decider in deciders]
    assert sorted(code for _, _, code in ends) == [0, 1], ends
    winner = next(number for number, (_, _, code) in enumerate(ends) if code == 0)
    [review] = call("report", "r1", "--json").json["reviews"]
    assert review["digest"] == choices[winner]
    assert f"was decided by {review['source']}" in ends[1 - winner][1]
    assert choices[winner] in ends[1 - winner][1]


def test_a_decision_is_bound_to_what_was_seen(call: Call, conflict: Conflict, desk: Desk) -> None:
    conflict(later={"external": True})
    seen = call("review", "show", "r1", "--json").json["state_version"]
    call("report-task", "r1", "later", "working")
    (desk.folder / "third").write_text('{"total": 13}')
    call("report-task", "r1", "order", "completed", "--payload", desk.folder / "third", "--key", "k")
    old = call("review", "accept", "r1", "--digest", digest(ONE), "--version", seen)
    assert (old.code, old.out) == (1, "")
    assert "look at it again" in old.err
    assert call("review", "accept", "r1", "--digest", digest(ONE)).code == 0


def test_what_the_caller_got_wrong_exits_2(call: Call, conflict: Conflict, desk: Desk) -> None:
    conflict()
    (desk.folder / "bad").write_text("{")
    for words, said in (
        (["show", "r1:order.9"], "no such review; there are: r1:order.1 (open)"),
        (["show", "zz"], "no such run"),
        (["accept", "r1", "--digest", "sha256:0000"], "nobody sent"),
        (["accept", "r1", "--digest", "sha256:"], "several results begin so"),
        (["supply", "r1", desk.folder / "bad"], "not JSON"),
        (["accept", "r1"], "--digest"),
        (["reject", "r1", "--reason", "x" * 3000], "reason"),
    ):
        done = call("review", *words)
        assert (done.code, done.out) == (2, ""), words
        assert said in done.err, words
    assert states(call)["order"] == "needs_review"


@pytest.mark.usefixtures("worker")
def test_what_had_started_from_the_doubtful_result_is_shown_and_run_again(
    call: Call, desk: Desk, redis_url: str
) -> None:
    team = desk.team(order={"external": True}, quick={"requires": ["order"]}, later={"external": True})
    call("submit", team, "--id", "r1")
    (desk.folder / "one").write_text(json.dumps(ONE))
    call("report-task", "r1", "order", "completed", "--payload", desk.folder / "one", "--key", "k")
    until(lambda: states(call)["quick"] == "succeeded", "quick has succeeded")
    (desk.folder / "other").write_text(json.dumps(OTHER))
    call("report-task", "r1", "order", "completed", "--payload", desk.folder / "other", "--key", "k")
    view = call("review", "show", "r1", "--json").json
    assert view["tainted"] == [{"task": "quick", "state": "succeeded"}]
    assert "Started from the doubtful result: quick (succeeded)" in call("review", "show", "r1").out
    call("report-task", "r1", "later", "completed")
    assert call("status", "r1", "--json").json["status"] == "needs_review"
    assert call("review", "accept", "r1", "--digest", digest(OTHER), "--tainted", "rerun").code == 0
    assert call("watch", "r1").out == "completed\n"
    attempts = call("report", "r1", "--json").json["tasks"]["quick"]["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["succeeded", "succeeded"]


def test_nothing_that_a_payload_holds_can_hide_or_forge(call: Call, conflict: Conflict, desk: Desk) -> None:
    conflict()
    hidden = Path(desk.folder / "hidden")
    hidden.write_text(json.dumps({"total": 10, "lines": ["a", "b\u202e\x1b[2J"]}, ensure_ascii=True))
    call("report-task", "r1", "order", "completed", "--payload", hidden, "--key", "k")
    text = call("review", "show", "r1").out
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "b\\u202e\\u001b[2J" in text


def test_a_run_that_was_kept_is_read_and_decided(desk: Desk) -> None:
    """An outside system contradicts itself while `crewline run` plays; the decision comes when it has parked."""
    process = desk.start(desk.team(order={"external": True}, gated={"requires": ["order"]}), "--id", "r1")
    read_until(process, "order waits for its outside system")
    contradict_local(desk, "one", ONE)
    read_until(process, "gated running")
    contradict_local(desk, "other", OTHER)
    desk.gate.touch()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert "  crewline review show r1:order.1" in err
    shown = desk.call("review", "show", "r1", "--json")
    assert shown.returncode == 0, shown.stderr
    view = json.loads(shown.stdout)
    assert (view["run_status"], view["tainted"]) == (
        "needs_review",
        [{"task": "gated", "state": "succeeded"}],
    )
    assert json.loads(desk.call("status", "r1", "--json").stdout)["status"] == "needs_review"
    assert "crewline review show r1:order.1" in desk.call("explain", "-").stdout
    rejected = desk.call("review", "reject", "r1:order.1")
    assert (rejected.returncode, rejected.stdout) == (0, "critical_failure\n"), rejected.stderr
    assert desk.report("r1")["status"] == "critical_failure"
    assert not (desk.folder / ".crewline" / "r1" / "redis").exists(), "it has ended"
    assert desk.is_clean()


def contradict_local(desk: Desk, name: str, payload: Any) -> None:
    """Reports the order of a run that plays in this folder."""
    (desk.folder / name).write_text(json.dumps(payload))
    words = (
        "report-task",
        "r1",
        "order",
        "completed",
        "--payload",
        name,
        "--key",
        "k",
        "--redis",
        address(desk),
    )
    done = desk.call(*words)
    assert done.returncode == 0, done.stderr


def address(desk: Desk) -> str:
    """Where the Redis of the run that plays is."""
    return (desk.folder / ".crewline" / "r1" / "address").read_text()
