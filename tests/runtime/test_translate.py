"""Entries: what each kind becomes, what is refused, and what a payload must be."""

from __future__ import annotations

import json

import pytest

from coordinator.runtime.translation.payloads import LONGEST_TEXT
from coordinator.wire import channels
from coordinator.wire.reports import End, HandBackReport, Start
from tests.runtime.harness import NAMESPACE, ROLE, WORKER, Stepped, team

ONE = team({"a": {"output_bytes": 100, "output_schema": {"type": "object", "required": ["answer"]}}})
LOOSE = team({"a": {"output_bytes": 1_000_000}})
INBOX = channels.inbox(NAMESPACE, ROLE)
START = {"v": "1", "kind": "start", "run": "r1", "task": "a", "attempt": "1", "worker": WORKER}


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b'{"answer": NaN}', "NaN"),
        (b'{"answer": 1e999}', "beyond binary64"),
        (b'{"answer": "\\ud800"}', "surrogate"),
        (b'{"answer": 1, "answer": 1}', "stands twice"),
        (b"[" * 65, "nested"),
        (b'{"answer": "' + b"x" * 100 + b'"}', "more than output_bytes (100)"),
        (b'{"text": 1}', "answer"),
        (b"null", "object"),
    ],
)
def test_c30_what_is_no_result_ends_as_invalid_output(stepped: Stepped, payload: bytes, said: str) -> None:
    stepped.submit(ONE)
    stepped.start("a")
    stepped.end("a", payload)
    task = stepped.task("a")
    assert (task["state"], task.get("digest", "")) == ("failed", "")
    error = json.loads(task["error"])
    assert (error["class"], error["type"]) == ("invalid_output", "InvalidOutput")
    assert said in error["message"]


def test_c56_a_result_of_exactly_output_bytes_is_one(stepped: Stepped) -> None:
    stepped.submit(ONE)
    stepped.start("a")
    payload = b'{"answer":"' + b"x" * 87 + b'"}'
    assert len(payload) == 100
    stepped.end("a", payload)
    assert stepped.state("a") == "succeeded"


def test_size_is_counted_in_bytes_of_utf8(stepped: Stepped) -> None:
    stepped.submit(ONE)
    stepped.start("a")
    stepped.end("a", ('{"answer":"' + "é" * 44 + '"}').encode())
    assert stepped.state("a") == "failed"


@pytest.mark.parametrize(
    "payload",
    [
        b'{"id": 15947634569000323}',
        b'{"id": 9223372036854775807}',
        b'{"n": [18446744073709551616, 0.10, -0.0, {}]}',
        b"[]",
        b"{}",
        '{"ключ": "é\\u00e9"}'.encode(),
    ],
)
def test_c29_payloads_come_through_byte_for_byte(stepped: Stepped, payload: bytes) -> None:
    stepped.submit(team({"a": {}, "b": {"requires": ["a"]}}))
    stepped.start("a")
    stepped.end("a", payload)
    key = channels.reply(NAMESPACE, ROLE, WORKER)
    stepped.say(Start(run="r1", task="b", attempt=1, worker=WORKER, reply_to=key, request="s"))
    stepped.settle()
    raw = stepped.redis.lpop(key)
    assert isinstance(raw, bytes)
    assert payload in raw


def test_the_error_document_keeps_what_is_known_and_bounded(stepped: Stepped) -> None:
    stepped.submit(LOOSE)
    stepped.start("a")
    given = {
        "class": "permission",
        "type": "KeyError",
        "message": "m" * 100_000,
        "where": "x.py:3",
        "secret": "no",
    }
    stepped.end("a", outcome="permanent", error=json.dumps(given))
    error = json.loads(stepped.task("a")["error"])
    assert set(error) == {"class", "type", "message", "where", "traceback"}
    assert (error["class"], error["type"], error["where"]) == ("permanent", "KeyError", "x.py:3")
    assert len(error["message"]) == LONGEST_TEXT
    assert error["message"].endswith("[…]")


