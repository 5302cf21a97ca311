"""Cases K and L: size (C-54, C-55) and leadership (C-59, C-60). Guards on cost: tests/machine/test_size_guards.py."""

from __future__ import annotations

from coordinator.machine.commands import Dispatch, FireTimer, ResignLead
from coordinator.machine.machine import Machine
from tests.support.builders import task
from tests.support.replay import Replay

LONG = 5_000


def test_C_54_a_chain_of_5000_is_blocked_to_its_end(replay: Replay) -> None:
    names = [f"t{n:04}" for n in range(LONG)]
    replay.submit(
        *(task(name, requires=names[n - 1 : n] if n else []) for n, name in enumerate(names)), parts=20
    )
    replay.work(names[0])
    replay.fail(replay.claim(names[1]))
    tasks = replay.tasks()
    assert replay.status() == "critical_failure"
    replay.verifies = False  # it would take longer than all other cases together
    assert [found["state"] for found in tasks.values()].count("blocked") == LONG - 2
    assert {found["root"] for found in tasks.values() if found["state"] == "blocked"} == {names[1]}


def test_C_55_the_last_of_many_opens_the_join_once(replay: Replay) -> None:
    names = [f"t{n}" for n in range(300)]
    replay.redis.hset("crewline:settings", "window", 500)
    replay.submit(*(task(name) for name in names), task("join", requires=names))
    *most, last = replay.claim_all(names)
    for lease in most:
        replay.result(lease, 1)
    assert replay.dispatch() == 0
    replay.result(last, 1)
    assert replay.work("join").run_status == "completed"
    assert replay.kinds("join").count("task_queued") == 1
    scans = replay.redis.info("commandstats")
    assert not {"cmdstat_keys", "cmdstat_scan"} & set(scans), "nothing looks through all keys"


def test_C_59_an_old_leader_changes_nothing_and_is_told(replay: Replay) -> None:
    replay.submit(task("a", max_attempts=2, backoff_ms=0), task("b"))
    lease = replay.claim("a")
    old, replay.machine = replay.machine, Machine(replay.redis)
    old.apply(ResignLead(now=replay.now, holder="first"))
    replay.take_lead("second")
    before, counters = replay.run(), replay.counters()
    replay.tick(31)
    loop = [
        Dispatch(now=replay.now, limit=100),
        FireTimer(now=replay.now, run="r1", task="a"),
        FireTimer(now=replay.now, run="r1", task=""),
    ]
    assert {reply.word for reply in old.apply_many(loop)} == {"old_epoch"}
    assert replay.run() == before
    changed = {name for name, value in replay.counters().items() if counters.get(name, 0) != value}
    assert changed == {"fenced_writes"}, "no number is counted twice, and the refusals are on record"
    replay.reap()
    assert replay.task("a")["outcome"] == "lost"
    assert replay.result(lease, 1).word == "late_ignored"
    replay.work("a")
    assert replay.work("b").run_status == "completed"


def test_C_60_a_result_and_what_it_makes_ready_are_one_call(replay: Replay) -> None:
    """Between accepting a result and making the next task ready there is no moment to die in (a sweep over every call
    of a coordinator: tests/runtime)."""
    replay.submit(task("a"), task("b", requires=["a"]))
    lease = replay.claim("a")
    replay.result(lease, 1)
    replay.machine = Machine(replay.redis)
    replay.machine.load()
    replay.machine.epoch = 1
    assert replay.dispatch() == 1
    assert replay.work("b").run_status == "completed"
    assert replay.kinds("b").count("attempt_started") == 1
