"""The step: from an inbox entry to a job in RQ's queue, in order, bounded, and again after any crash."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError

from coordinator.machine.commands import Command
from coordinator.machine.machine import Machine, Reply
from coordinator.runtime.loop import Bounds
from coordinator.wire import channels
from coordinator.wire.reports import AskResults, Start, Submit, Use
from tests.runtime.harness import NAMESPACE, ROLE, WORKER, Stepped, team

CHAIN = team({"a": {}, "b": {"requires": ["a"]}})


def test_a_submit_becomes_a_job(stepped: Stepped) -> None:
    answer = stepped.submit(CHAIN)
    assert (answer["status"], answer["run"], answer["run_status"]) == ("applied", "r1", "running")
    assert [str(job) for job in stepped.jobs()] == [f"{ROLE}--r1--a--1"]
    assert stepped.inbox_lengths() == {}


def test_a_run_goes_from_submit_to_completed(stepped: Stepped) -> None:
    stepped.submit(CHAIN)
    grant = stepped.start("a")
    assert (grant["kind"], grant["capability"], grant["task"], grant["attempt"]) == ("grant", "work", "a", 1)
    stepped.end("a", {"x": 1})
    assert [job.task for job in stepped.jobs()] == ["a", "b"]
    grant = stepped.start("b")
    assert grant["results"] == {"a": {"x": 1}}
    stepped.end("b", [2])
    assert stepped.run()["status"] == "completed"
    assert stepped.inbox_lengths() == {}


def test_one_step_takes_a_whole_chain_of_messages(stepped: Stepped) -> None:
    """Everything that can follow from the entries that are there follows in the same step."""
    stepped.submit(CHAIN)
    stepped.start("a")
    result = stepped.end("a", 1)
    assert (result.entries, result.dispatched, result.launched, result.more) == (1, 1, 1, False)


def test_an_idle_step_does_nothing(stepped: Stepped) -> None:
    stepped.submit(CHAIN)
    result = stepped.step()
    assert result.idle
    assert not result.more


def test_an_idle_step_costs_few_commands(stepped: Stepped, redis: Redis) -> None:
    stepped.submit(CHAIN)
    redis.config_resetstat()
    stepped.step()
    calls = {name: stat["calls"] for name, stat in redis.info("commandstats").items()}
    assert calls["cmdstat_xrange"] == 4
    assert calls["cmdstat_fcall_ro"] <= 7
    assert "cmdstat_fcall" not in calls


def test_the_same_submit_again_is_the_same_run(stepped: Stepped) -> None:
    stepped.submit(CHAIN)
    version = stepped.run()["state_version"]
    assert stepped.submit(CHAIN)["status"] == "repeated"
    answer = stepped.submit(team({"a": {}}))
    assert (answer["status"], answer["word"]) == ("refused", "run_exists")
    assert stepped.run()["state_version"] == version
    assert len(stepped.jobs()) == 1


def test_what_a_worker_may_ask_while_it_works(stepped: Stepped) -> None:
    document = team({"a": {"reserve": {"tokens": 10}}, "b": {"requires": ["a"], "reserve": {"tokens": 0}}})
    stepped.submit(document | {"limits": {"tokens": 10}})
    stepped.start("a")
    assert stepped.leased(Use, "a", tokens=5)["status"] == "applied"
    stepped.end("a", {"n": 1}, tokens=5)
    stepped.start("b")
    page = stepped.leased(AskResults, "b", page=0)
    assert (page["kind"], page["results"]) == ("page", {"a": {"n": 1}})
    assert stepped.leased(Use, "b", tokens=11)["word"] == "over_budget"


def test_renewals_keep_a_lease_and_silence_loses_it(stepped: Stepped) -> None:
    stepped.submit(team({"a": {"heartbeat": "30s", "max_attempts": 2, "backoff": 0}}))
    stepped.start("a")
    for _ in range(8):
        stepped.now += 20_000
        stepped.renew("a")
    assert stepped.state("a") == "running"
    result = stepped.settle(later_ms=30_000)
    assert "attempt_lost" in stepped.kinds()
    assert result.timers + result.dispatched > 0
    assert stepped.jobs()[-1].attempt == 2


def test_inboxes_come_before_timers(stepped: Stepped) -> None:
    """A renewal that arrived in time saves the lease, however late the coordinator reads it."""
    stepped.submit(team({"a": {"heartbeat": "30s"}}))
    stepped.start("a")
    stepped.now += 29_000
    stepped.renew("a")
    stepped.now += 29_000
    stepped.renew("a")
    assert stepped.state("a") == "running"


def test_the_step_says_when_the_next_timer_is_due(stepped: Stepped) -> None:
    stepped.submit(team({"a": {"heartbeat": "30s"}}))
    stepped.start("a")
    assert stepped.step().wake_at == stepped.now + 30_000


def test_a_retry_waits_for_its_backoff(stepped: Stepped) -> None:
    stepped.submit(team({"a": {"max_attempts": 2, "backoff": "10s"}}))
    stepped.start("a")
    stepped.end("a", outcome="transient")
    assert stepped.state("a") == "pending"
    wake_at = stepped.step().wake_at
    assert wake_at is not None
    assert stepped.now + 10_000 <= wake_at <= stepped.now + 12_000
    stepped.settle(later_ms=wake_at - stepped.now)
    assert [job.attempt for job in stepped.jobs()] == [1, 2]


def test_a_large_run_is_made_in_parts(stepped: Stepped) -> None:
    count = 1_000
    tasks: dict[str, Any] = {f"t{i}": {} for i in range(count)} | {
        "sum": {"requires": [f"t{i}" for i in range(count)]}
    }
    answer = stepped.submit(team(tasks))
    assert answer["status"] == "applied"
    run = stepped.run()
    assert (run["batch"], run["tasks"], run["items"]) == ("", str(count + 1), str(2 * count + 1))
    assert len(stepped.jobs()) == 64


def test_a_small_run_does_not_wait_for_a_large_one(redis: Redis) -> None:
    """The large run's parts and cascades take turns with everything else."""
    stepped = Stepped(redis, Bounds(batches=2))
    stepped.put(
        channels.scope_inbox(NAMESPACE, "submit"),
        _submit_fields("large", {f"t{i}": {} for i in range(5_000)}),
    )
    stepped.step()
    assert stepped.run("large")["batch"] == "add"
    stepped.put(channels.scope_inbox(NAMESPACE, "submit"), _submit_fields("small", {"a": {}}))
    stepped.step()
    assert stepped.run("large")["batch"] == "add"
    assert [job.run for job in stepped.jobs()] == ["small"]


