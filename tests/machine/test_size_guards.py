"""What a transition costs must not grow with the Team: counted in commands that Redis runs, and in its slow log.

The guards on 100,000 tasks (marker `size`) take a minute or two; CI runs them after the fast tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from coordinator.machine.reads import (
    DueTimers,
    ListRuns,
    NextTimer,
    QueuedAttempts,
    ReadCommands,
    ReadDocuments,
    ReadEvents,
    ReadInternal,
    ReadPayloads,
    ReadResults,
    ReadRun,
    ReadTasks,
)
from coordinator.machine.snapshot import PAGE
from tests.machine.large_run import (
    BOUNDS,
    FIRST,
    LAST,
    NOW,
    RUN,
    LargeRun,
    Tasks,
    chains,
    end,
    fan_out,
    flat,
    name,
)
from tests.machine.meter import commands_run
from tests.support.builders import ROLE

SMALL, LARGE, HUGE = 100, 10_000, 100_000
ALLOWED_GROWTH = 1.5
PIECE = 40
"""Reports over which the cost of one is averaged."""


def costs(redis: Redis, tasks: Tasks, most: int) -> Iterator[tuple[str, float]]:
    """What was done, and the commands that each grant and each report cost, a piece of the run's tasks at a time."""
    redis.flushall()
    run = LargeRun(redis, tasks)
    run.submit()
    if FIRST in tasks:
        run.work_off(1)
    done = 0
    while done < most and (names := [task for task in run.dispatch() if task != LAST]):
        for what, step in (("grant", run.grant), ("end", run.end)):
            for start in range(0, len(names), PIECE):
                part = names[start : start + PIECE]
                before = commands_run(redis)
                step(part)
                yield what, (commands_run(redis) - before) / len(part)
        run.finish_batch()
        done += len(names)


@pytest.mark.parametrize("shape", [flat, fan_out, chains])
def test_a_report_costs_the_same_in_a_hundred_times_larger_team(
    redis: Redis, shape: Callable[[int], Tasks]
) -> None:
    """The dearest piece of the large run is held against the average of the small one. The join of a fan-out is left
    out: it costs what it joins."""
    small: dict[str, list[float]] = {"grant": [], "end": []}
    for what, cost in costs(redis, shape(SMALL), SMALL):
        small[what].append(cost)
    for what, cost in costs(redis, shape(LARGE), 1_200):
        bound = ALLOWED_GROWTH * sum(small[what]) / len(small[what])
        assert cost <= bound, (
            f"{what} costs {cost:.1f} commands, at {SMALL} tasks {bound / ALLOWED_GROWTH:.1f}"
        )


@pytest.mark.size
@pytest.mark.timeout(900)
def test_no_call_is_long_at_a_huge_fan_out(redis: Redis) -> None:
    """1 -> 100,000 -> 1, from the submit to `completed`, with the reads that a coordinator and a report make."""
    run = LargeRun(redis, fan_out(HUGE))
    run.submit()
    assert run.work_off(HUGE // 2) > HUGE // 2
    names = run.dispatch()
    run.grant(names)
    for query in (
        ReadRun(RUN),
        ReadTasks(RUN, 0, PAGE),
        ReadTasks(RUN, HUGE // 2, PAGE),
        ReadEvents(RUN, HUGE, PAGE),
        ReadCommands(RUN, 0, 1),
        ReadCommands(RUN, HUGE, PAGE),
        ReadDocuments(RUN),
        ReadPayloads(RUN, tuple(run.field("digest", name(n)) for n in range(PAGE))),
        QueuedAttempts(role=ROLE, before=NOW + 1, limit=1_000),
        DueTimers(now=NOW + 10**9, limit=BOUNDS.timers),
        NextTimer(),
        ReadInternal(limit=BOUNDS.internal),
        ListRuns(0, PAGE),
    ):
        run.metered.read(query)
    run.end(names)
    run.work_off()
    assert run.field("status") == "completed"
    assert run.field("n_succeeded") == str(HUGE + 2)
    _assert_none_is_slow(run)


@pytest.mark.size
@pytest.mark.timeout(600)
def test_no_call_is_long_when_a_huge_fan_out_is_blocked(redis: Redis) -> None:
    """By a conflict of the task that all require, after some have started; in another run by its failure."""
    run = LargeRun(redis, fan_out(LARGE * 2, idempotency_key="k"), on_required_failure="drain")
    run.submit()
    run.work_off(1)
    names = run.dispatch()
    run.grant(names)
    run.end(names[: len(names) // 2])
    run.metered.apply(end(FIRST, result={"other": 1}))
    assert run.finish_batch() > LARGE * 2 // 1_000
    assert run.field("state", FIRST) == "needs_review"
    assert int(run.field("n_blocked")) == LARGE * 2 + 1 - len(names)

    redis.flushall()
    failing = LargeRun(redis, fan_out(LARGE * 2), on_required_failure="drain")
    failing.submit()
    failing.grant(failing.dispatch())
    failing.end([FIRST], "permanent")
    failing.finish_batch()
    assert failing.field("status") == "failed"
    assert int(failing.field("n_blocked")) == LARGE * 2 + 1
    _assert_none_is_slow(run)
    _assert_none_is_slow(failing)


@pytest.mark.size
@pytest.mark.timeout(600)
def test_no_call_is_long_at_a_huge_for_each(redis: Redis) -> None:
    """Children made in parts, let in at once, canceled together when their parent fails; and their results read."""
    each = {"from": "inputs.list", "max": LARGE, "max_parallel": LARGE, "min_success": LARGE}
    tasks: Tasks = {"all": {"capability": "work", "for_each": each}, "other": {"external": True}}
    run = LargeRun(redis, tasks, inputs={"list": {"type": "array"}}, on_required_failure="drain")
    run.submit(list=[])
    run.dispatch()
    run.spawn("all", list(range(LARGE)))
    run.work_off(LARGE // 10)
    run.metered.read(ReadResults(run=RUN, task="all", offset=0, limit=PAGE))
    names = run.dispatch()
    run.grant(names)
    run.end(names[:1], "permanent")
    run.finish_batch()
    assert run.field("children_verdict", "all") == "failed"
    _assert_none_is_slow(run)


def _assert_none_is_slow(run: LargeRun) -> None:
    slow = run.metered.slow
    shown = "\n".join(str(call) for call in slow[:20])
    assert not slow, f"{len(slow)} of {run.metered.calls} calls were slow:\n{shown}"
