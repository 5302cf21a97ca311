"""The checker of chaos runs finds nothing in a true story, and each kind of fault that is planted in it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

import ops.chaos.checker
from ops.chaos.checker import Evidence, Execution, check
from ops.chaos.checker.evidence import Fields, RunEvidence
from ops.chaos.checker.journal import Applied, Letter
from ops.chaos.fleet import Pause
from tests.chaos.planted import PID, true_story

Plant = Callable[[Evidence], None]
PLANTS: list[tuple[str, Plant]] = []


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return true_story(tmp_path_factory.mktemp("story"))


def plant(kind: str) -> Callable[[Plant], Plant]:
    """Registers a change of the story after which the checker must say `kind`."""

    def register(change: Plant) -> Plant:
        PLANTS.append((kind, change))
        return change

    return register


def run_of(evidence: Evidence) -> RunEvidence:
    return evidence.runs["r1"]


def event(evidence: Evidence, kind: str, task: str = "") -> Fields:
    """The first event of a kind, of a task if one is named."""
    return next(e for e in run_of(evidence).events if e["kind"] == kind and task in ("", e["task_id"]))


def execution(evidence: Evidence, task: str) -> Execution:
    return next(e for e in evidence.executions if e.task == task)


def letter(evidence: Evidence, kind: str, task: str = "") -> Letter:
    return next(
        one for one in evidence.letters if one.said.get("kind") == kind and task in ("", one.said.get("task"))
    )


def again(evidence: Evidence, changed: Fields) -> None:
    """Puts a changed copy of an event right behind the run's last move before its stop."""
    events = run_of(evidence).events
    at = next(n for n, e in enumerate(events) if e["kind"] == "run_stopped")
    events.insert(at, changed)


# -- histories -----------------------------------------------------------------------------------------------


@plant("events lost")
def lose_an_event(evidence: Evidence) -> None:
    run_of(evidence).events.remove(event(evidence, "duplicate_result_ignored"))


@plant("versions")
def skip_a_version(evidence: Evidence) -> None:
    moved = event(evidence, "task_succeeded")
    moved["state_version"] = str(int(moved["state_version"]) + 1)


@plant("replay")
def store_another_state(evidence: Evidence) -> None:
    task = run_of(evidence).tasks[0]
    task["state"] = task["was"] = "failed"


@plant("moved after its end")
@plant("two results")
def accept_twice(evidence: Evidence) -> None:
    again(evidence, event(evidence, "task_succeeded", "keyed") | {"from": "succeeded"})


@plant("started after the stop")
def start_after_the_stop(evidence: Evidence) -> None:
    run_of(evidence).events.append(event(evidence, "task_queued", "last"))


@plant("attempt granted twice")
def grant_twice(evidence: Evidence) -> None:
    again(evidence, event(evidence, "attempt_started", "last"))


@plant("not ended")
def go_on_for_ever(evidence: Evidence) -> None:
    run_of(evidence).run["status"] = "running"


@plant("not ended")
def leave_a_task_open(evidence: Evidence) -> None:
    run_of(evidence).tasks[0]["state"] = "running"


@plant("no reason")
def say_no_reason(evidence: Evidence) -> None:
    run_of(evidence).run["stop_reason"] = ""


@plant("cancel without an end")
def never_settle_a_cancel(evidence: Evidence) -> None:
    run_of(evidence).cancellations[0]["outcome"] = "requested"


@plant("too many attempts")
def grant_too_often(evidence: Evidence) -> None:
    run_of(evidence).tasks[0]["granted"] = "3"


# -- executions ----------------------------------------------------------------------------------------------


@plant("ran twice")
def run_twice(evidence: Evidence) -> None:
    evidence.executions.append(deepcopy(execution(evidence, "keyed")))


@plant("ran without a lease")
def run_ungranted(evidence: Evidence) -> None:
    execution(evidence, "keyed").attempt = 7


@plant("ran without a lease")
def run_in_an_unknown_run(evidence: Evidence) -> None:
    execution(evidence, "keyed").run = "r9"


@plant("ran without a lease")
def run_elsewhere(evidence: Evidence) -> None:
    execution(evidence, "keyed").pid = PID + 1


@plant("ran without a lease")
def run_too_early(evidence: Evidence) -> None:
    execution(evidence, "keyed").began -= 50


@plant("began after its lease")
def begin_too_late(evidence: Evidence) -> None:
    execution(evidence, "last").began += 60_000