def _submit_fields(run: str, tasks: dict[str, dict[str, object]]) -> dict[str, str]:
    return Submit(run=run, team=json.dumps(team(tasks)), inputs="{}").fields()


class DyingMachine(Machine):
    """Loses Redis at one of its calls: before it, or with only the answer lost."""

    left = -1
    answered = False

    def apply_each(self, commands: Sequence[Command]) -> list[Reply | Exception]:
        if DyingMachine.left == 0 and not DyingMachine.answered:
            raise ConnectionError("cut before the call")
        replies = super().apply_each(commands)
        if DyingMachine.left == 0:
            raise ConnectionError("cut after the call")
        DyingMachine.left -= 1
        return replies


@pytest.mark.parametrize("answered", [False, True])
def test_c60_a_crash_at_any_call_loses_nothing_and_does_nothing_twice(redis: Redis, answered: bool) -> None:
    stepped = Stepped(redis, machine_type=DyingMachine)
    for cut in range(5):
        run = f"r{cut}"
        stepped.submit(CHAIN, run)
        stepped.start("a", run=run)
        DyingMachine.left, DyingMachine.answered = cut, answered
        died = True
        try:
            stepped.end("a", {"x": 1}, run=run)
            died = False
        except ConnectionError:
            pass
        finally:
            DyingMachine.left = -1
        stepped.restart()
        stepped.settle()
        assert [job.task for job in stepped.jobs() if job.run == run] == ["a", "b"], (cut, died)
        stepped.work("b", 2, run=run)
        assert stepped.run(run)["status"] == "completed"
        kinds = stepped.kinds(run)
        assert kinds.count("task_succeeded") == 2
        assert kinds.count("attempt_started") == 2


def test_a_deposed_leader_stops_in_the_middle_of_its_step(stepped: Stepped, redis: Redis) -> None:
    stepped.submit(CHAIN)
    old_loop, old_machine = stepped.loop, stepped.machine
    stepped.restart()
    assert stepped.machine.epoch > old_machine.epoch
    stepped.say(Start(run="r1", task="a", attempt=1, worker=WORKER))
    result = old_loop.step(stepped.now)
    assert result.deposed
    assert result.entries == 0
    assert stepped.state("a") == "queued"
    stepped.settle()
    assert stepped.state("a") == "running"
    assert int(redis.hget(f"{NAMESPACE}:metrics", "fenced_writes") or 0) > 0
