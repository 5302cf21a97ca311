"""Cases E: idempotent results (C-27, C-29, C-32, C-33). Digests and JSON (C-28, C-30, C-31): tests/unit/wire."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.machine.commands import EndAttempt, ResignLead, TakeLead
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadPayloads
from coordinator.wire.digest import canonical, parse_json
from coordinator.wire.digest import digest as digest_of
from tests.support.builders import digest, task
from tests.support.replay import Lease, Replay


def send(replay: Replay, lease: Lease, payload: str) -> Any:
    """A success with the very text that a worker wrote; its digest is made where the coordinator makes it."""
    value = parse_json(payload.encode())
    return replay.apply(
        EndAttempt(
            now=replay.now, **lease.who, worker=lease.worker, outcome="succeeded", payload=canonical(value),
            digest=digest_of(value), facts="[]", error="", retry_after_ms=0, tokens=0, cost_micros=0,
        )
    )  # fmt: skip


def test_C_27_the_same_key_with_another_body_freezes_the_task(replay: Replay) -> None:
    replay.submit(task("a", key="k"), task("b", requires=["a"]), task("c", requires=["b"]))
    lease = replay.claim("a")
    words = [replay.result(lease, {"v": v}).word for v in (1, 2)]
    assert words == ["", "result_conflict_detected"]
    assert replay.states() == {"a": "needs_review", "b": "blocked", "c": "blocked"}
    frozen = replay.task("a")
    assert (frozen.get("digest", ""), frozen["result_trust"]) == ("", "conflicted")
    version = replay.run()["state_version"]
    words = [replay.result(lease, {"v": v}).word for v in (1, 2)]
    assert words == ["duplicate_result_ignored"] * 2
    assert (replay.run()["state_version"], replay.status()) == (version, "needs_review")
    evidence = replay.ledger("conflicts")
    assert [entry["arrival"] for entry in evidence[:2]] == [1, 2]
    assert [entry["digest"] for entry in evidence[:2]] == [digest({"v": 1}), digest({"v": 2})]
    assert all(int(entry["state_version"]) > 0 and entry["worker"] == "w1" for entry in evidence)
    texts = replay.machine.read(ReadPayloads("r1", (digest({"v": 1}), digest({"v": 2}))))
    assert texts == ['{"v":1}', '{"v":2}']


@pytest.mark.parametrize(
    "payload",
    [
        '{"id":15947634569000323}',
        '{"id":9223372036854775807}',
        '{"id":-9007199254740993}',
        '{"n":18446744073709551616}',
    ],
)
def test_C_29_long_integers_come_back_as_they_were_sent(replay: Replay, payload: str) -> None:
    replay.submit(task("a", key="k"), task("z", external=1))
    lease = replay.claim("a")
    send(replay, lease, payload)
    stored = replay.task("a")["digest"]
    assert replay.machine.read(ReadPayloads("r1", (stored,))) == [payload]
    assert send(replay, lease, payload).word == "duplicate_result_ignored"
    last_digit = payload[:-2] + str((int(payload[-2]) + 1) % 10) + "}"
    assert send(replay, lease, last_digit).word == "result_conflict_detected"


def test_C_29_amounts_and_times_are_exact_beyond_2_to_the_40(replay: Replay) -> None:
    large = 2**52 + 1
    replay.submit(task("a", tokens=large), limits={"tokens": 2**53 - 1})
    assert replay.result(replay.claim("a"), 1, tokens=large).run_status == "completed"
    assert replay.run()["used_tokens"] == str(large)


def test_C_32_who_no_longer_owns_a_lease_cannot_free_it(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=3, backoff_ms=0))
    first = replay.claim("a", "w1")
    replay.tick(31)
    replay.reap()
    second = replay.claim("a", "w2")
    assert replay.hand_back(first).word == "stale_lease"
    assert replay.beat(first).word == "stale_lease"
    assert replay.ask("a", worker="w3").word == "wrong_state", "w2 still holds it"
    assert replay.result(second, 1).run_status == "completed"


def test_C_32_a_leader_that_lost_the_lead_cannot_give_it_away(replay: Replay) -> None:
    old = replay.machine
    old.apply(ResignLead(now=replay.now, holder="first"))
    replay.machine = Machine(replay.redis)
    replay.take_lead("second")
    assert old.apply(ResignLead(now=replay.now, holder="first")).word == "old_epoch"
    third = Machine(replay.redis)
    assert third.apply(TakeLead(now=replay.now, holder="third", ttl_ms=1_000)).word == "old_epoch"
    assert replay.submit(task("a")) == "running"


@pytest.mark.parametrize("key", ["", "k"])
def test_C_33_two_honest_answers_to_one_step(replay: Replay, key: str) -> None:
    """By attempt: the live lease's is accepted, the other kept as late. By task: a person decides. Never the last."""
    replay.submit(task("a", key=key, max_attempts=2, backoff_ms=0))
    one = replay.claim("a", "w1")
    replay.tick(31)
    replay.reap()
    two = replay.claim("a", "w2")
    assert replay.result(one, {"text": "A"}).word == "late_ignored"
    second = replay.result(two, {"text": "B"})
    if key:
        assert (second.word, replay.status()) == ("result_conflict_detected", "needs_review")
        assert {entry["digest"] for entry in replay.ledger("conflicts")} == {
            digest({"text": v}) for v in "AB"
        }
    else:
        assert (second.word, replay.task("a")["digest"]) == ("", digest({"text": "B"}))
        assert [entry["source"] for entry in replay.ledger("late")] == ["w1"]
