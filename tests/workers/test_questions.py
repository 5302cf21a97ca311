"""What a handler says is stored and answered, whatever happens on the way: lost answers, cancels, lost leases."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from coordinator.wire import channels
from coordinator.wire.grants import Answer, Grant
from tests.workers import durable_handlers as durable
from tests.workers.conftest import Start
from tests.workers.peer import ROLE, Peer
from workers.attempt import Attempt
from workers.link import Link
from workers.modes import questions
from workers.modes.questions import Question

HANDLERS = Path(durable.__file__)


@pytest.fixture
def link(redis: Redis, namespace: str) -> Link:
    return Link(redis, namespace, [ROLE], "w1")


@pytest.fixture
def attempt() -> Attempt:
    now = int(time.time() * 1000)
    grant = Grant(
        run="r1", task="a", attempt=1, lease="L", capability="c", heartbeat_ms=30_000, timeout_at=0, now=now,
        output_bytes=100,
    )  # fmt: skip
    return Attempt(ROLE, "w1", grant, time.monotonic(), time.monotonic())


def answer(redis: Redis, namespace: str, request: str, **more: Any) -> None:
    text = json.dumps({"v": 1, "kind": "reply", "request": request, "status": "applied", **more})
    redis.rpush(f"{channels.reply(namespace, ROLE, 'w1')}:{request}", text)


def test_a_lost_answer_is_asked_for_again(
    redis: Redis, namespace: str, link: Link, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "ASK_AGAIN_S", 0.01)
    question = Question(link, attempt, "action", {"key": "k", "payload": "", "again": 0})
    assert not question.step(0.02)
    assert not question.step(0.02)
    entries = redis.xrange(channels.inbox(namespace, ROLE))
    assert len(entries) >= 2
    assert len({fields[b"request"] for _, fields in entries}) == 1, "the same question"
    answer(redis, namespace, entries[0][1][b"request"].decode(), word="action_started")
    assert question.step(1)
    assert isinstance(question.message, Answer)
    assert question.message.word == "action_started"


def test_what_must_only_be_stored_waits_for_no_answer(
    redis: Redis, namespace: str, link: Link, attempt: Attempt
) -> None:
    question = Question(
        link, attempt, "action_end", {"key": "k", "state": "confirmed", "payload": "1"}, False
    )
    assert question.step(0)
    [(_, fields)] = redis.xrange(channels.inbox(namespace, ROLE))
    assert (fields[b"kind"], fields[b"reply_to"]) == (b"action_end", b"")


def test_a_lease_that_is_gone_ends_the_attempt(
    redis: Redis, namespace: str, link: Link, attempt: Attempt
) -> None:
    question = Question(link, attempt, "spawn", {"key": "k", "child": "{}", "background": 0})
    question.step(0.01)
    [(_, fields)] = redis.xrange(channels.inbox(namespace, ROLE))
    answer(redis, namespace, fields[b"request"].decode(), status="refused", word="stale_lease")
    assert question.step(1)
    assert attempt.cancel_reason == "stale_lease"


def test_an_answer_that_cannot_be_read_is_a_refusal(
    redis: Redis, namespace: str, link: Link, attempt: Attempt
) -> None:
    question = Question(link, attempt, "spawn", {"key": "k", "child": "{}", "background": 0})
    question.step(0.01)
    [(_, fields)] = redis.xrange(channels.inbox(namespace, ROLE))
    redis.rpush(fields[b"reply_to"], b"nonsense")
    assert question.step(1)
    assert isinstance(question.message, Answer)
    assert question.message.status == "refused"


@pytest.mark.parametrize("mode", ["fork", "inline"])
@pytest.mark.parametrize("capability", ["once", "once_async"])
def test_no_effect_begins_after_a_cancel(
    peer: Peer, start_worker: Start, tmp_path: Path, mode: str, capability: str
) -> None:
    """The coordinator does not answer; then it cancels: nothing was done, and that is said (C-15)."""
    task = {"heartbeat_ms": 3_000, "input": {"dir": str(tmp_path)}}
    peer.task("t", capability, **task)
    start_worker("--mode", mode, handlers=HANDLERS)
    peer.launch("t")
    start = peer.wait("start")
    assert peer.wait("action").key == "pay"
    peer.cancel(start)
    assert peer.wait("action_end").state == "failed"
    assert peer.wait("end").outcome == "canceled"
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("mode", ["fork", "inline"])
def test_a_parent_that_waits_frees_its_worker(
    peer: Peer, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    peer.task("p", "lead", input={})
    peer.task("next", "fails", input={})
    peer.child_state = "queued"
    start_worker("--mode", mode, handlers=HANDLERS)
    peer.launch("p", "next")
    assert peer.wait("end", task="p").outcome == "children"
    assert peer.wait("end", task="next").outcome == "permanent"
    assert peer.count("spawn", "p") == 4, "three are made, and the first one is looked at once more"
