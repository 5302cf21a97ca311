"""explain: one screen that says why, the earliest cause, the paths, what is finished, what is in doubt, what
waits.
"""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.run_report import explain

NOW = 10_000


def test_says_why_the_run_stopped_and_where_it_began(refund: Any) -> None:
    text = explain(refund, NOW).as_text()
    assert "critical_failure" in text
    assert "because the required task policy failed" in text
    assert "also true then: step_limit" in text
    assert "earliest cause: event 6, policy, attempt 1: attempt_lost, 0.5 s after the start" in text
    assert "policy → reply" in text
    assert "Finished: order" in text
    assert "permanent: FileNotFoundError: no policy (handlers.py:12)" in text
    assert "Canceled by it: style" in text


def test_fits_one_screen_however_large_the_run(new_snapshot: Any) -> None:
    snapshot = new_snapshot("critical_failure")
    snapshot.task("t0", "failed")
    for n in range(1, 500):
        snapshot.task(f"t{n}", "blocked", root="t0", via=f"t{n - 1}")
    text = explain(snapshot, NOW).as_text()
    assert len(text.splitlines()) <= 40
    assert "… and 491 more" in text


def test_a_team_cannot_forge_lines_or_control_the_terminal(new_snapshot: Any) -> None:
    snapshot = new_snapshot("failed")
    error = '{"class":"permanent","type":"E","message":"x\\u001b[2J\\nFinished: everything"}'
    snapshot.task("a", "failed", error=error)
    text = explain(snapshot, NOW).as_text()
    assert "\x1b" not in text
    assert "\nFinished: everything" not in text


def waits_of(snapshot: Any, workers: dict[str, int] | None = None) -> dict[str, tuple[str, str]]:
    """What each open task waits for, by task: (kind, text)."""
    return {w.task: (w.kind, w.text) for w in explain(snapshot, NOW, workers).waiting}


def test_names_what_each_open_task_of_a_live_run_waits_for(new_snapshot: Any) -> None:
    snapshot = new_snapshot(limit_tokens="100", used_tokens="60", reserved_tokens="30")
    plain = ("busy", "again", "homeless", "asked", "lined_up", "doubted", "ready", "done")
    snapshot.team = {
        "team": "t",
        "roles": {"clerk": {"capabilities": [*plain, "behind", "dear"]}},
        "limits": {"tokens": 100},
        "defaults": {"reserve": {"tokens": 0}},
        "tasks": {
            **{name: {} for name in plain},
            "behind": {"requires": ["busy"]},
            "dear": {"reserve": {"tokens": 20}},
            "outside": {"external": True},
        },
    }
    snapshot.task("busy", "running", worker="w1", started_at="8000", attempt="1")
    snapshot.task("behind")
    snapshot.task("again", waiting="1", due_at="12000", attempt="1")
    snapshot.task("homeless", reason="no_worker")
    snapshot.task("dear")
    snapshot.task("asked", "awaiting", question_digest=snapshot.result("sha256:q", '{"ask":"which order?"}'))
    snapshot.task("outside", "queued", external="1", role="")
    snapshot.task("lined_up", "queued")
    snapshot.task("doubted", "needs_review")
    snapshot.task("ready")
    snapshot.task("done", "succeeded")
    kinds = {task: kind for task, (kind, _) in waits_of(snapshot).items()}
    assert kinds == {
        "busy": "nothing",
        "behind": "tasks",
        "again": "backoff",
        "homeless": "no_worker",
        "dear": "budget",
        "asked": "person",
        "outside": "report",
        "lined_up": "worker",
        "doubted": "person",
        "ready": "slot",
    }
    texts = {task: text for task, (_, text) in waits_of(snapshot).items()}
    assert texts["busy"] == "being worked on by w1 for 2 s, attempt 1"
    assert texts["behind"] == "waits for busy (running)"
    assert "in 2 s" in texts["again"]
    assert texts["dear"] == "needs 20 of tokens, and 10 of 100 is left"
    assert "which order?" in texts["asked"]


def test_a_queue_whose_role_has_no_worker_is_named(new_snapshot: Any) -> None:
    snapshot = new_snapshot()
    snapshot.task("a", "queued")
    assert waits_of(snapshot, {"clerk": 0})["a"][0] == "no_worker"
    assert waits_of(snapshot, {"clerk": 2})["a"][0] == "worker"


def test_a_ready_task_of_a_parked_run_waits_for_the_run(new_snapshot: Any) -> None:
    snapshot = new_snapshot("paused", locked_reason="tokens")
    snapshot.task("a")
    assert waits_of(snapshot)["a"][0] == "run"


def test_a_stopped_run_has_nothing_open(refund: Any) -> None:
    assert explain(refund, NOW).waiting == ()


@pytest.mark.parametrize(
    ("status", "run", "expected"),
    [
        ("completed", {}, "every required task succeeded"),
        (
            "step_limit",
            {"reports": "4", "limit_max_steps": "4"},
            "4 task reports were accepted and max_steps is 4",
        ),
        (
            "budget_exhausted",
            {"stop_limit": "step_budget", "used_step_budget": "2", "limit_step_budget": "2"},
            "2 of 2",
        ),
        ("deadline_exceeded", {}, "the deadline has passed"),
        ("no_progress", {}, "nothing has moved for too long"),
        ("needs_review", {}, "a person must decide"),
        ("stop_rule", {"stop_rule": "enough"}, "the stop rule 'enough' held"),
        ("paused", {"stop_limit": "tokens"}, "the limit tokens was reached"),
        ("deadlock", {}, "nothing is in flight and nothing can start"),
        ("running", {}, "it is still running"),
    ],
)
def test_every_status_has_its_sentence(
    new_snapshot: Any, status: str, run: dict[str, str], expected: str
) -> None:
    stop = {} if status == "running" else {"stop_reason": status, "stop_seq": "1", "stop_at": "1"}
    assert expected in explain(new_snapshot(status, **stop, **run), NOW).why


def test_what_is_in_doubt_is_named(new_snapshot: Any) -> None:
    snapshot = new_snapshot("needs_review")
    snapshot.task("a", "needs_review")
    snapshot.task("b", "succeeded", tainted="1")
    snapshot.conflicts = [{"task": "a", "digest": digest} for digest in ("x", "y", "x")]
    doubts = dict(explain(snapshot, NOW).in_doubt)
    assert doubts["a"].startswith("2 different results")
    assert "in doubt" in doubts["b"]
