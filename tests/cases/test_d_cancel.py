"""Cases D: canceling (C-21 to C-26). That the worker is told at once and stopped after the grace: tests/workers."""

from __future__ import annotations

import itertools

import pytest

from tests.support.builders import task
from tests.support.replay import Replay


def cancellation(replay: Replay) -> dict[str, object]:
    [record] = replay.records("cancellations")
    return record


def test_C_21_a_result_that_comes_after_the_cancel_changes_nothing(replay: Replay) -> None:
    replay.submit(task("a"))
    lease = replay.claim("a")
    assert replay.cancel().run_status == "canceled"
    version = replay.run()["state_version"]
    replay.tick(3)
    replay.result(lease, {"v": 1})
    assert (replay.status(), replay.states()) == ("canceled", {"a": "canceled"})
    assert replay.run()["state_version"] == version
    assert cancellation(replay)["outcome"] == "completed_anyway", (
        "it was executed after the cancel: to be reconciled"
    )
    [entry] = replay.ledger("late")
    assert (entry["source"], entry["at"]) == ("w1", replay.now)
    assert entry["digest"].startswith("json-sorted/1:")


def test_C_22_a_cancel_that_nobody_confirms_ends_as_unconfirmed(replay: Replay) -> None:
    replay.submit(task("a"), task("b", external=1))
    replay.claim("a")
    replay.cancel("a")
    assert replay.states()["a"] == "canceled", "a poller sees an end at once"
    assert cancellation(replay)["outcome"] == "requested"
    replay.tick(29)
    replay.reap()
    assert cancellation(replay)["outcome"] == "requested"
    replay.tick(2)
    replay.reap()
    assert cancellation(replay)["outcome"] == "unconfirmed"
    assert "cancel_unconfirmed" in replay.kinds("a")
    assert replay.counters()["cancellations:unconfirmed"] == 1


def test_C_22_a_task_that_waits_for_input_is_canceled_at_once(replay: Replay) -> None:
    replay.submit(task("a", required=0), task("b", external=1))
    replay.fail(replay.claim("a"), "missing_input")
    assert replay.states()["a"] == "awaiting"
    replay.cancel("a")
    assert replay.states()["a"] == "canceled"
    assert replay.records("cancellations") == [], "nobody is to confirm anything"
    assert replay.answer("a", "yes").status == "refused"


@pytest.mark.parametrize("order", list(itertools.permutations(["pop", "cancel", "start"])), ids="-".join)
def test_C_23_a_cancel_between_dequeue_and_start(replay: Replay, order: tuple[str, ...]) -> None:
    """Only what asks for its lease before the cancel is ever executed; four jobs lie in the worker's hands."""
    names = ["a", "b", "c", "d"]
    replay.submit(*(task(name) for name in names))
    popped = executed = 0
    canceled = False
    for step in order:
        if step == "pop":
            popped = replay.dispatch()
        elif step == "cancel":
            replay.cancel()
            canceled = True
        else:
            replies = [replay.ask(name, attempt=1) for name in names]
            executed = sum(reply.status == "applied" for reply in replies)
            assert canceled <= all(reply.word == "run_stopped" for reply in replies)
    begins = order.index("start")
    assert executed == (4 if order.index("pop") < begins < order.index("cancel") else 0)
    assert popped == (4 if order.index("pop") < order.index("cancel") else 0)
    assert len(replay.records("cancellations")) == executed, "what was executed is told to end"


def test_C_24_a_cancel_while_children_are_being_launched(replay: Replay) -> None:
    replay.submit(task("root"), *(task(f"c{n}", requires=["root"]) for n in range(200)))
    replay.redis.hset("crewline:settings", "window", 500)
    replay.work("root")
    assert replay.dispatch(50) == 50
    began = [replay.ask(f"c{n}").status for n in range(10)]
    assert set(began) == {"applied"}
    replay.cancel()
    assert replay.dispatch(50) == 0
    assert {replay.ask(f"c{n}", attempt=1).word for n in range(10, 50)} == {"run_stopped"}
    assert [each["outcome"] for each in replay.records("cancellations")] == ["requested"] * 10
    stopped = replay.kinds().index("run_stopped")
    assert "attempt_started" not in replay.kinds()[stopped:]
    assert set(replay.states().values()) == {"succeeded", "canceled"}


def test_C_25_dependants_of_a_canceled_task_never_run(replay: Replay) -> None:
    replay.submit(task("a", required=0), task("b", requires=["a"], required=0), task("c", requires=["b"], required=0),
                  task("z", external=1))  # fmt: skip
    lease = replay.claim("a")
    replay.cancel("a")
    assert replay.fail(lease, "canceled").word == "cancel_confirmed"
    assert replay.states() == {"a": "canceled", "b": "blocked", "c": "blocked", "z": "queued"}
    assert {replay.task(name)["root"] for name in "bc"} == {"a"}
    assert replay.dispatch() == 0
    assert replay.report("z").run_status == "completed"


def test_C_25_a_required_task_that_was_canceled_fails_the_run_but_not_critically(replay: Replay) -> None:
    """The one rule (SPEC 4): never `critical_failure`; the rest goes on, and then the run is `failed`."""
    replay.submit(task("a"), task("b", requires=["a"]), task("z", external=1))
    replay.cancel("a")
    assert replay.status() == "running"
    assert replay.report("z").run_status == "failed"


def test_C_26_a_deliberate_stop_is_no_crash(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=3, required=0), task("z", external=1))
    lease = replay.claim("a")
    replay.cancel("a")
    replay.fail(lease, "canceled")
    assert cancellation(replay)["outcome"] == "confirmed"
    replay.tick(40)
    assert replay.reap() == [], "no lease is left to expire and no retry waits"
    assert replay.dispatch() == 0
    assert (replay.task("a")["outcome"], replay.task("a")["attempt"]) == ("canceled", "1")
    counters = replay.counters()
    assert counters["attempts:canceled"] == 1
    assert counters.get("attempts:failed", 0) == counters.get("attempts:lost", 0) == 0
    assert counters["cancellations:confirmed"] == 1


def test_the_same_cancel_again_is_no_second_one(replay: Replay) -> None:
    replay.submit(task("a"), task("z", external=1))
    replay.claim("a")
    assert replay.cancel("a", ask="q1").status == "applied"
    assert replay.cancel("a", ask="q1").status == "repeated"
    assert replay.cancel("a", ask="q2").word == "task_ended"
    assert replay.cancel(ask="q3").status == "applied"
    assert replay.cancel(ask="q3").status == "repeated"
    assert replay.cancel(ask="q4").word == "run_stopped"
