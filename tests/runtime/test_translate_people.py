"""What operators and reviewers say, and what workers say of side effects: entries in, commands applied, answers out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from redis import Redis

from coordinator.machine.reads import ReadPayloads, ReadRecords
from coordinator.runtime.loop import Bounds
from coordinator.runtime.translation.people import RAISABLE
from coordinator.wire import channels
from coordinator.wire.digest import digest
from coordinator.wire.reports import (
    ActionDecide,
    ActionDoubt,
    ActionEnd,
    ActionStart,
    AnswerQuestion,
    Cancel,
    Decide,
    Entry,
    Resume,
)
from tests.runtime.harness import NAMESPACE, ROLE, WORKER, Stepped, team

RULE = {"result": {"task": "a", "at": "/n", "equals": 2}}
CONFLICTING = team(
    {
        "a": {"idempotency_key": "k", "output_schema": {"type": "object"}},
        "x": {"external": True},
        "b": {"requires": ["a", "x"], "when": RULE},
    }
)


def operate(stepped: Stepped, entry: Entry) -> dict[str, Any]:
    return stepped.ask("operate", entry)


def records(stepped: Stepped, kind: str, run: str = "r1") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stepped.machine.read(ReadRecords(run, kind))
    return found


def leased(
    stepped: Stepped,
    kind: type[ActionStart] | type[ActionEnd] | type[ActionDoubt],
    attempt: int = 1,
    **more: Any,
) -> dict[str, Any]:
    """What the holder of the lease of task a says about an action; gives the answer."""
    key = channels.reply(NAMESPACE, ROLE, WORKER)
    head = {"run": "r1", "task": "a", "attempt": attempt, "worker": WORKER, "reply_to": key, "request": "x"}
    stepped.say(kind.model_validate({**head, "lease": stepped.leases["r1", "a"], **more}))
    stepped.settle()
    return stepped.answer(key)


@pytest.fixture
def conflict(stepped: Stepped) -> dict[str, Any]:
    """A run whose task a has two results under one key; gives the review."""
    stepped.submit(CONFLICTING)
    stepped.start("a")
    lease = stepped.leases["r1", "a"]
    stepped.end("a", {"n": 1})
    stepped.leases["r1", "a"] = lease
    stepped.end("a", {"n": 2})
    assert stepped.state("a") == "needs_review"
    [review] = records(stepped, "reviews")
    return review


def decide(stepped: Stepped, conflict: dict[str, Any], decision: str, **more: Any) -> dict[str, Any]:
    entry = {"run": "r1", "review": conflict["id"], "version": conflict["state_version"], "source": "ann"}
    return stepped.ask("review", Decide.model_validate({**entry, "decision": decision, **more}))


# -- reviews ---------------------------------------------------------------------------------------------


def test_an_accepted_result_brings_its_facts(stepped: Stepped, conflict: dict[str, Any]) -> None:
    """The payload is known by its digest; the rule of b asks what stands in it."""
    answer = decide(stepped, conflict, "accept", digest=digest({"n": 2}))
    stepped.report("x", "completed")
    assert (answer["status"], stepped.state("a"), stepped.state("b")) == ("applied", "succeeded", "queued")


def test_another_accepted_result_has_other_facts(stepped: Stepped, conflict: dict[str, Any]) -> None:
    decide(stepped, conflict, "accept", digest=digest({"n": 1}))
    stepped.report("x", "completed")
    assert (stepped.state("a"), stepped.state("b")) == ("succeeded", "skipped")


def test_a_supplied_result_is_kept_and_has_facts(stepped: Stepped, conflict: dict[str, Any]) -> None:
    answer = decide(stepped, conflict, "supply", payload='{"n": 2, "by": "hand"}')
    stepped.report("x", "completed")
    assert (answer["status"], stepped.state("b")) == ("applied", "queued")
    [kept] = stepped.machine.read(ReadPayloads("r1", (stepped.task("a")["digest"],)))
    assert kept == '{"n": 2, "by": "hand"}'


@pytest.mark.parametrize("payload", ["[]", "{", ""])
def test_a_supplied_result_is_held_to_its_schema(
    stepped: Stepped, conflict: dict[str, Any], payload: str
) -> None:
    answer = decide(stepped, conflict, "supply", payload=payload)
    assert (answer["word"], answer["detail"][:8]) == ("malformed", "payload:")
    assert stepped.state("a") == "needs_review"


@pytest.mark.parametrize(("decision", "state"), [("reject", "failed"), ("rerun", "queued")])
def test_a_result_may_be_rejected_or_made_again(
    stepped: Stepped, conflict: dict[str, Any], decision: str, state: str
) -> None:
    assert decide(stepped, conflict, decision, reason="both wrong")["status"] == "applied"
    assert stepped.state("a") == state
    [review] = records(stepped, "reviews")
    assert (review["decision"], review["source"], review["reason"]) == (decision, "ann", "both wrong")


def test_of_two_deciders_one_wins_and_the_other_is_told(stepped: Stepped, conflict: dict[str, Any]) -> None:
    assert decide(stepped, conflict, "accept", digest=digest({"n": 1}))["status"] == "applied"
    assert decide(stepped, conflict, "reject")["word"] == "already_decided"


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"review": "a.9"}, "unknown_review"),
        ({"run": "r9"}, "unknown_run"),
        ({"version": 1}, "stale_version"),
        ({"digest": digest({"n": 3})}, "unknown_digest"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused(
    stepped: Stepped, conflict: dict[str, Any], more: dict[str, Any], word: str
) -> None:
    assert decide(stepped, conflict, "accept", **{"digest": digest({"n": 2}), **more})["word"] == word
    assert stepped.state("a") == "needs_review"


@pytest.mark.parametrize(
    "change", [{"kind": "accept"}, {"decision": "perhaps"}, {"version": "x"}, {"tainted": "burn"}]
)
def test_i8_a_decision_that_cannot_be_read_goes_to_the_ledger(
    stepped: Stepped, change: dict[str, str]
) -> None:
    fields = {"v": "1", "kind": "decide", "run": "r1", "review": "a.1", "decision": "reject", "version": "1"}
    stepped.put(channels.scope_inbox(NAMESPACE, "review"), {**fields, **change})
    stepped.settle()
    assert stepped.inbox_lengths() == {}
    assert len(stepped.ledger()) == 1


# -- operators -------------------------------------------------------------------------------------------


def test_a_run_and_a_task_can_be_canceled(stepped: Stepped) -> None:
    stepped.submit(team({"a": {}, "b": {"required": False}}))
    assert operate(stepped, Cancel(run="r1", task="b", reason="x", ask="1"))["run_status"] == "running"
    assert operate(stepped, Cancel(run="r1", task="b", reason="x", ask="1"))["status"] == "repeated"
    assert stepped.state("b") == "canceled"
    assert operate(stepped, Cancel(run="r1", reason="x"))["run_status"] == "canceled"
    assert operate(stepped, Cancel(run="r1", reason="x"))["word"] == "run_stopped"


def test_a_question_is_answered_once(stepped: Stepped) -> None:
    stepped.submit(team({"a": {}}))
    stepped.start("a")
    stepped.end("a", {"ask": "which?"}, outcome="missing_input")
    question = stepped.task("a")["question_digest"]
    answer = AnswerQuestion(run="r1", task="a", question=question, payload='{"id": 3}', source="ann")
    assert operate(stepped, answer)["status"] == "applied"
    assert operate(stepped, answer)["status"] == "repeated"
    other = answer.model_copy(update={"payload": '{"id": 4}'})
    assert operate(stepped, other)["word"] == "already_answered"
    assert stepped.start("a", attempt=2)["answer"] == {"id": 3}


def test_an_answer_must_be_json(stepped: Stepped) -> None:
    stepped.submit(team({"a": {}}))
    answer = operate(stepped, AnswerQuestion(run="r1", task="a", payload="three"))
    assert (answer["word"], answer["detail"][:8]) == ("malformed", "payload:")


def test_a_parked_run_goes_on_with_a_higher_limit(stepped: Stepped) -> None:
    stepped.submit(team({"a": {}, "b": {"requires": ["a"]}}, limits={"step_budget": 1}, on_limit="pause"))
    stepped.work("a")
    assert stepped.run()["status"] == "paused"
    assert operate(stepped, Resume(run="r1", raises='[["limit_step_budget",1,1]]'))["run_status"] == "running"
    assert stepped.run()["limit_step_budget"] == "2"
    stepped.work("b")
    assert operate(stepped, Resume(run="r1"))["word"] == "run_stopped"


def test_every_limit_can_be_raised(stepped: Stepped) -> None:
    stepped.submit(team({"a": {}, "b": {"requires": ["a"]}}, limits={"step_budget": 1}, on_limit="pause"))
    stepped.work("a")
    for field in sorted(RAISABLE - {"limit_step_budget"}):
        assert (
            operate(stepped, Resume(run="r1", raises=json.dumps([[field, 9_000_000, 0]])))["status"]
            == "applied"
        )
        assert stepped.run()[field] == "9000000"
        assert stepped.run()["status"] == "paused"


@pytest.mark.parametrize(
    "raises",
    ["", "{}", "[1]", '[["limit_tokens",1]]', '[["tokens",1,0]]', '[["limit_tokens",-1,1]]',
     '[["limit_tokens",true,0]]', '[["limit_tokens",1.5,0]]', '[["limit_tokens",1,2]]',
     '[["limit_tokens",9007199254740992,0]]'],
)  # fmt: skip
def test_raises_that_cannot_be_read_are_refused(stepped: Stepped, raises: str) -> None:
    stepped.submit(team({"a": {}}))
    answer = operate(stepped, Resume(run="r1", raises=raises))
    assert (answer["word"], answer["detail"][:6]) == ("malformed", "raises")


# -- side effects ----------------------------------------------------------------------------------------


def test_an_action_is_started_confirmed_and_replayed(stepped: Stepped) -> None:
    stepped.submit(team({"a": {"max_attempts": 2, "backoff": "0s"}}))
    stepped.start("a")
    begun = leased(stepped, ActionStart, key="charge", payload='{"amount": 5}')
    assert (begun["word"], begun["receipt"]) == ("action_started", None)
    ended = leased(stepped, ActionEnd, key="charge", state="confirmed", payload='{"no": 1}')
    assert ended["status"] == "applied"
    stepped.end("a", outcome="transient")
    stepped.start("a", attempt=2)
    again = leased(stepped, ActionStart, attempt=2, key="charge", payload='{"amount": 5}')
    assert (again["word"], again["receipt"]) == ("action_confirmed", {"no": 1})


def test_an_action_that_nobody_confirmed_is_unknown_and_a_person_may_decide(stepped: Stepped) -> None:
    stepped.submit(team({"a": {"max_attempts": 2, "backoff": "0s"}}))
    stepped.start("a")
    leased(stepped, ActionStart, key="charge", payload='{"amount": 5}')
    stepped.end("a", outcome="transient")
    stepped.start("a", attempt=2)
    unknown = leased(stepped, ActionStart, attempt=2, key="charge")
    assert (unknown["word"], unknown["details"]) == ("action_unknown", {"amount": 5})
    assert leased(stepped, ActionDoubt, attempt=2, key="charge", tokens=3)["status"] == "applied"
    assert stepped.state("a") == "needs_review"
    decided = ActionDecide(
        run="r1", task="a", key="charge", state="confirmed", payload='{"no": 7}', source="ann"
    )
    assert operate(stepped, decided)["status"] == "applied"
    stepped.start("a", attempt=3)
    assert leased(stepped, ActionStart, attempt=3, key="charge")["receipt"] == {"no": 7}


def test_an_unknown_action_may_be_said_to_be_repeatable(stepped: Stepped) -> None:
    stepped.submit(team({"a": {"max_attempts": 2, "backoff": "0s"}}))
    stepped.start("a")
    leased(stepped, ActionStart, key="mail")
    stepped.end("a", outcome="transient")
    stepped.start("a", attempt=2)
    assert leased(stepped, ActionStart, attempt=2, key="mail", again=1)["word"] == "action_started"


def test_a_receipt_must_be_json(stepped: Stepped) -> None:
    stepped.submit(team({"a": {}}))
    stepped.start("a")
    leased(stepped, ActionStart, key="charge")
    answer = leased(stepped, ActionEnd, key="charge", state="confirmed", payload="no 1")
    assert (answer["word"], answer["detail"][:8]) == ("malformed", "payload:")
    [action] = records(stepped, "actions")
    assert action["state"] == "started"


# -- what is due -----------------------------------------------------------------------------------------


def test_a_grace_that_has_passed_is_noticed(stepped: Stepped, redis: Redis) -> None:
    redis.hset(f"{NAMESPACE}:settings", "cancel_grace_ms", "500")
    stepped.submit(team({"a": {}}))
    stepped.start("a")
    operate(stepped, Cancel(run="r1", reason="x"))
    stepped.settle(499)
    assert [entry["outcome"] for entry in records(stepped, "cancellations")] == ["requested"]
    stepped.settle(1)
    assert [entry["outcome"] for entry in records(stepped, "cancellations")] == ["unconfirmed"]


def test_a_new_leader_gives_each_live_lease_one_full_heartbeat(stepped: Stepped) -> None:
    """The renewals of the time without a leader lie in the inbox, or could not be sent."""
    stepped.submit(team({"a": {"heartbeat": "10s", "max_attempts": 2, "backoff": "0s"}}))
    stepped.start("a")
    stepped.now += 60_000
    stepped.restart()
    stepped.settle()
    assert stepped.state("a") == "running"
    stepped.settle(9_000)
    assert stepped.state("a") == "running"
    stepped.settle(1_100)
    assert "attempt_lost" in stepped.kinds()


def test_a_new_leader_fires_nothing_before_it_has_read_the_inboxes(redis: Redis) -> None:
    """The end of an attempt whose timeout has passed lies behind more entries than one step reads."""
    stepped = Stepped(redis, Bounds(page=2, pages=1))
    stepped.submit(team({"a": {"timeout": "10s"}, "x": {"external": True}}))
    stepped.start("a")
    for _ in range(10):
        stepped.put(channels.inbox(NAMESPACE, ROLE), {"kind": "noise"})
    stepped.restart()
    stepped.now += 60_000
    stepped.end("a", {"n": 1})
    assert stepped.state("a") == "succeeded"
