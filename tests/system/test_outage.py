"""A coordinator and two workers on a Redis that goes away twice: nothing is lost, and nothing is done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from coordinator.machine.reads import ReadMetrics
from tests.support.command import crewline
from tests.system.installation import Installation

pytestmark = [pytest.mark.container, pytest.mark.timeout(300)]

ROLES = {
    "clerk": {"capabilities": ["begin", "part"]},
    "editor": {"capabilities": ["note", "join"]},
}
DEFAULTS = {"max_attempts": 5, "backoff": "0s", "heartbeat": "5s"}
"""An attempt whose grant was lost with the connection comes back soon."""

SMALL_RUNS = 200
DIAMOND: dict[str, Any] = {
    "team": "diamond",
    "roles": ROLES,
    "defaults": DEFAULTS,
    "inputs": {"n": {"type": "integer"}},
    "tasks": {
        "begin": {"input": {"from": "inputs.n"}},
        "left": {
            "capability": "part",
            "requires": ["begin"],
            "input": {"number": {"from": "tasks.begin.result"}},
        },
        "right": {"capability": "note", "requires": ["begin"], "input": {"number": {"from": "inputs.n"}}},
        "join": {"requires": ["left", "right"]},
    },
}

CHILDREN, PARTS = 500, 497
"""With begin, each and join: 1,000 tasks."""
FAN: dict[str, Any] = {
    "team": "fan",
    "roles": ROLES,
    "defaults": DEFAULTS,
    "inputs": {"list": {"type": "array"}},
    "tasks": {
        "begin": {"input": {"from": "inputs.list"}},
        "each": {
            "capability": "part",
            "requires": ["begin"],
            "for_each": {"from": "tasks.begin.result", "max_parallel": 100},
        },
        **{
            f"part-{n}": {"capability": "note", "requires": ["begin"], "input": {"number": n}}
            for n in range(PARTS)
        },
        "join": {"requires": ["each", *(f"part-{n}" for n in range(PARTS))]},
    },
}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(tmp_path_factory.mktemp("installation"), tuple(ROLES)) as started:
        started.start("coordinator", "coordinator")
        started.start_worker("inline", "--mode", "inline")
        started.start_worker("forking", "--mode", "fork")
        yield started


def test_nothing_is_lost_and_nothing_is_done_twice(installation: Installation) -> None:
    small = [f"small-{n}" for n in range(SMALL_RUNS)]
    installation.submit(FAN, "fan", list=[{"number": n} for n in range(CHILDREN)])
    for n, run in enumerate(small[: SMALL_RUNS // 2]):
        installation.submit(DIAMOND, run, n=n)
    installation.await_events("fan", "task_succeeded", 100)

    installation.server.stop()
    installation.await_log("redis_away", "coordinator")
    installation.await_log("redis_lost", "inline", "forking")
    installation.server.start()
    for n, run in enumerate(small[SMALL_RUNS // 2 :], SMALL_RUNS // 2):
        installation.submit(DIAMOND, run, n=n)
    installation.await_events("fan", "task_succeeded", 400)

    away = installation.log("coordinator").count("redis_away")
    installation.server.kill()
    installation.await_log("redis_away", "coordinator", times=away + 1)
    installation.server.start()
    for run in ("fan", *small):
        installation.await_events(run, "run_stopped")

    for n, run in enumerate(small):
        check(installation, run, tasks=4, total=2 * n)
    check(installation, "fan", tasks=3 + PARTS + CHILDREN, total=sum(range(CHILDREN)) + sum(range(PARTS)))
    counters = installation.machine.read(ReadMetrics())
    assert int(counters["stops:completed"]) == 1 + SMALL_RUNS
    assert int(counters["tasks:succeeded"]) == 3 + PARTS + CHILDREN + 4 * SMALL_RUNS
    for run in ("fan", small[0], small[-1]):
        verified = crewline("verify", run, "--redis", installation.server.url)
        assert verified.stdout.strip() == "equal", verified
    codes = installation.stop()
    assert set(codes.values()) == {0}, codes


def check(installation: Installation, run: str, *, tasks: int, total: int) -> None:
    """Every task succeeded, by one result; every attempt ran once at most, and the one that succeeded did run."""
    report = installation.report(run)
    assert report["status"] == "completed", report["stop"]
    assert len(report["tasks"]) == tasks
    assert {task["state"] for task in report["tasks"].values()} == {"succeeded"}
    assert report["tasks"]["join"]["result"] == total
    assert not report["result_conflicts"]

    events = report["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    versions = [event["state_version"] for event in events]
    assert versions[0] == 1
    assert {after - before for before, after in pairwise(versions)} <= {0, 1}
    ended = Counter(event["task_id"] for event in events if event["kind"] == "task_succeeded")
    assert set(ended.values()) == {1}, ended.most_common(3)
    assert len(ended) == tasks

    ran = Counter(installation.lines(run))
    assert set(ran.values()) == {1}, ran.most_common(3)
    started = {(e["task_id"], e["attempt"]) for e in events if e["kind"] == "attempt_started"}
    succeeded = {(e["task_id"], e["attempt"]) for e in events if e["kind"] == "task_succeeded"}
    assert set(ran) <= started
    assert {(task, attempt) for task, attempt in succeeded if attempt} <= set(ran)
