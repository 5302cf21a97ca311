"""Children that handlers make, with a real coordinator and real workers (SPEC 8)."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from coordinator.cli.run import with_spawned
from coordinator.team.loader import make_team
from tests.workers import durable_handlers as durable
from tests.workers.conftest import Start, worker_pid
from tests.workers.installation import Installation
from workers import Permanent
from workers.testing import run_handler

HANDLERS = Path(durable.__file__)
CAPABILITIES = [
    "leaf", "lead", "lead_async", "tree", "background", "until_file", "fails", "catches", "does_not_catch",
    "refused", "retried", "gives_up", "waits", "guarded",
]  # fmt: skip
ROLES = {"clerk": {"capabilities": CAPABILITIES}, "guard": {"capabilities": ["guarded"]}}
TREE_LIMITS = {"tokens": 1000, "max_depth": 3}


def test_c_waited_children_and_their_failures(
    installation: Installation, start_worker: Start, tmp_path: Path
) -> None:
    for mode in ("fork", "inline"):
        start_worker("--mode", mode, handlers=HANDLERS)
    tasks: dict[str, Any] = {
        "lead": {}, "lead_async": {}, "catches": {}, "does_not_catch": {"required": False}, "refused": {},
        "retried": {"max_attempts": 2, "backoff": 0}, "tree": {"input": {"depth": 3}},
    }  # fmt: skip
    run = installation.submit(
        tasks, ROLES, defaults={"reserve": {"tokens": 5}}, limits=TREE_LIMITS, on_completion="drain"
    )
    report = installation.rest(run)
    assert report["status"] == "completed", report["stop"]
    results = {name: task.get("result") for name, task in report["tasks"].items()}
    assert results["lead"] == {"parts": [0, 2, 4], "attempt": 2}
    assert results["lead_async"] == {"parts": [0, 2, 4], "more": 42, "attempt": 3}
    assert results["catches"] == ["failed", "permanent", "Permanent", "no such page", "catches[0]"]
    assert results["retried"] == {"tasks": ["retried[0]", "retried[1]"], "sum": 2}
    assert results["tree"] == 15, "three levels of children below it"
    error = report["tasks"]["does_not_catch"]["error"]
    assert (error["class"], error["type"]) == ("permanent", "ChildFailed")
    assert "no such page" in error["message"]
    unknown, guarded, invalid = results["refused"]
    assert "a role with the capability fly" in unknown
    assert "may_spawn" in guarded
    assert "tasks.leaf.max_attempts" in invalid
    assert len([name for name in report["tasks"] if name.startswith("retried[")]) == 2, (
        "found, not made again"
    )
    leaves = len([name for name in report["tasks"] if name.startswith(("lead[", "lead_async[", "retried["))])
    assert (leaves, report["budgets"]["tokens"]["used"]) == (9, 90), "each child's use is counted once"
    assert report["budgets"]["tokens"]["reserved"] == 0


def test_a_tree_is_no_deeper_than_the_team_allows(installation: Installation, start_worker: Start) -> None:
    start_worker("--mode", "inline", handlers=HANDLERS)
    run = installation.submit({"tree": {"input": {"depth": 3}}}, ROLES, limits={"max_depth": 2})
    report = installation.rest(run)
    assert report["status"] == "critical_failure"
    assert "max_depth" in report["tasks"]["tree"]["error"]["message"]


@pytest.mark.parametrize("mode", ["fork", "inline"])
def test_a_background_child_is_not_waited_for(
    installation: Installation, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    start_worker("--mode", mode, "-c", "2", handlers=HANDLERS)
    tasks = {"background": {"input": {"dir": str(tmp_path)}}}
    run = installation.submit(tasks, ROLES, on_completion="drain")
    installation.until((tmp_path / "began").exists, "the child began")
    installation.until(
        lambda: installation.task(run, "background")["state"] == "succeeded", "the parent ended"
    )
    assert installation.task(run, "background[0]")["state"] == "running"
    assert installation.status(run) == "running", "with drain the run waits for it"
    (tmp_path / "go").touch()
    report = installation.rest(run)
    assert report["tasks"]["background"]["result"]["attempt"] == 1
    assert "not waited for" in report["tasks"]["background"]["result"]["said"]
    assert report["tasks"]["background[0]"]["state"] == "succeeded"


@pytest.mark.parametrize("mode", ["fork", "inline"])
def test_a_parent_that_fails_cancels_its_children(
    installation: Installation, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    start_worker("--mode", mode, "-c", "2", handlers=HANDLERS)
    tasks = {"gives_up": {"required": False, "input": {"dir": str(tmp_path)}}, "leaf": {"input": {"n": 1}}}
    run = installation.submit(tasks, ROLES, on_completion="drain")
    report = installation.rest(run)
    assert report["tasks"]["gives_up"]["state"] == "failed"
    assert report["tasks"]["gives_up[0]"]["state"] == "canceled"
    installation.until(
        lambda: (
            [one["outcome"] for one in installation.records(run, "cancellations")] == ["completed_anyway"]
        ),
        "the child was told, and said how it ended",
    )


def test_a_worker_that_dies_while_a_parent_waits(
    installation: Installation, start_worker: Start, tmp_path: Path
) -> None:
    first = start_worker("--mode", "fork", handlers=HANDLERS)
    run = installation.submit({"waits": {"input": {"dir": str(tmp_path)}}}, ROLES)
    installation.until((tmp_path / "began").exists, "the child began")
    installation.until(lambda: installation.task(run, "waits")["state"] == "awaiting", "the parent waits")
    assert installation.task(run, "waits")["lease"] == "", "it holds no lease"
    os.kill(worker_pid(first.pid), signal.SIGKILL)  # its supervisor starts another
    installation.until(lambda: (tmp_path / "began").read_text() == "2", "the child is tried again")
    (tmp_path / "go").touch()
    report = installation.rest(run)
    assert report["status"] == "completed", report["stop"]
    outcomes = [attempt["outcome"] for attempt in report["tasks"]["waits[0]"]["attempts"]]
    assert outcomes == ["lost", "succeeded"]
    assert [attempt["outcome"] for attempt in report["tasks"]["waits"]["attempts"]] == [
        "awaiting",
        "succeeded",
    ]
    assert list(report["tasks"]) == ["waits", "waits[0]"]


# -- one handler alone -----------------------------------------------------------------------------------


def test_run_handler_plays_children() -> None:
    waiting = run_handler(durable.lead)
    assert waiting.outcome == "children"
    assert waiting.spawned["part-1"] == {"capability": "leaf", "input": {"n": 1}}
    done = run_handler(
        durable.lead_async, children={f"part-{n}": {"n": n} for n in range(3)} | {"late": {"n": 9}}
    )
    assert done.result == {"parts": [0, 1, 2], "more": 9, "attempt": 1}
    failed = run_handler(durable.catches, children={"bad": Permanent("gone")})
    assert failed.result == ["failed", "permanent", "Permanent", "gone", "child[0]"]


def test_a_task_group_that_waits_is_left_but_a_failure_in_it_counts() -> None:
    waiting = run_handler(durable.lead_async, children={f"part-{n}": {"n": n} for n in range(3)})
    assert waiting.outcome == "children"
    failed = run_handler(
        durable.lead_async, children={f"part-{n}": {"n": n} for n in range(3)} | {"late": Permanent("gone")}
    )
    assert failed.outcome == "permanent"


def test_a_local_run_has_workers_for_every_role_that_may_be_spawned_for() -> None:
    roles = {
        "lead": {"capabilities": ["lead"], "may_spawn": ["lead", "searcher"]},
        "searcher": {"capabilities": ["search"], "may_spawn": ["reader"]},
        "reader": {"capabilities": ["read"], "may_spawn": ["lead"]},
        "idle": {"capabilities": ["nap"]},
    }
    team = make_team({"team": "t", "roles": roles, "tasks": {"lead": {}}})
    assert with_spawned(team, {"lead"}) == {"lead", "searcher", "reader"}
