"""What people decide by the API: reviews, actions, the late ledger, answers; and live events."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx

from tests.edges.api.conftest import Open
from tests.edges.api.test_runs import report, say, submit
from tests.support.api_server import Served
from tests.support.waiting import until
from tests.support.wire_worker import WORK, Worker


def conflict(api: httpx.Client) -> tuple[str, dict[str, Any]]:
    """A run with a conflict about `order`, and its open review."""
    run = submit(api)
    report(api, run, "order", {"amount": 120})
    assert report(api, run, "order", {"amount": 130})["word"] == "result_conflict_detected"
    [review] = api.get("/reviews").json()["reviews"]
    return run, review


def test_a_conflict_is_decided_once_and_by_name(api: httpx.Client, open_client: Open) -> None:
    run, review = conflict(api)
    assert (review["run"], review["task"], review["kind"]) == (run, "order", "conflict")
    path = f"/runs/{run}/reviews/{review['id']}"
    detail = api.get(path).json()
    assert [entry["payload"] for entry in detail["evidence_list"]] == [{"amount": 120}, {"amount": 130}]
    chosen = {
        "decision": "accept",
        "digest": detail["evidence_list"][1]["digest"],
        "reason": "the later receipt is right",
        "version": detail["state_version"],
    }
    for fault in (
        {**chosen, "digest": None},
        {**chosen, "reason": ""},
        {**chosen, "payload": 1},
        {**chosen, "digest": f"sha256:{'0' * 64}"},
    ):
        assert say(api, f"{path}/decision", 422, **fault)["status"] == 422
    assert say(api, f"{path}/decision", 409, **{**chosen, "version": 1})["word"] == "stale_version"
    reviewer = open_client("review")
    assert say(reviewer, f"{path}/decision", **chosen)["run_status"] == "running"
    assert say(api, f"{path}/decision", 409, **chosen)["word"] == "already_decided"
    [decided] = api.get(f"/runs/{run}/reviews").json()["reviews"]
    assert (decided["decision"], decided["source"]) == ("accept", "only-review")
    assert api.get("/reviews").json()["reviews"] == []
    assert report(api, run, "policy")["run_status"] == "completed"


def test_a_result_is_supplied(api: httpx.Client) -> None:
    run, review = conflict(api)
    version, path = review["state_version"], f"/runs/{run}/reviews/{review['id']}/decision"
    say(api, path, decision="supply", payload={"amount": 125}, reason="asked them", version=version)
    found = api.get(f"/runs/{run}/report").json()
    assert found["tasks"]["order"]["result"] == {"amount": 125}
    assert say(api, f"/runs/{run}/reviews/x.9/decision", 404, decision="reject", reason="r", version=1)


def test_evidence_is_for_operators_and_reviewers(api: httpx.Client, open_client: Open) -> None:
    run, review = conflict(api)
    report(api, run, "order", "told to nobody")
    reader = open_client("read")
    seen = reader.get(f"/runs/{run}/report").json()
    assert seen["withheld"] == ["result_conflicts", "late_results"]
    assert {entry["payload"] for entry in seen["result_conflicts"]} == {None}
    for form in ("json", "markdown"):
        path, asked = f"/runs/{run}/report", {"format": form}
        assert "told to nobody" not in reader.get(path, params=asked).text
    for path in (
        "/reviews",
        f"/runs/{run}/reviews",
        f"/runs/{run}/reviews/{review['id']}",
        f"/runs/{run}/late",
    ):
        assert reader.get(path).status_code == 403
        assert open_client("review").get(path).status_code == 200


def test_late_results_are_kept(api: httpx.Client) -> None:
    run = submit(api)
    say(api, f"/runs/{run}/cancel", reason="enough")
    assert report(api, run, "order", {"amount": 1})["word"] == "late_ignored"
    page = api.get(f"/runs/{run}/late").json()
    [entry] = page["late"]
    assert (entry["payload"], entry["source"], entry["would_change"]) == ({"amount": 1}, "anna", True)
    assert page["next_offset"] is None


def test_a_question_is_answered(served: Served, api: httpx.Client) -> None:
    run = api.post("/runs", json={"team": WORK}).json()["run"]
    worker = Worker(served.place.redis)
    worker.end(run, worker.start(run), "missing_input", payload='"Which account?"')
    until(lambda: api.get(f"/runs/{run}").json()["status"] == "paused", "the run waits for the answer")
    answer = say(api, f"/runs/{run}/tasks/pay/answer", answer="the old one")
    assert (answer["status"], answer["run_status"]) == ("applied", "running")
    assert say(api, f"/runs/{run}/tasks/pay/answer", 409, answer="the new one")["word"] == "already_answered"


def test_an_action_of_which_nobody_knows_is_decided(served: Served, api: httpx.Client) -> None:
    run = api.post("/runs", json={"team": WORK}).json()["run"]
    worker = Worker(served.place.redis)
    lease = worker.start(run)
    worker.act(run, lease, "payment")
    [action] = api.get(f"/runs/{run}/actions").json()["actions"]
    assert (action["state"], action["details"], action["receipt"]) == ("started", {"amount": 120}, None)
    decision = {"task": "pay", "key": "payment", "state": "confirmed", "reason": "the bank says so"}
    refused = say(api, f"/runs/{run}/actions/decision", 404, **decision)
    assert refused["title"] == "Not Found"
    worker.end(run, lease, "transient")
    worker.start(run, attempt=2)
    say(api, f"/runs/{run}/actions/decision", **decision, receipt={"id": 7})
    [action] = api.get(f"/runs/{run}/actions").json()["actions"]
    assert (action["state"], action["receipt"], action["worker"]) == ("confirmed", {"id": 7}, "anna")


def messages(response: httpx.Response) -> Iterator[dict[str, str]]:
    """The messages of an event stream."""
    message: dict[str, str] = {}
    for line in response.iter_lines():
        if not line:
            if message:
                yield message
            message = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            message[name] = value


def test_events_come_live_and_can_be_resumed(api: httpx.Client) -> None:
    run = submit(api)
    seen: list[dict[str, str]] = []
    begun = threading.Event()

    def listen() -> None:
        with api.stream("GET", f"/runs/{run}/events", headers={"Accept": "text/event-stream"}) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            for message in messages(response):
                seen.append(message)
                begun.set()

    thread = threading.Thread(target=listen)
    thread.start()
    assert begun.wait(30)
    report(api, run, "order")
    report(api, run, "policy")
    thread.join(30)
    assert not thread.is_alive(), "the stream ends with the run"
    assert seen[-1]["event"] == "end"
    ids = [int(message["id"]) for message in seen if "id" in message]
    assert ids == list(range(1, len(ids) + 1))
    kinds = [json.loads(message["data"])["kind"] for message in seen if "id" in message]
    assert kinds[0] == "run_submitted"
    assert "run_stopped" in kinds
    resume = {"Accept": "text/event-stream", "Last-Event-ID": str(ids[2])}
    with api.stream("GET", f"/runs/{run}/events", headers=resume) as response:
        rest = [int(message["id"]) for message in messages(response) if "id" in message]
    assert rest == ids[3:]
    resume["Last-Event-ID"] = str(ids[-1])
    assert api.get(f"/runs/{run}/events", headers=resume).status_code == 204
    page = api.get(f"/runs/{run}/events", params={"after": 1, "limit": 2}).json()
    assert [event["seq"] for event in page["events"]] == [2, 3]
    assert page["next_after"] == 3


def test_a_redis_that_forgot_its_functions_gets_them_back(served: Served, api: httpx.Client) -> None:
    run = submit(api)
    served.place.redis.function_flush("SYNC")
    assert api.get(f"/runs/{run}").status_code == 200
