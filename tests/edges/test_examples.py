"""The examples do what their files say, through the real command line: processes, Redis, exit codes, reports."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT, arguments, crewline, environment

pytestmark = pytest.mark.process

EXAMPLES = ROOT / "examples"
REFUND = EXAMPLES / "refund"
AUDIT = EXAMPLES / "repo-audit" / "team.yaml"
TEAMS = [*REFUND.glob("*.yaml"), AUDIT, EXAMPLES / "scenario.json"]


def run(home: Path, team: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Runs a team in a folder of its own; its exit code and its report."""
    done = crewline("run", str(team), *words, "--json", cwd=home)
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, report


def states(report: dict[str, Any]) -> dict[str, str]:
    return {name: task["state"] for name, task in report["tasks"].items() if "[" not in name}


@pytest.mark.parametrize("team", TEAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_team_file_is_sound(team: Path) -> None:
    assert crewline("check", str(team)).returncode == 0


def test_a_refund_is_decided_and_answered_by_letter(tmp_path: Path) -> None:
    code, report = run(tmp_path, REFUND / "team.yaml")
    assert (code, report["status"]) == (0, "completed")
    assert states(report) == {"order": "succeeded", "policy": "succeeded", "style": "succeeded"}
    assert report["output"]["refund"] == "67.30"
    assert "Dear Ines Keller" in report["tasks"]["style"]["result"]["text"]


def test_an_item_without_a_rule_fails_the_run_and_blocks_the_letter(tmp_path: Path) -> None:
    code, report = run(tmp_path, REFUND / "team-policy-fails.yaml")
    assert (code, report["status"]) == (1, "critical_failure")
    assert states(report) == {"order": "succeeded", "policy": "failed", "style": "blocked"}
    assert report["first_failure"]["task_id"] == "policy"
    assert report["tasks"]["style"]["blocked_by"] == {"root": "policy", "path": ["policy", "style"]}
    assert "no rule for gift_card" in report["tasks"]["policy"]["error"]["message"]
    assert report["tasks"]["order"]["result"]["id"] == "B-2002"


def test_a_language_without_a_letter_fails_the_letter_alone(tmp_path: Path) -> None:
    code, report = run(tmp_path, REFUND / "team-style-fails.yaml")
    assert (code, report["status"]) == (0, "completed")
    assert states(report) == {"order": "succeeded", "policy": "succeeded", "style": "failed"}
    assert report["output"]["approved"] is False


def test_an_order_that_is_not_on_file_is_asked_for(tmp_path: Path) -> None:
    code, report = run(tmp_path, REFUND / "team.yaml", "--input", "order_id=Z-9999")
    assert (code, report["status"]) == (1, "paused")
    assert states(report)["order"] == "awaiting"


def make_checkout(root: Path) -> None:
    """A small checkout with one thing of every kind that the audit looks for."""
    files = {
        "pyproject.toml": '[project]\nname = "small"\ndependencies = ["rich>=1", "no-such-distribution"]\n',
        "small/__init__.py": "",
        "small/good.py": "import json\nimport rich\nfrom small import broken\n# TODO: say more\n",
        "small/broken.py": "def f(:\n",
        "small/loose.py": "import pydantic\nimport nowhere\ntry:\n    import maybe\nexcept ImportError:\n    pass\n",
        "tests/test_small.py": "def test_one():\n    pass\n\n\nclass TestTwo:\n    def test_two(self):\n        pass\n",
        ".venv/lib/ignored.py": "import nowhere\n",
    }
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_the_audit_finds_what_is_there(tmp_path: Path) -> None:
    make_checkout(tmp_path / "checkout")
    code, report = run(tmp_path, AUDIT, "--input", "path=checkout")
    assert (code, report["status"]) == (0, "completed")
    output = report["output"]
    wanted = {"packages": 2, "files": 5, "tests": 2, "test_files": 1, "syntax_faults": 1, "todos": 1}
    assert {name: output["totals"][name] for name in wanted} == wanted
    assert output["syntax_faults"][0]["file"] == "small/broken.py"
    loose = [(item["module"], item["kind"], item["optional"]) for item in output["loose_imports"]]
    assert loose == [
        ("pydantic", "undeclared", False),
        ("nowhere", "unresolved", False),
        ("maybe", "unresolved", True),
    ]
    licences = {item["name"]: item["licence"] for item in output["dependencies"]}
    assert licences["no-such-distribution"] == "not installed"
    assert "MIT" in licences["rich"]
    assert output["clean"] is False
    assert "small/good.py:4 TODO say more" in output["markdown"]


def test_the_audit_fails_where_there_is_no_checkout(tmp_path: Path) -> None:
    code, report = run(tmp_path, AUDIT, "--input", "path=nowhere", "--mode", "inline")
    assert (code, report["status"]) == (1, "critical_failure")
    assert states(report)["summary"] in ("blocked", "canceled")


def test_the_audit_reads_this_project(tmp_path: Path) -> None:
    code, report = run(tmp_path, AUDIT, "--input", f"path={ROOT}", "--mode", "inline")
    assert (code, report["status"]) == (0, "completed")
    output = report["output"]
    assert output["totals"]["syntax_faults"] == 0
    assert output["totals"]["tests"] > 100
    assert {"redis", "rq", "pydantic"} <= {item["name"] for item in output["dependencies"]}
    packages = len(report["tasks"]["packages"]["result"]["packages"])
    assert len(report["tasks"]["syntax"]["result"]) == packages > 10


def test_the_scenario_is_played_the_same_twice(tmp_path: Path) -> None:
    texts = []
    for name in ("one.json", "two.json"):
        done = crewline("simulate", str(EXAMPLES / "scenario.json"), "--output", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]
    report = json.loads(texts[0])
    found = states(report)
    assert report["status"] == "completed"
    assert found["sign"] == found["legal"] == "denied"
    assert found["mirror"] == found["mail"] == found["chart"] == "blocked"
    assert found["figures"] == "needs_review"
    assert found["load"] == "failed"
    assert found["hotfix_note"] == "skipped"
    assert len(report["result_conflicts"]) == 2
    assert len(report["tasks"]["translations"]["result"]) == 3
    kinds = {event["kind"] for event in report["events"]}
    assert {"attempt_failed", "attempt_lost", "attempt_timed_out", "duplicate_result_ignored"} <= kinds


def test_exploring_the_refund_finds_no_violated_invariant() -> None:
    done = crewline("simulate", str(REFUND / "team.yaml"), "--explore", "30")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def installation(redis_url: str) -> Iterator[str]:
    """A coordinator process on the test's Redis; its address."""
    process = subprocess.Popen(arguments("coordinator", "--redis", redis_url), env=environment())
    yield redis_url
    process.terminate()
    process.wait()


def test_a_team_whose_members_live_elsewhere_is_judged_by_reports(installation: str, tmp_path: Path) -> None:
    at = {"CREWLINE_REDIS_URL": installation}
    submitted = crewline("submit", str(REFUND / "team-external.yaml"), "--json", env=at)
    assert submitted.returncode == 0, submitted.stderr
    name = json.loads(submitted.stdout)["run"]
    assert crewline("report-task", name, "nobody", "completed", env=at).returncode == 2
    payload = tmp_path / "order.json"
    payload.write_text('{"total": "67.30"}')
    said = []
    for words in (
        ("order", "completed", "--payload", str(payload)),
        ("policy", "failed"),
        ("style", "completed"),
    ):
        done = crewline("report-task", name, *words, env=at)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert said == ["running", "critical_failure", "late_ignored"]
    report = json.loads(crewline("report", name, "--json", env=at).stdout)
    assert states(report) == {"order": "succeeded", "policy": "failed", "style": "canceled"}
    assert report["tasks"]["order"]["result"] == {"total": "67.30"}