@pytest.mark.parametrize("text", ["not json", "[1]", "3", '{"message": NaN}'])
def test_an_error_that_is_no_document_becomes_one(stepped: Stepped, text: str) -> None:
    stepped.submit(LOOSE)
    stepped.start("a")
    stepped.end("a", outcome="permanent", error=text)
    error = json.loads(stepped.task("a")["error"])
    assert error["class"] == "permanent"
    assert error["message"]


def test_an_unknown_class_is_permanent(stepped: Stepped) -> None:
    stepped.submit(team({"a": {"max_attempts": 3}}))
    stepped.start("a")
    entry = End(
        run="r1", task="a", attempt=1, worker=WORKER, lease=stepped.leases["r1", "a"], outcome="permanent"
    )
    stepped.put(INBOX, entry.fields() | {"outcome": "cosmic"})
    stepped.settle()
    assert stepped.state("a") == "failed"


def test_the_question_of_a_missing_input_is_kept(stepped: Stepped) -> None:
    stepped.submit(LOOSE)
    stepped.start("a")
    stepped.end("a", {"ask": "which order?"}, outcome="missing_input")
    task = stepped.task("a")
    assert (task["state"], task["waits_for"]) == ("awaiting", "input")
    assert task["question_digest"].startswith("sha256:")


def test_a_question_that_is_no_json_is_invalid_output(stepped: Stepped) -> None:
    stepped.submit(LOOSE)
    stepped.start("a")
    stepped.end("a", b"which?", outcome="missing_input")
    assert json.loads(stepped.task("a")["error"])["class"] == "invalid_output"


def test_an_attempt_can_be_handed_back(stepped: Stepped) -> None:
    stepped.submit(LOOSE)
    stepped.say(HandBackReport(run="r1", task="a", attempt=1, worker=WORKER, reason="draining"))
    stepped.settle()
    assert [job.attempt for job in stepped.jobs()] == [1, 2]
    assert stepped.run().get("used_step_budget", "0") == "0"


def test_an_external_result_is_held_to_its_schema(stepped: Stepped) -> None:
    document = team({"x": {"external": True, "output_schema": {"type": "object"}}, "y": {"external": True}})
    stepped.submit(document)
    assert stepped.report("x", "completed", payload="[]")["status"] == "applied"
    error = json.loads(stepped.task("x")["error"])
    assert (stepped.state("x"), error["class"]) == ("failed", "invalid_output")


def test_an_external_task_may_complete_without_a_payload(stepped: Stepped) -> None:
    stepped.submit(team({"x": {"external": True}}))
    assert stepped.report("x", "completed")["run_status"] == "completed"
    assert stepped.task("x")["digest"].startswith("sha256:")


def test_a_report_right_behind_its_submit_finds_the_team(stepped: Stepped) -> None:
    """Both entries stand in the same page; the report's payload is judged by the new run's schema."""
    document = team({"x": {"external": True, "output_schema": {"type": "object"}}})
    fields = {"v": "1", "kind": "submit", "run": "r1", "team": json.dumps(document), "inputs": "{}"}
    stepped.put(channels.scope_inbox(NAMESPACE, "submit"), fields)
    fields = {"v": "1", "kind": "report", "run": "r1", "task": "x", "state": "completed", "payload": "[]"}
    stepped.put(channels.scope_inbox(NAMESPACE, "operate"), fields)
    stepped.step()
    assert stepped.inbox_lengths() == {}
    assert stepped.events()[-1]["kind"] != "task_succeeded"


def test_a_signal_reaches_the_rules(stepped: Stepped) -> None:
    rule = {"name": "enough", "ends": "completed", "rule": {"signal": "enough"}}
    stepped.submit(team({"a": {}}, stop_when=[rule]))
    assert stepped.signal("other")["run_status"] == "running"
    assert stepped.signal("enough")["run_status"] == "completed"


def test_c12_a_cycle_is_refused_and_named(stepped: Stepped) -> None:
    answer = stepped.submit(team({"a": {"requires": ["b"]}, "b": {"requires": ["a"]}, "free": {}}))
    assert (answer["status"], answer["word"]) == ("refused", "malformed")
    assert "a" in answer["detail"]
    assert "cycle" in answer["detail"]
    assert stepped.run() == {}
    assert stepped.jobs() == []


