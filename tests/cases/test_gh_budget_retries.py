"""Cases G and H: budgets (C-40 to C-42) and retries (C-43 to C-46)."""

from __future__ import annotations

import pytest

from coordinator.machine.commands import UseBudget
from tests.support.builders import task
from tests.support.replay import START, Replay

PRICE = 1_000_000
"""Micro-units in one unit of money."""


def money(replay: Replay) -> tuple[int, int]:
    run = replay.run()
    return int(run.get("used_cost", 0)) // PRICE, int(run.get("reserved_cost", 0)) // PRICE


def test_C_40_workers_at_once_never_pass_the_budget(replay: Replay) -> None:
    replay.submit(
        *(task(f"t{n}", cost_micros=30 * PRICE) for n in range(20)), limits={"cost_micros": 100 * PRICE}
    )
    assert replay.dispatch() == 3
    assert money(replay) == (0, 90)
    granted = [replay.ask(f"t{n}", attempt=1, worker=f"w{n}").status == "applied" for n in range(20)]
    assert sum(granted) == 3
    assert list(replay.states().values()).count("pending") == 17, "the rest waits, it does not fail"
    assert replay.status() == "running"


def test_C_41_a_reservation_is_taken_settled_and_released(replay: Replay) -> None:
    replay.submit(*(task(name, cost_micros=30 * PRICE) for name in "abc"), task("z", external=1),
                  limits={"cost_micros": 70 * PRICE}, on_required_failure="drain")  # fmt: skip
    seen = [money(replay)]
    lease = replay.claim("a")
    replay.ask("b", worker="w2")
    seen.append(money(replay))
    assert replay.ask("c", attempt=1).word in ("stale_attempt", "wrong_state")
    replay.result(lease, 1, cost=10 * PRICE)
    replay.dispatch()
    seen.append(money(replay))
    replay.tick(31)
    replay.reap()
    seen.append(money(replay))
    replay.cancel("c")
    seen.append(money(replay))
    assert seen == [(0, 0), (0, 60), (10, 60), (40, 30), (40, 0)], "a lost attempt costs what it had reserved"
    assert replay.task("b")["outcome"] == "lost"


def test_C_42_failed_attempts_count(replay: Replay) -> None:
    replay.submit(
        task("a", max_attempts=5, backoff_ms=0, cost_micros=20 * PRICE), limits={"cost_micros": 50 * PRICE}
    )
    for _ in range(2):
        last = replay.fail(replay.claim("a"), "transient", cost=20 * PRICE)
    assert (last.run_status, replay.run()["stop_limit"]) == ("budget_exhausted", "cost")
    assert money(replay) == (40, 0)
    assert replay.task("a")["granted"] == "2"


def test_C_42_use_beyond_the_reservation_is_told_and_booked(replay: Replay) -> None:
    replay.submit(task("a", tokens=20), task("b", tokens=20), limits={"tokens": 50})
    lease = replay.claim("a")
    use = UseBudget(now=replay.now, **lease.who, tokens=45, cost_micros=0)
    assert replay.apply(use).word == "over_budget"
    replay.result(lease, 1, tokens=45)
    run = replay.run()
    assert (run["used_tokens"], run["overrun_tokens"]) == ("45", "1")
    assert replay.counters()["budget_overruns:tokens"] == 1


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("lost", [False, True])
def test_C_43_exactly_so_many_attempts(replay: Replay, most: int, lost: bool) -> None:
    replay.submit(task("a", max_attempts=most, backoff_ms=0))
    for _ in range(most):
        lease = replay.claim("a")
        if lost:
            replay.tick(31)
            replay.reap()
        else:
            replay.fail(lease, "transient")
    assert replay.status() == "critical_failure"
    started = [event["attempt"] for event in replay.events("a") if event["kind"] == "attempt_started"]
    assert started == [str(number) for number in range(1, most + 1)]


def test_C_44_retries_are_spread_out_and_never_early(replay: Replay) -> None:
    names = [f"t{n}" for n in range(200)]
    tasks = [task(name, max_attempts=4, backoff_ms=600_000, backoff_max_ms=6_000_000) for name in names]
    replay.redis.hset("crewline:settings", "window", 500)
    dues = []
    for run in ("r1", "r2"):
        replay.submit(*tasks, run=run, seed="same")
        for name in names:
            replay.fail(replay.claim(name, run=run), "transient")
        dues.append([int(found["due_at"]) - START for found in replay.tasks(run).values()])
    assert len({due // 1000 for due in dues[0]}) >= 50
    assert min(dues[0]) >= 600_000 and max(dues[0]) <= 720_000
    assert len(set(dues[0])) > 100


def test_C_44_the_providers_wait_is_a_floor_and_zero_stays_zero(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=3, backoff_ms=0))
    replay.fail(replay.claim("a"), "transient", retry_after=90)
    assert int(replay.task("a")["due_at"]) - START == 90_000
    replay.tick(90)
    replay.reap()
    replay.fail(replay.claim("a"), "transient")
    assert replay.dispatch() == 1, "nothing is waited for"


CLASSES = {
    "permission": ("critical_failure", "denied", "1"),
    "missing_input": ("paused", "awaiting", "1"),
    "transient": ("running", "pending", "1"),
    "unheard_of": ("critical_failure", "failed", "1"),
}


@pytest.mark.parametrize("kind", CLASSES)
def test_C_45_the_class_of_a_failure_decides(replay: Replay, kind: str) -> None:
    replay.submit(task("a", max_attempts=5), roles={"clerk": ["work"], "boss": ["work"]})
    replay.fail(replay.claim("a"), kind)
    replay.reap()
    replay.dispatch()
    assert (replay.status(), replay.states()["a"], replay.task("a")["attempt"]) == CLASSES[kind]


def test_C_45_an_owner_without_the_capability_uses_no_attempt_and_nobody_takes_over(replay: Replay) -> None:
    replay.submit(
        task("a", max_attempts=5, capability="refund"), roles={"clerk": ["work"], "boss": ["refund"]}
    )
    assert (replay.status(), replay.states()) == ("critical_failure", {"a": "denied"})
    assert replay.task("a").get("attempt", "0") == "0"
    assert replay.handed_out("a") == []


def test_C_46_a_retry_is_no_failure_of_the_task(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=3, backoff_ms=0))
    for _ in range(2):
        replay.fail(replay.claim("a"), "transient")
    assert replay.work("a").run_status == "completed"
    kinds = replay.kinds("a")
    assert (kinds.count("attempt_failed"), kinds.count("task_failed")) == (2, 0)
    counters = replay.counters()
    assert (counters["attempts:failed"], counters.get("tasks:failed", 0)) == (
        2,
        0,
    )
    assert counters["tasks:succeeded"] == 1
