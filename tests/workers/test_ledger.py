"""No charge is made twice: the ledger example, its worker killed at every moment of an action (SPEC 7, C-19)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT, arguments, environment
from tests.support.waiting import until

TEAM = ROOT / "examples" / "ledger" / "team.yaml"
MOMENTS = ("before_start", "before_effect", "after_effect", "confirmed")


def begin(home: Path, mode: str, moment: str = "") -> subprocess.Popen[str]:
    words = ["run", str(TEAM), "--input", f"ledger={home / 'ledger.jsonl'}", "--mode", mode, "--json"]
    env = environment({"LEDGER_STOP_AT": moment, "LEDGER_STOPPED": str(home / "stopped")})
    return subprocess.Popen(
        arguments(*words), cwd=home, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        out, err = process.communicate(timeout=90)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, err
    report: dict[str, Any] = json.loads(out)
    return report


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def charges(home: Path) -> Counter[str]:
    ledger = home / "ledger.jsonl"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return Counter(json.loads(line)["reference"].rpartition("/")[2] for line in lines)


def test_each_order_is_charged_once(tmp_path: Path) -> None:
    report = finish(begin(tmp_path, "fork"))
    assert report["output"] == {"charges": 3, "cents": 8479}
    assert charges(tmp_path) == {"A-1": 1, "A-2": 1, "A-3": 1}
    assert {(one["key"], one["state"]) for one in report["actions"]} == {("charge", "confirmed")}
    assert report["actions"][0]["details"]["account"] == "keller"


@pytest.mark.chaos
@pytest.mark.parametrize("mode", ["fork", "inline"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_worker_killed_at_any_moment_charges_nothing_twice(tmp_path: Path, mode: str, moment: str) -> None:
    process = begin(tmp_path, mode, moment)
    try:
        stopped = tmp_path / "stopped"
        handler = int(until(lambda: stopped.exists() and stopped.read_text(), "the handler stands still"))
        before = charges(tmp_path)["A-2"] if moment != "before_start" else 0
        os.kill(parent_of(handler) if mode == "fork" else handler, signal.SIGKILL)
    except BaseException:
        process.kill()
        raise
    report = finish(process)
    assert before == (1 if moment in ("after_effect", "confirmed") else 0)
    assert report["output"] == {"charges": 3, "cents": 8479}
    assert charges(tmp_path) == {"A-1": 1, "A-2": 1, "A-3": 1}, "no charge is made twice, none is missing"
    attempts = report["tasks"]["charge[1]"]["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["lost", "succeeded"]
    assert {(one["task"], one["state"]) for one in report["actions"]} == {
        (f"charge[{number}]", "confirmed") for number in range(3)
    }
    unknown = [event for event in report["events"] if event["kind"] == "action_unknown"]
    assert len(unknown) == (1 if moment in ("before_effect", "after_effect") else 0)