def test_wrong_inputs_are_refused_with_the_reason(stepped: Stepped) -> None:
    document = team({"a": {}}, inputs={"order": {"type": "string"}})
    answer = stepped.submit(document, inputs={"order": 3})
    assert (answer["status"], answer["word"]) == ("refused", "malformed")
    assert "order" in answer["detail"]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "dance"},
        {"v": "2"},
        {"attempt": "1.5"},
        {"attempt": "-1"},
        {"attempt": "true"},
        {"attempt": "9" * 30},
        {"run": "no--run"},
        {"run": ""},
        {"worker": "w1:other"},
        {"worker": "*"},
        {"task": ""},
        {"more": "x"},
        {"task": b"\xff\xfe"},
        {b"\xff": "x"},
    ],
)
def test_i8_what_cannot_be_read_goes_to_the_ledger(
    stepped: Stepped, change: dict[str | bytes, str | bytes]
) -> None:
    stepped.submit(LOOSE)
    before = stepped.run()
    stepped.put(INBOX, {**START, **change})
    stepped.settle()
    assert stepped.inbox_lengths() == {}
    [entry] = stepped.ledger()
    assert entry["inbox"] == INBOX
    assert entry["reason"]
    assert stepped.run() == before


def test_the_ledger_keeps_only_the_beginning_of_an_entry(stepped: Stepped) -> None:
    stepped.put(channels.scope_inbox(NAMESPACE, "submit"), {"kind": "x" * 100_000})
    stepped.settle()
    assert len(stepped.ledger()[0]["raw"]) <= 2_000


@pytest.mark.parametrize(
    "reply_to",
    [
        channels.reply(NAMESPACE, "editor", WORKER),
        channels.reply(NAMESPACE, ROLE, "w2"),
        channels.client_reply(NAMESPACE, "s"),
        f"{NAMESPACE}:run:r1",
        f"{NAMESPACE}:epoch",
    ],
)
def test_an_answer_goes_to_the_asker_alone(stepped: Stepped, reply_to: str) -> None:
    """Whoever may write to an inbox must not make the coordinator write elsewhere."""
    stepped.submit(LOOSE)
    kept = stepped.redis.dump(reply_to)
    stepped.put(INBOX, START | {"reply_to": reply_to, "request": "s"})
    stepped.settle()
    assert stepped.ledger()[0]["reason"].startswith("reply_to")
    assert stepped.state("a") == "queued"
    other_worker_of_the_role = channels.reply(NAMESPACE, ROLE, "w2")
    if reply_to != other_worker_of_the_role:
        assert stepped.redis.dump(reply_to) == kept


def test_a_client_is_told_what_was_wrong(stepped: Stepped) -> None:
    key = channels.client_reply(NAMESPACE, "q")
    fields = {"v": "1", "kind": "submit", "run": "r 1", "team": "{}", "request": "q", "reply_to": key}
    stepped.put(channels.scope_inbox(NAMESPACE, "submit"), fields)
    stepped.settle()
    answer = stepped.answer(key)
    assert (answer["word"], answer["detail"][:3]) == ("malformed", "run")


def test_the_review_inbox_is_read_too(stepped: Stepped) -> None:
    """Nothing can be decided yet, but nothing may lie there for ever either."""
    stepped.put(channels.scope_inbox(NAMESPACE, "review"), {"v": "1", "kind": "accept"})
    stepped.settle()
    assert stepped.inbox_lengths() == {}
    assert len(stepped.ledger()) == 1


def test_reports_on_unknown_runs_and_tasks_are_refused(stepped: Stepped) -> None:
    stepped.submit(team({"x": {"external": True}}))
    assert stepped.report("x", "completed", run="r2")["word"] == "unknown_run"
    assert stepped.report("y", "completed")["word"] == "unknown_task"
    assert stepped.report("x", "dancing")["word"] == "unknown_state"
    assert stepped.run().get("reports", "0") == "0"
