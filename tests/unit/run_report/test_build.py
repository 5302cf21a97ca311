"""The report as data: SPEC 10 holds key by key, and the same run gives the same bytes."""

from __future__ import annotations

import copy
import json
from typing import Any

from coordinator.run_report import build_report, canonical_bytes

KEYS = {
    *(
        "schema",
        "run",
        "team",
        "inputs",
        "status",
        "state_version",
        "stop",
        "first_failure",
        "steps_used",
        "budgets",
    ),
    *(
        "tasks",
        "events",
        "result_conflicts",
        "late_results",
        "awaiting",
        "reviews",
        "actions",
        "artifacts",
        "cancellations",
        "background",
    ),
    *("output", "digest"),
}


def test_has_exactly_the_keys_of_the_contract(refund: Any) -> None:
    assert set(build_report(refund)) == KEYS


def test_the_same_run_gives_the_same_bytes(refund: Any) -> None:
    again = copy.deepcopy(refund)
    again.payloads = dict(reversed(again.payloads.items()))
    again.run = dict(reversed(again.run.items()))
    assert canonical_bytes(build_report(refund)) == canonical_bytes(build_report(again))


def test_another_content_has_another_digest(refund: Any) -> None:
    before = build_report(refund)["digest"]
    refund.tasks[0]["result_trust"] = ""
    assert build_report(refund)["digest"] != before


def test_the_bytes_are_json_with_one_task_a_line(refund: Any) -> None:
    report = build_report(refund)
    text = canonical_bytes(report).decode()
    assert json.loads(text) == report
    assert sum(line.startswith('  "policy": ') for line in text.splitlines()) == 1


def test_payloads_keep_integers_of_any_size(refund: Any) -> None:
    text = canonical_bytes(build_report(refund)).decode()
    assert '"result":{"rate":0.1,"total":12345678901234567890123}' in text


def test_stop_and_first_failure_name_their_events(refund: Any) -> None:
    report = build_report(refund)
    assert report["stop"] == {
        "reason": "critical_failure",
        "rule": None,
        "task": "policy",
        "seq": 9,
        "at": 1900,
        "cause": {
            "state": "failed",
            "reason": "permanent",
            "error": {
                "class": "permanent",
                "type": "FileNotFoundError",
                "message": "no policy",
                "where": "handlers.py:12",
            },
        },
        "also_true": ["step_limit"],
        "limit": None,
    }
    assert (report["first_failure"]["seq"], report["first_failure"]["kind"]) == (6, "attempt_lost")


def test_a_running_run_has_no_stop(new_snapshot: Any) -> None:
    report = build_report(new_snapshot())
    assert report["stop"] is None
    assert report["first_failure"] is None


def test_budgets_are_exact_and_without_a_limit_null(refund: Any) -> None:
    budgets = build_report(refund)["budgets"]
    assert budgets["step_budget"] == {"limit": 10, "used": 3, "reserved": 0, "overrun": False}
    assert budgets["max_steps"]["used"] == 6
    assert budgets["tokens"]["limit"] is None
    assert (budgets["cost"]["limit"], budgets["cost"]["used"]) == ("5.00", "0.250001")


def test_a_block_names_its_root_and_the_path_to_it(refund: Any) -> None:
    assert build_report(refund)["tasks"]["reply"]["blocked_by"] == {
        "root": "policy",
        "path": ["policy", "reply"],
    }


def test_a_stop_cancels_without_events_and_the_report_lists_it(refund: Any) -> None:
    [entry] = build_report(refund)["cancellations"]
    assert {name: value for name, value in entry.items() if value is not None} == {
        "task": "style",
        "was": "pending",
    }


def test_what_had_begun_and_was_canceled_is_an_interruption(refund: Any) -> None:
    refund.tasks[2]["was"] = "running"
    refund.event("task_queued", "style", "pending>queued", 1)
    refund.event("attempt_started", "style", "queued>running", 1, worker="w3")
    report = build_report(refund)
    attempt = report["tasks"]["style"]["attempts"][0]
    assert (attempt["outcome"], attempt["ended_at"]) == ("canceled", 1900)
    assert report["interruptions"] == [
        {"location": "tasks/style", "kind": "canceled", "headline": "⛔ canceled", "status": "canceled"}
    ]


def test_a_run_paused_by_a_limit_is_interrupted_by_a_limit(new_snapshot: Any) -> None:
    snapshot = new_snapshot("paused", locked_reason="tokens", stop_reason="paused", stop_limit="tokens")
    assert build_report(snapshot)["interruptions"][0]["kind"] == "limit_interrupted"


def test_conflicts_and_late_results_carry_their_payloads(new_snapshot: Any) -> None:
    snapshot = new_snapshot()
    snapshot.task("a", "needs_review", result_trust="conflicted")
    for arrival, text in enumerate(('{"v":1}', '{"v":2}'), start=1):
        digest = snapshot.result(f"sha256:{arrival}", text)
        entry = {
            "task": "a",
            "key": "k",
            "arrival": str(arrival),
            "digest": digest,
            "state_version": "4",
            "at": "1",
        }
        snapshot.conflicts.append(entry)
    late = {
        "task": "a",
        "source": "w",
        "attempt": "1",
        "at": "9",
        "digest": "sha256:2",
        "verdict": "late_ignored",
    }
    snapshot.late.append({**late, "would_change": "1", "state": "running"})
    report = build_report(snapshot)
    assert [(c["arrival"], c["payload"]) for c in report["result_conflicts"]] == [
        (1, {"v": 1}),
        (2, {"v": 2}),
    ]
    assert report["late_results"][0]["payload"] == {"v": 2}
    assert report["late_results"][0]["would_change"] is True


def test_the_output_is_resolved_once_its_results_are_there(refund: Any) -> None:
    refund.team["output"] = {"total": {"from": "tasks.order.result", "at": "/rate"}}
    assert build_report(refund)["output"] == {"total": 0.1}
    refund.team["output"] = {"from": "tasks.style.result"}
    assert build_report(refund)["output"] is None


def test_a_deadlock_names_its_cycle_and_who_merely_waits(new_snapshot: Any) -> None:
    snapshot = new_snapshot("deadlock", stop_reason="deadlock")
    snapshot.team = {
        "team": "t",
        "roles": {"clerk": {"capabilities": ["a", "b", "c", "free"]}},
        "tasks": {"a": {"requires": ["b"]}, "b": {"requires": ["a"]}, "c": {"requires": ["a"]}, "free": {}},
    }
    stop = build_report(snapshot)["stop"]
    assert (stop["cycle"], stop["cycles"], stop["waiting"]) == (["a", "b"], [["a", "b"]], ["c"])
