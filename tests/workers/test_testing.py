"""What users test with: one handler alone, and a whole team (SPEC 8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from tests.workers import sample_handlers as samples
from workers.testing import HandlerRun, TeamRun, run_handler, run_team

pytestmark = pytest.mark.process

pytest_plugins = ["workers.testing.pytest_plugin"]

HANDLERS = """
from workers import Context, Permanent, handler

@handler("read")
async def read(context: Context, input: dict[str, int]) -> dict[str, int]:
    return {"n": input["n"]}

@handler("double")
def double(context: Context) -> dict[str, int]:
    if context.results["read"]["n"] < 0:
        raise Permanent("negative")
    return {"n": context.results["read"]["n"] * 2}
"""
TEAM = {
    "team": "doubling",
    "inputs": {"n": {"type": "integer"}},
    "roles": {"clerk": {"capabilities": ["read", "double"]}},
    "tasks": {"read": {"input": {"n": {"from": "inputs.n"}}}, "double": {"requires": ["read"]}},
    "output": {"from": "tasks.double.result"},
}


def test_one_handler_alone() -> None:
    one = run_handler(samples.typed, {"id": 7})
    assert (one.succeeded, one.result) == (True, {"id": 7, "total": "9.99"})
    assert run_handler(samples.typed, {"id": "x"}).outcome == "permanent"
    missing = run_handler(samples.fail, {"kind": "missing"})
    assert (missing.outcome, missing.question) == ("missing_input", {"ask": "which order?"})
    assert run_handler(samples.fail, {"kind": "transient"}).retry_after_ms == 1500
    assert run_handler(samples.async_echo, task="t").result == {"task": "t"}
    spent = run_handler(samples.spend, max_tokens=200)
    assert (spent.result["second"], spent.tokens, spent.cost) == (True, 300, Decimal("0.250001"))


def test_a_handler_sees_what_the_test_says(crewline_handler: Callable[..., HandlerRun]) -> None:
    one = crewline_handler(samples.echo, {"from": "inputs.x"}, results={"a": 1})
    assert one.result == {
        "input": {"from": "inputs.x"}, "task": "echo", "results": {"a": 1}, "states": {"a": "succeeded"},
    }  # fmt: skip
    error = crewline_handler(samples.fail, {"kind": "permanent"}).error
    assert error is not None
    assert (error["class"], error["type"], error["message"]) == ("permanent", "Permanent", "never")
    assert "sample_handlers.py" in error["where"]
    assert "attempt.py" not in error["traceback"]
    assert crewline_handler(samples.until_draining, {"file": "/dev/null"}, draining=True).result == {
        "drained": True
    }
    assert len(crewline_handler(samples.beats, {"seconds": 0.05}).heartbeats) >= 1


def test_a_whole_team(crewline_team: Callable[..., TeamRun], tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    done = crewline_team(TEAM, {"n": 4}, handlers=tmp_path / "handlers.py")
    assert (done.exit_code, done.status, done.output) == (0, "completed", {"n": 8}), done.stderr
    assert done.task("double")["state"] == "succeeded"


def test_a_team_file_with_its_own_handlers_that_fails(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    (tmp_path / "team.json").write_text(json.dumps({**TEAM, "handlers": "handlers.py"}))
    done = run_team(tmp_path / "team.json", {"n": -1}, options=("--mode", "inline"))
    assert (done.exit_code, done.status) == (1, "critical_failure"), done.stderr
    assert done.task("double")["attempts"][0]["error"]["message"] == "negative"
    refused = run_team(tmp_path / "team.json", {"n": "x"})
    assert (refused.exit_code, refused.report) == (2, {})
