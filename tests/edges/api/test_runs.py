"""The API as a client sees it: submit, read, move a run, and what each fault looks like."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.edges.api.conftest import Open
from tests.support.api_server import running_api, running_coordinator
from tests.support.waiting import until

TEAM: dict[str, Any] = {
    "team": "refund",
    "inputs": {"order": {"type": "integer", "default": 1}},
    "tasks": {
        "order": {"external": True, "idempotency_key": "k"},
        "policy": {"external": True, "requires": ["order"]},
    },
}


def submit(api: httpx.Client, **more: Any) -> str:
    answer = api.post("/runs", json={"team": TEAM, **more})
    assert answer.status_code == 201, answer.text
    run: str = answer.json()["run"]
    return run


def say(api: httpx.Client, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = api.post(path, json=body)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def report(api: httpx.Client, run: str, task: str, payload: Any = None, **more: Any) -> dict[str, Any]:
    return say(api, f"/runs/{run}/tasks/{task}/reports", state="completed", payload=payload, **more)


def test_a_run_from_submit_to_report(api: httpx.Client) -> None:
    answer = api.post("/runs", json={"team": TEAM, "inputs": {"order": 10**20}})
    assert answer.status_code == 201
    run = answer.json()["run"]
    assert answer.headers["location"] == f"/api/v1/runs/{run}"
    assert api.get(f"/runs/{run}").json()["status"] == "running"
    assert say(api, f"/runs/{run}/tasks/order/reports", state="working")["run_status"] == "running"
    assert report(api, run, "order", {"amount": 120})["word"] == ""
    assert report(api, run, "policy", tokens=5, cost="0.25")["run_status"] == "completed"
    assert report(api, run, "order", {"amount": 120}, key="k")["word"] in (
        "duplicate_result_ignored",
        "late_ignored",
    )
    found = json.loads(api.get(f"/runs/{run}/report").text)
    assert found["inputs"] == {"order": 10**20}
    assert found["tasks"]["order"]["result"] == {"amount": 120}
    markdown = api.get(f"/runs/{run}/report", params={"format": "markdown"})
    assert markdown.headers["content-type"].startswith("text/markdown")
    assert api.get(f"/runs/{run}/explain").json()["status"] == "completed"
    tasks = api.get(f"/runs/{run}/tasks", params={"limit": 1}).json()
    assert [task["id"] for task in tasks["tasks"]] == ["order"]
    assert tasks["next_offset"] == 1


def test_the_same_key_and_body_is_the_same_run(api: httpx.Client, open_client: Open) -> None:
    headers = {"Idempotency-Key": "order 7"}
    first = api.post("/runs", json={"team": TEAM}, headers=headers)
    again = api.post("/runs", json={"team": TEAM}, headers=headers)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["run"] == again.json()["run"]
    assert again.json()["repeated"] is True
    other = api.post("/runs", json={"team": {**TEAM, "team": "other"}}, headers=headers)
    assert other.status_code == 422
    assert "Idempotency-Key" in other.json()["detail"]
    elsewhere = open_client("submit").post("/runs", json={"team": TEAM}, headers=headers)
    assert elsewhere.json()["run"] != first.json()["run"], "a key belongs to a token"


def test_many_at_once_make_one_run(api: httpx.Client) -> None:
    def send(_: int) -> httpx.Response:
        return api.post("/runs", json={"team": TEAM}, headers={"Idempotency-Key": "one"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(16)))
    assert {answer.status_code for answer in answers} <= {200, 201, 409}
    assert sum(answer.status_code == 201 for answer in answers) == 1
    assert len(api.get("/runs").json()["runs"]) == 1


def test_an_id_of_ones_own(api: httpx.Client) -> None:
    assert submit(api, run="mine") == "mine"
    other = api.post("/runs", json={"team": {**TEAM, "team": "other"}, "run": "mine"})
    assert (other.status_code, other.json()["word"]) == (409, "run_exists")
    both = api.post("/runs", json={"team": TEAM, "run": "x"}, headers={"Idempotency-Key": "k"})
    assert both.status_code == 422


def test_all_faults_of_a_team_are_listed(api: httpx.Client) -> None:
    answer = api.post("/runs", json={"team": {"team": "t", "tasks": {"a": {"colour": 1, "requires": ["b"]}}}})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.json()["faults"]) >= 2


@pytest.mark.parametrize(
    "body",
    [
        '{"team": {}, "team": {}}',
        '{"team": {"x": NaN}}',
        '{"team": {"x": 1e999}}',
        '{"team": {"x": "\\ud800"}}',
        "{",
        '{"team": []}',
        '{"team": {}, "more": 1}',
        "[" * 100 + "]" * 100,
    ],
)
def test_json_is_read_strictly(api: httpx.Client, body: str) -> None:
    answer = api.post("/runs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


def test_lists_have_filters_and_pages(api: httpx.Client) -> None:
    runs = [submit(api, run=f"r{n}") for n in range(5)]
    say(api, "/runs/r3/cancel", reason="a test")
    assert [row["run"] for row in api.get("/runs").json()["runs"]] == runs[::-1]
    page = api.get("/runs", params={"limit": 2, "status": "running"}).json()
    assert [row["run"] for row in page["runs"]] == ["r4", "r2"]
    rest = api.get("/runs", params={"limit": 2, "status": "running", "offset": page["next_offset"]}).json()
    assert [row["run"] for row in rest["runs"]] == ["r1", "r0"]
    assert rest["next_offset"] is None
    assert api.get("/runs", params={"team": "REFUN"}).json()["runs"]
    assert api.get("/runs", params={"team": "nobody"}).json()["runs"] == []
    assert api.get("/runs", params={"status": "happy"}).status_code == 422


def test_cancel_signal_and_refusals(api: httpx.Client) -> None:
    run = submit(api)
    assert say(api, f"/runs/{run}/signals", signal="go")["status"] == "applied"
    assert say(api, f"/runs/{run}/tasks/nobody/cancel", 404)["title"] == "Not Found"
    assert say(api, f"/runs/{run}/resume", 409)["word"] == "not_parked"
    key = {"Idempotency-Key": "c1"}
    first = api.post(f"/runs/{run}/tasks/order/cancel", json={"reason": "why"}, headers=key)
    again = api.post(f"/runs/{run}/tasks/order/cancel", json={"reason": "why"}, headers=key)
    assert [first.json()["status"], again.json()["status"]] == ["applied", "repeated"]
    assert say(api, "/runs/nobody/cancel", 404)["status"] == 404
    assert say(api, f"/runs/{run}/resume", 409)["word"] == "run_stopped"
    assert say(api, f"/runs/{run}/tasks/order/reports", 422, state="sleeping")["faults"]
    assert api.get("/runs/nobody").status_code == 404
    assert api.get("/runs/nobody/report").status_code == 404
    assert api.get("/nothing").json()["status"] == 404
    refused = api.delete("/runs")
    assert (refused.status_code, refused.json()["status"]) == (405, 405)


def test_a_parked_run_goes_on_with_a_raised_limit(api: httpx.Client) -> None:
    team = {**TEAM, "limits": {"max_steps": 1}, "on_limit": "pause"}
    run = api.post("/runs", json={"team": team}).json()["run"]
    assert report(api, run, "order", 1)["run_status"] == "paused"
    bad = say(api, f"/runs/{run}/resume", 422, **{"raise": {"max_steps": "many", "cost": "1.0000001"}})
    assert len(bad["faults"]) == 2
    assert say(api, f"/runs/{run}/resume", **{"raise": {"max_steps": "+10"}})["run_status"] == "running"
    assert api.get(f"/runs/{run}").json()["budgets"]["max_steps"]["limit"] == 11
    assert report(api, run, "policy")["run_status"] == "completed"


def test_without_a_coordinator_it_is_stored(redis_url: str, tmp_path: Path) -> None:
    with running_api(redis_url, tmp_path, answer_seconds=1) as served:
        headers = {"Authorization": f"Bearer {served.secrets['all']}", "Idempotency-Key": "k"}
        with httpx.Client(base_url=f"{served.url}/api/v1", headers=headers) as api:
            answer = api.post("/runs", json={"team": TEAM})
            assert answer.status_code == 503
            assert answer.json()["stored"] is True
            assert answer.headers["retry-after"]
            with running_coordinator(redis_url):
                again = until(
                    lambda: (found := api.post("/runs", json={"team": TEAM})).status_code == 200 and found,
                    "the request that was stored is applied",
                )
                assert again.json() == {"run": answer.json()["run"], "status": "running", "repeated": True}
