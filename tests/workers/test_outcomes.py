"""How what a handler does becomes a recorded, classified attempt; both modes alike (SPEC 3, 8)."""

from __future__ import annotations

import json

import pytest

from tests.workers.conftest import Start
from tests.workers.peer import Peer

MODES = ("fork", "inline")
CASES = [
    ("transient", "transient", "Transient", 1500),
    ("missing", "missing_input", "MissingInput", 0),
    ("permission", "permission", "PermissionDenied", 0),
    ("permanent", "permanent", "Permanent", 0),
    ("invalid", "invalid_output", "InvalidOutput", 0),
    ("huge", "permanent", "ValueError", 0),
    ("system_exit", "permanent", "SystemExit", 0),
    ("interrupt", "permanent", "KeyboardInterrupt", 0),
    ("nothing", "invalid_output", "InvalidOutput", 0),
    ("no_json", "invalid_output", "InvalidOutput", 0),
    ("nan", "invalid_output", "InvalidOutput", 0),
    ("too_large", "invalid_output", "OutputTooLarge", 0),
]


@pytest.mark.parametrize("mode", MODES)
def test_every_failure_is_classified_and_the_worker_goes_on(
    peer: Peer, start_worker: Start, mode: str
) -> None:
    for kind, *_ in CASES:
        peer.task(kind, "fail", input={"kind": kind})
    peer.task("after", "echo")
    peer.relaunches = True  # what waits while 50 MB of text are cut is handed back
    start_worker("--mode", mode)
    peer.launch(*(kind for kind, *_ in CASES), "after")
    for kind, outcome, error_type, wait in CASES:
        end = peer.wait("end", task=kind)
        error = json.loads(end.error)
        assert (end.outcome, error["class"], error["type"], end.retry_after_ms) == (
            outcome,
            outcome,
            error_type,
            wait,
        )
        assert set(error) == {"class", "type", "message", "where", "traceback"}
        assert len(end.error) < 40_000
    assert json.loads(peer.wait("end", task="missing").payload) == {"ask": "which order?"}
    assert "[cut: 50000000 characters]" in json.loads(peer.wait("end", task="huge").error)["message"]
    assert peer.wait("end", task="too_large").payload == ""
    assert peer.wait("end", task="after").outcome == "succeeded"


@pytest.mark.parametrize(("kind", "error_type", "words"), [
    ("exit", "ProcessExited", "exit code 0"),
    ("killed", "ProcessKilled", "SIGKILL"),
])  # fmt: skip
def test_a_silent_death_in_fork_mode_is_seen_at_once(
    peer: Peer, start_worker: Start, kind: str, error_type: str, words: str
) -> None:
    peer.task("dies", "fail", input={"kind": kind})
    peer.task("after", "echo")
    start_worker("--mode", "fork")
    peer.launch("dies", "after")
    end = peer.wait("end", task="dies")
    error = json.loads(end.error)
    assert (end.outcome, error["type"]) == ("transient", error_type)
    assert words in error["message"]
    assert peer.wait("end", task="after").outcome == "succeeded"


@pytest.mark.parametrize("mode", MODES)
def test_input_is_resolved_and_checked_and_results_are_passed(
    peer: Peer, start_worker: Start, mode: str
) -> None:
    big = 15947634569000323 * 10**9
    peer.task("order", "typed", input={"id": {"from": "inputs.order_id"}}, inputs={"order_id": 7})
    peer.task("misfit", "typed", input={"id": "x"})
    peer.task("unresolved", "typed", input={"id": {"from": "tasks.a.result"}})
    peer.task(
        "big", "echo", input={"from": "tasks.a.result"}, results={"a": {"id": big}}, states={"a": "succeeded"}
    )
    start_worker("--mode", mode)
    peer.launch("order", "misfit", "unresolved", "big")
    assert json.loads(peer.wait("end", task="order").payload) == {"id": 7, "total": "9.99"}
    for task, error_type in (("misfit", "InputInvalid"), ("unresolved", "InputUnresolved")):
        end = peer.wait("end", task=task)
        assert (end.outcome, json.loads(end.error)["type"]) == ("permanent", error_type)
    payload = json.loads(peer.wait("end", task="big").payload)
    assert payload == {
        "input": {"id": big},
        "task": "big",
        "results": {"a": {"id": big}},
        "states": {"a": "succeeded"},
    }


@pytest.mark.parametrize("mode", MODES)
def test_use_says_totals_and_answers_over_budget(peer: Peer, start_worker: Start, mode: str) -> None:
    peer.over_budget_at = 200
    peer.task("spend", "spend")
    start_worker("--mode", mode)
    peer.launch("spend")
    end = peer.wait("end", task="spend")
    assert json.loads(end.payload) == {"first": False, "second": True, "tokens": 300, "cost": "0.250001"}
    assert (end.tokens, end.cost_micros) == (300, 250_001)
    assert [(e.tokens, e.cost_micros) for e in peer.entries if e.kind == "use"] == [
        (100, 250_000),
        (300, 250_001),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_results_that_do_not_fit_the_grant_come_in_pages(peer: Peer, start_worker: Start, mode: str) -> None:
    peer.pages = [{"results": {f"t{n}": n}, "states": {f"t{n}": "succeeded"}} for n in range(3)]
    peer.task("sum", "echo", pages=3)
    start_worker("--mode", mode)
    peer.launch("sum")
    payload = json.loads(peer.wait("end", task="sum").payload)
    assert payload["results"] == {"t0": 0, "t1": 1, "t2": 2}
    assert payload["states"] == {f"t{n}": "succeeded" for n in range(3)}
