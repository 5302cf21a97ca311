"""`crewline simulate` and `crewline verify` as a user runs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from redis import Redis

from coordinator.cli.main import main
from coordinator.simulation.simulate import simulate
from tests.simulation.scenes import scene_of

EXAMPLES = Path(__file__).parents[2] / "examples"
Crewline = Callable[..., int]


@pytest.fixture
def crewline() -> Iterator[Crewline]:
    """Runs a command in this process; gives its exit code."""

    def run(*words: object) -> int:
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        return int(ended.value.code or 0)

    yield run
    structlog.reset_defaults()


def test_simulate_writes_the_same_bytes_twice(crewline: Crewline, tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    assert crewline("simulate", EXAMPLES / "scenario.json", "--output", one) == 0
    assert crewline("simulate", EXAMPLES / "scenario.json", "--output", other) == 0
    assert one.read_bytes() == other.read_bytes()
    assert json.loads(one.read_text())["status"] == "completed"


def test_the_plan_file_overlays_and_the_status_decides_the_code(
    crewline: Crewline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("policy: permanent_error\n")
    assert crewline("simulate", EXAMPLES / "refund" / "team.yaml", "--plan", plan) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "critical_failure"
    plan.write_text("nobody: success\npolicy: {outcome: what}\n")
    assert crewline("simulate", EXAMPLES / "refund" / "team.yaml", "--plan", plan) == 2
    said = capsys.readouterr().err
    assert "nobody" in said and "what" in said


def test_markdown(crewline: Crewline, capsys: pytest.CaptureFixture[str]) -> None:
    assert crewline("simulate", EXAMPLES / "scenario.json", "--markdown", "--seed", 3) == 0
    assert capsys.readouterr().out.startswith("# sim-3: completed")
    assert crewline("simulate", EXAMPLES / "scenario.json", "--markdown", "--explore", 2) == 2


def test_explore_says_that_nothing_was_violated(
    crewline: Crewline, capsys: pytest.CaptureFixture[str]
) -> None:
    assert crewline("simulate", EXAMPLES / "refund" / "team.yaml", "--explore", 3, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["seeds"], document["finding"]) == (3, None)
    assert crewline("simulate", EXAMPLES / "refund" / "team.yaml", "--explore-seed", 2) == 0
    assert "no violated invariant" in capsys.readouterr().out


def test_verify(crewline: Crewline, redis: Redis, redis_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    simulate(redis, scene_of({"a": {}}))
    assert crewline("verify", "sim", "--redis", redis_url) == 0
    assert capsys.readouterr().out == "equal\n"
    redis.hset("crewline:run:sim-0", "reports", "9")
    assert crewline("verify", "sim-0", "--redis", redis_url, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "differs" and "reports" in document["differs"]
    assert crewline("verify", "nobody", "--redis", redis_url) == 2
