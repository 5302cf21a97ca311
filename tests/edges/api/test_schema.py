"""The OpenAPI document against the running server: schemathesis with all its checks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from coordinator.api.gate import Settings
from tests.edges.api.test_people import conflict
from tests.edges.api.test_runs import say, submit
from tests.support.api_server import running_api, running_coordinator

pytestmark = pytest.mark.process

CONFIG = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = os.environ.get("CREWLINE_SCHEMATHESIS_EXAMPLES", "8")
SETTINGS = Settings(rate=1e6, burst=1e6, failures=1e6, stream_seconds=0.5)


ONE_BY_ONE = ("--phases", "examples,coverage,fuzzing", "--include-method")
PARTS = {
    "reading": [*ONE_BY_ONE, "GET"],
    "moving": [*ONE_BY_ONE, "POST"],
    "in a row": ["--phases", "stateful"],
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", PARTS)
def test_all_checks_of_schemathesis(redis_url: str, tmp_path: Path, part: str) -> None:
    with running_coordinator(redis_url), running_api(redis_url, tmp_path, SETTINGS) as served:
        authorization = f"Bearer {served.secrets['all']}"
        with httpx.Client(base_url=f"{served.url}/api/v1", headers={"Authorization": authorization}) as api:
            seeded, review = conflict(api)
            moved = submit(api, run="moved")
            say(api, f"/runs/{moved}/tasks/order/reports", state="working")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run"),
                *(f"{served.url}/api/v1/openapi.json", "--checks", "all", "--max-examples", EXAMPLES),
                *("--header", f"Authorization: {authorization}", "--no-color", *PARTS[part]),
            ],
            cwd=tmp_path,
            env={
                **os.environ,
                "SEEDED_RUN": seeded,
                "SEEDED_REVIEW": review["id"],
                "MOVED_RUN": moved,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        print(done.stdout)
        assert done.returncode == 0
