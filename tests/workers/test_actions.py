"""Side effects with a real coordinator: done once, receipts replayed, doubts left to handler or person (SPEC 7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.workers import durable_handlers as durable
from tests.workers.conftest import Start
from tests.workers.installation import Installation
from workers import Transient, handler
from workers.testing import run_handler

HANDLERS = Path(durable.__file__)
TASKS = (
    "once", "once_async", "fails_first", "checked", "checked_not_done", "repeatable", "doubtful", "no_json",
    "again_in_one_attempt", "keeps", "asks",
)  # fmt: skip


def effects(place: Path, task: str) -> list[str]:
    file = place / task
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize("mode", ["fork", "inline"])
def test_what_handlers_do_is_done_once_and_found_again(
    installation: Installation, start_worker: Start, tmp_path: Path, mode: str
) -> None:
    start_worker("--mode", mode, "--artifacts", str(tmp_path / "kept"), handlers=HANDLERS)
    keys = {"max_attempts": 3, "backoff": 0, "required": False, "input": {"dir": str(tmp_path)}}
    tasks: dict[str, Any] = dict.fromkeys(TASKS, keys) | {"asks": {}}
    run = installation.submit(tasks, {"clerk": {"capabilities": list(TASKS)}}, on_completion="drain")
    report = installation.rest(run)
    assert report["status"] == "needs_review", "everything else is done, two wait for a person"

    def result(task: str) -> Any:
        return report["tasks"][task].get("result")

    done = {task: effects(tmp_path, task) for task in TASKS}
    assert (result("once"), done["once"]) == ({"by": 1}, ["1"])
    assert (result("once_async"), done["once_async"]) == ([{"by": 1}, {"by": 1}], ["1", "1"])
    assert result("fails_first") == 2
    assert (result("checked"), done["checked"]) == ({"found": ["1"]}, ["1"])
    assert (result("checked_not_done"), done["checked_not_done"]) == ({"by": 2}, ["2"])
    assert (result("repeatable"), done["repeatable"]) == ({"by": 2}, ["1", "2"])
    assert report["tasks"]["no_json"]["error"]["type"] == "TypeError"
    assert done["no_json"] == ["1"]
    assert result("again_in_one_attempt") == {"done": 1}
    states = {(one["task"], one["key"]): one["state"] for one in report["actions"]}
    unknown = {("doubtful", "pay"): "unknown", ("again_in_one_attempt", "pay"): "unknown"}
    assert states == dict.fromkeys(states, "confirmed") | unknown
    _check_artifacts(installation, run, tmp_path / "kept", result("keeps"))
    _decide_doubt(installation, run, done["doubtful"])
    assert installation.client.answer(run, "asks", '{"order": 7}').status == "applied"
    installation.until(lambda: installation.task(run, "asks")["state"] == "succeeded", "the answer came")
    report = installation.rest(run)
    assert report["tasks"]["asks"]["result"] == {"answer": {"order": 7}}
    assert report["tasks"]["doubtful"]["result"] == {"no": 1}
    assert effects(tmp_path, "doubtful") == ["1"]


def _check_artifacts(installation: Installation, run: str, kept: Path, digests: list[str]) -> None:
    records = {one["name"]: one for one in installation.records(run, "artifacts")}
    assert [records[name]["digest"] for name in ("page", "raw", "other")] == digests
    assert digests[0] == digests[1]
    assert sorted(path.read_text() for path in (kept / run).iterdir()) == ["a page", "x"]
    assert records["page"]["url"] == f"file://{kept / run}/{digests[0].removeprefix('sha256:')}"


def _decide_doubt(installation: Installation, run: str, done: list[str]) -> None:
    assert done == ["1"]
    assert installation.task(run, "doubtful")["state"] == "needs_review"
    [review] = installation.records(run, "reviews")
    assert (review["kind"], review["task"]) == ("unknown_action", "doubtful")
    answer = installation.client.decide_action(
        run, "doubtful", "pay", "confirmed", payload=json.dumps({"no": 1})
    )
    assert answer.status == "applied", answer
    installation.until(lambda: installation.task(run, "doubtful")["state"] == "succeeded", "it went on")


# -- one handler alone -----------------------------------------------------------------------------------


@handler("pays")
def pays(context: Any) -> Any:
    return context.action("pay", lambda: {"paid": 5}, details={"to": "x"})


@handler("pays_badly")
def pays_badly(context: Any) -> Any:
    def do() -> None:
        raise Transient("refused")

    return context.action("pay", do)


def test_run_handler_tells_actions_and_replays_receipts() -> None:
    done = run_handler(pays)
    assert (done.result, done.actions) == ({"paid": 5}, {"pay": "confirmed"})
    again = run_handler(pays, receipts={"pay": {"paid": 4}})
    assert (again.result, again.actions) == ({"paid": 4}, {})
    failed = run_handler(pays_badly)
    assert (failed.outcome, failed.actions) == ("transient", {"pay": "failed"})


def test_a_canceled_attempt_begins_no_action(tmp_path: Path) -> None:
    done = run_handler(durable.once, {"dir": str(tmp_path)}, canceled=True)
    assert done.outcome == "canceled"
    assert effects(tmp_path, "once") == []
    assert done.actions == {"pay": "failed"}, "said to be not done, if it was recorded as started"


def test_a_key_that_no_message_carries_is_refused_before_anything_is_done() -> None:
    @handler("long")
    def long(context: Any) -> Any:
        return context.action("k" * 300, lambda: 1)

    done = run_handler(long)
    assert done.error is not None
    assert (done.error["type"], done.actions) == ("Unsayable", {})
    assert "test_actions.py" in done.error["where"], "where the handler called, not where ours raised"