@plant("began after a cancel")
def begin_after_the_cancel(evidence: Evidence) -> None:
    execution(evidence, "stopped").began += 3_000


@plant("result from nothing")
def return_nothing(evidence: Evidence) -> None:
    execution(evidence, "last").how = "permanent"


@plant("report never sent")
def say_nothing(evidence: Evidence) -> None:
    evidence.letters.remove(letter(evidence, "end", "last"))


# -- budgets -------------------------------------------------------------------------------------------------


@plant("over budget")
def lower_the_limit(evidence: Evidence) -> None:
    run_of(evidence).run["limit_tokens"] = "39"


@plant("over budget")
def reserve_without_room(evidence: Evidence) -> None:
    run_of(evidence).tasks[-1]["tokens"] = "41"


@plant("books differ")
def forget_what_was_used(evidence: Evidence) -> None:
    run_of(evidence).run["used_tokens"] = "0"


@plant("books differ")
def forget_a_step(evidence: Evidence) -> None:
    run_of(evidence).run["used_step_budget"] = "5"


# -- letters, counters, the rest -----------------------------------------------------------------------------


@plant("report lost")
def never_apply(evidence: Evidence) -> None:
    letter(evidence, "end").applied.clear()


@plant("report lost")
def take_out_without_a_record(evidence: Evidence) -> None:
    letter(evidence, "end").applied = [Applied()]


@plant("report applied twice")
def apply_twice(evidence: Evidence) -> None:
    letter(evidence, "end").applied *= 2


@plant("no single verdict")
def give_no_verdict(evidence: Evidence) -> None:
    letter(evidence, "end").applied[0].verdicts.clear()


@plant("no single verdict")
def give_two_verdicts(evidence: Evidence) -> None:
    letter(evidence, "report").applied[0].verdicts += [("late_ignored", "outside"), ("refused", "outside")]


@plant("counter")
def count_a_stop_twice(evidence: Evidence) -> None:
    evidence.counters["stops:completed"] += 1


@plant("counter")
def count_no_loss(evidence: Evidence) -> None:
    del evidence.counters["attempts:lost"]


@plant("counter")
def forget_a_malformed_entry(evidence: Evidence) -> None:
    evidence.malformed = 0


@plant("not verified")
def verify_differently(evidence: Evidence) -> None:
    run_of(evidence).verified = "differs run: status"


@plant("process")
def complain(evidence: Evidence) -> None:
    evidence.complaints.append("worker: Traceback")


@plant("left behind")
def leave_work(evidence: Evidence) -> None:
    evidence.left.append("1 entries in an inbox")


# -- the tests -----------------------------------------------------------------------------------------------


def test_a_true_story_has_no_violation(story: Evidence) -> None:
    kinds = {e["kind"] for e in run_of(story).events}
    assert {"attempt_lost", "late_ignored", "duplicate_result_ignored", "cancel_confirmed"} <= kinds
    assert run_of(story).run["status"] == "completed"
    assert [str(violation) for violation in check(story)] == []


@pytest.mark.parametrize(("kind", "change"), PLANTS, ids=[f"{kind}-{c.__name__}" for kind, c in PLANTS])
def test_what_is_planted_is_found(story: Evidence, kind: str, change: Plant) -> None:
    planted = deepcopy(story)
    change(planted)
    found = check(planted)
    assert kind in {violation.kind for violation in found}, [str(violation) for violation in found]


def test_every_kind_of_violation_is_planted() -> None:
    kinds: set[str] = set()
    for path in Path(ops.chaos.checker.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
                "Violation",
                "_wrong",
            ):
                words = [n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant)]
                kinds.update(word for word in words if isinstance(word, str))
    assert kinds == {kind for kind, _ in PLANTS}


def test_time_in_which_a_process_stood_still_excuses_a_late_begin(story: Evidence) -> None:
    planted = deepcopy(story)
    late = execution(planted, "last")
    planted.pauses.append(Pause(PID, late.began - 4, late.began + 60_000))
    late.began += 60_000
    assert "began after its lease" not in {violation.kind for violation in check(planted)}


def test_a_killed_process_need_not_have_reported(story: Evidence) -> None:
    planted = deepcopy(story)
    say_nothing(planted)
    planted.killed = {PID}
    assert "report never sent" not in {violation.kind for violation in check(planted)}
