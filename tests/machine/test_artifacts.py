"""Artifacts: named outputs outside Redis, recorded once, and what of them is progress (SPEC 4, 8)."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.machine import commands as c
from coordinator.machine.machine import Reply
from coordinator.machine.snapshot import snapshot
from tests.support.builders import task
from tests.support.replay import RUN, Lease, Replay

ONE, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64


@pytest.fixture
def replay(redis: Any) -> Any:
    made = Replay(redis)
    yield made
    made.check()


def record(replay: Replay, held: Lease, name: str, digest: str, **more: Any) -> Reply:
    return replay.apply(
        c.RecordArtifact(
            **{
                "now": replay.now, **held.who, "worker": held.worker, "artifact": name, "digest": digest,
                "size": 5, "url": f"file:///a/{digest}", **more,
            }
        )
    )  # fmt: skip


def test_an_artifact_is_recorded_once_with_where_it_lies(replay: Replay) -> None:
    replay.submit(task("a"))
    lease = replay.claim("a")
    assert record(replay, lease, "log", ONE).status == "applied"
    assert record(replay, lease, "log", ONE).status == "repeated"
    assert record(replay, lease, "log", OTHER).status == "applied", "another content is another artifact"
    assert record(replay, lease, "copy of the log", ONE).status == "applied"
    found = replay.records("artifacts")
    assert sorted((one["name"], one["digest"]) for one in found) == [
        ("copy of the log", ONE), ("log", ONE), ("log", OTHER),
    ]  # fmt: skip
    assert {(one["task"], one["attempt"], one["size"], one["worker"]) for one in found} == {("a", 1, 5, "w1")}
    assert replay.kinds().count("artifact_recorded") == 3
    picture = snapshot(replay.machine, RUN)
    assert picture is not None
    assert picture.artifacts == found


def test_a_new_digest_is_progress_and_a_known_one_is_none(replay: Replay) -> None:
    replay.submit(task("a"), task("b"), limits={"no_progress_ms": 10_000})
    lease, other = replay.claim("a"), replay.claim("b")
    replay.tick(8)
    record(replay, lease, "log", ONE)
    assert replay.run()["progress_at"] == str(replay.now)
    replay.tick(8)
    record(replay, other, "the same", ONE)
    replay.reap()
    assert replay.status() == "running"
    replay.tick(8)
    replay.reap()
    assert replay.status() == "no_progress"


def test_only_the_holder_of_a_live_lease_records(replay: Replay) -> None:
    replay.submit(task("a"))
    lease = replay.claim("a")
    assert record(replay, lease, "log", ONE, lease="stolen").word == "stale_lease"
    assert record(replay, lease, "log", ONE, role="other").word == "wrong_role"
    assert record(replay, lease, "log", ONE, task="b").word == "unknown_task"
    assert record(replay, lease, "log", ONE, run="r9").word == "unknown_run"
    replay.result(lease, 1)
    assert record(replay, lease, "log", ONE).word == "run_stopped"
    assert replay.records("artifacts") == []
