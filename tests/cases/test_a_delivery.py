"""Cases A: delivery and leases (C-01 to C-07). Real workers replay C-04 to C-07 in tests/workers and tests/runtime."""

from __future__ import annotations

import pytest

from tests.support.builders import task
from tests.support.replay import START, Replay


def test_C_01_a_long_job_keeps_its_lease_while_it_lives(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=2))
    lease = replay.claim("a")
    for _ in range(8):
        replay.tick(20)
        assert replay.beat(lease).status == "applied"
        assert replay.reap() == []
        assert replay.dispatch() == 0, "it is offered to nobody else"
    assert replay.result(lease, {"v": 1}).run_status == "completed"
    assert replay.task("a")["attempt"] == "1"
    assert replay.handed_out("a") == [1]


def test_C_02_a_retry_that_waits_longer_than_a_lease_is_queued_once(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=3, backoff_ms=300_000))
    replay.fail(replay.claim("a"), "transient")
    due = int(replay.task("a")["due_at"])
    assert 300_000 <= due - START <= 361_000
    for _ in range(10):
        replay.tick(29)
        replay.reap()
        assert replay.dispatch() == 0
        assert (replay.task("a")["attempt"], replay.task("a").get("lease", "")) == ("1", "")
    replay.tick(75)
    replay.reap()
    assert replay.dispatch() == 1
    assert replay.handed_out("a") == [1, 2], "one copy of each attempt"
    assert replay.work("a").run_status == "completed"
    assert replay.task("a")["granted"] == "2"


@pytest.mark.parametrize("late", [{"v": 1}, {"v": 2}])
def test_C_03_a_slow_worker_finishes_after_a_second_one_took_over(replay: Replay, late: object) -> None:
    replay.submit(task("a", max_attempts=2, backoff_ms=0))
    slow = replay.claim("a", "w1")
    replay.tick(60)
    replay.reap()
    second = replay.claim("a", "w2")
    assert replay.result(slow, late).word == "late_ignored"
    assert replay.result(second, {"v": 1}).run_status == "completed"
    assert (replay.task("a")["attempt"], replay.task("a")["result_trust"]) == ("2", "trusted")
    [entry] = replay.ledger("late")
    assert (entry["source"], entry["attempt"]) == ("w1", 1)


def test_C_03_with_a_key_of_its_own_the_slow_workers_other_answer_is_a_conflict(replay: Replay) -> None:
    """A given key spans the attempts: never last-write-wins, and never v=2 silently."""
    replay.submit(task("a", max_attempts=2, backoff_ms=0, key="k"), task("z", requires=["a"]))
    slow = replay.claim("a", "w1")
    replay.tick(60)
    replay.reap()
    second = replay.claim("a", "w2")
    assert replay.result(slow, {"v": 2}).word == "late_ignored"
    assert replay.result(second, {"v": 1}).word == "result_conflict_detected"
    assert replay.states() == {"a": "needs_review", "z": "blocked"}


def test_C_04_a_killed_workers_attempt_is_lost_and_the_next_one_completes(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=2, backoff_ms=0))
    replay.claim("a", "w1")
    replay.tick(31)
    assert replay.reap() == [("r1", "a")]
    assert replay.kinds("a")[-1] == "attempt_lost"
    assert replay.result(replay.claim("a", "w2"), 1).run_status == "completed"
    assert replay.task("a")["attempt"] == "2"


def test_C_04_without_attempts_left_a_killed_worker_fails_the_task(replay: Replay) -> None:
    replay.submit(task("a"))
    replay.claim("a", "w1")
    replay.tick(31)
    replay.reap()
    assert (replay.states(), replay.status()) == ({"a": "failed"}, "critical_failure")
    assert replay.task("a")["outcome"] == "lost"


def test_C_05_an_attempt_that_was_granted_too_late_is_taken_back_at_no_cost(replay: Replay) -> None:
    """The worker hands back a grant that came when its lease may be over (tests/workers shows that it does)."""
    replay.submit(task("a"), limits={"step_budget": 1})
    lease = replay.claim("a")
    assert replay.hand_back(lease, "refused_start").status == "applied"
    assert replay.run()["used_step_budget"] == "0"
    replay.dispatch()
    assert replay.ask("a", attempt=1).word == "stale_attempt"
    assert replay.work("a").run_status == "completed"
    assert (replay.task("a")["attempt"], replay.task("a")["granted"]) == ("2", "1")


def test_C_06_a_hung_worker_cannot_renew_for_ever(replay: Replay) -> None:
    replay.submit(task("a", timeout_ms=120_000, max_attempts=2, backoff_ms=0))
    for number in (1, 2):
        lease = replay.claim("a")
        began = replay.now
        while replay.beat(lease).status == "applied":
            replay.tick(10)
            replay.reap()
        assert replay.now - began == 120_000
        assert replay.beat(lease).word == ("stale_lease" if number == 1 else "run_stopped")
    assert (replay.status(), replay.task("a")["outcome"]) == ("critical_failure", "timed_out")


def test_C_07_two_jobs_of_one_attempt_give_one_start(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=2, backoff_ms=0))
    lease = replay.claim("a", "w1")
    second = replay.ask("a", attempt=1, worker="w2")
    assert (second.status, second.word) == ("refused", "wrong_state")
    replay.fail(lease, "transient")
    replay.dispatch()
    assert replay.ask("a", attempt=1, worker="w2").word == "stale_attempt", "a number is never reused"
    assert replay.handed_out("a") == [1, 2]
