"""Inbox entries and messages as they stand on the wire: what is said is read back, what cannot be read is known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.wire import channels, grants, reports

NS, ROLE, WORKER = "crewline", "clerk", "host.1.ab"
OWN = channels.reply(NS, ROLE, WORKER)
BASE = {"run": "r1", "task": "a", "attempt": 1, "worker": WORKER}
LEASED = {**BASE, "lease": "x"}


def raw(entry: reports.Entry) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for name, value in entry.fields().items()}


@pytest.mark.parametrize("entry", [
    reports.Start(**BASE, reply_to=OWN, request="1"),
    reports.Renew(**LEASED, progress=1, details="half"),
    reports.End(**LEASED, outcome="succeeded", payload='{"a":"ä"}', tokens=2**53 - 1),
    reports.End(**LEASED, outcome="canceled", error="{}"),
    reports.HandBackReport(**BASE, reason="no_worker"),
    reports.Use(**LEASED, tokens=5, reply_to=f"{OWN}:7", request="7"),
    reports.AskResults(**LEASED, page=0, reply_to=OWN),
])  # fmt: skip
def test_what_a_worker_says_is_read_back(entry: reports.RoleEntry) -> None:
    assert reports.parse_role(NS, ROLE, raw(entry)) == entry


def test_requests_of_clients_are_read_back() -> None:
    reply = channels.client_reply(NS, "q1")
    submit = reports.Submit(run="r1", team="{}", inputs="{}", reply_to=reply, request="q1")
    assert reports.parse_submit(NS, raw(submit)) == submit
    report = reports.ExternalReport(run="r1", task="a", state="no_such_state", reply_to=reply, request="q1")
    assert reports.parse_operate(NS, raw(report)) == report
    signal = reports.Signal(run="r1", signal="enough")
    assert reports.parse_operate(NS, raw(signal)) == signal


def test_c45_an_unknown_failure_class_is_permanent() -> None:
    assert reports.End(**LEASED, outcome="on_fire").outcome == "permanent"


@pytest.mark.parametrize(("name", "value"), [
    ("kind", "zzz"), ("v", "2"), ("run", ""), ("run", "a--b"), ("run", "a b"), ("run", "x" * 129), ("task", ""),
    ("task", "t" * 1025), ("attempt", "0"), ("attempt", "-1"), ("attempt", "true"), ("attempt", "1.5"),
    ("attempt", "9" * 30),
    ("worker", "a:b"), ("worker", "a\nb"), ("lease", ""), ("tokens", "-1"), ("tokens", str(2**53)),
    ("cost_micros", "x"),
    ("retry_after_ms", str(10**12)), ("error", "x" * (2**20 + 1)), ("more", "field"),
    ("reply_to", "crewline:reply:editor:host.1.ab"), ("reply_to", f"{OWN}:other"), ("reply_to", "crewline:run:r1"),
])  # fmt: skip
def test_an_entry_that_cannot_be_read_is_known_and_its_words_are_not_repeated(name: str, value: str) -> None:
    entry = {**reports.End(**LEASED, outcome="succeeded").fields(), name: value}
    with pytest.raises(reports.MalformedEntry) as caught:
        reports.parse_role(NS, ROLE, {key.encode(): text.encode() for key, text in entry.items()})
    assert len(str(caught.value)) < 200


def test_no_answer_goes_to_a_list_of_somebody_else() -> None:
    entry = reports.Signal(run="r1", signal="x", reply_to=channels.client_reply(NS, "mine"), request="other")
    with pytest.raises(reports.MalformedEntry):
        reports.parse_operate(NS, raw(entry))


@given(st.dictionaries(st.binary(max_size=20), st.binary(max_size=40), max_size=8))
def test_whatever_stands_in_an_inbox_it_is_read_or_malformed(entry: dict[bytes, bytes]) -> None:
    for parse in (reports.parse_submit, reports.parse_operate):
        with pytest.raises(reports.MalformedEntry):
            parse(NS, entry)
    with pytest.raises(reports.MalformedEntry):
        reports.parse_role(NS, ROLE, {b"kind": b"end", **entry, b"v": b"3"})


def test_messages_are_read_exactly() -> None:
    big = 15947634569000323 * 10**9
    grant = {
        "v": 1, "kind": "grant", "request": "1", "run": "r1", "task": "a", "attempt": 1, "lease": "x",
        "capability": "c",
        "heartbeat_ms": 1000, "timeout_at": 0, "now": 5, "output_bytes": 10, "input": {"n": big},
        "results": {"b": [1.0, 1]},
        "something_newer": True,
    }  # fmt: skip
    read = grants.parse_message(json.dumps(grant))
    assert isinstance(read, grants.Grant)
    assert json.dumps([read.input, read.results]) == json.dumps([{"n": big}, {"b": [1.0, 1]}])
    answer = grants.parse_message(
        b'{"v":1,"kind":"reply","request":"","status":"refused","word":"over_budget"}'
    )
    assert isinstance(answer, grants.Answer)
    assert (answer.status, answer.word) == ("refused", "over_budget")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"v":2,"kind":"reply","status":"x"}', b'{"v":1,"kind":"zzz"}', b"\xff"]
)
def test_a_message_that_cannot_be_read_is_malformed(text: bytes) -> None:
    with pytest.raises(grants.MalformedMessage):
        grants.parse_message(text)
