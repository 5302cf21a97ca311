"""What `outcome_plan` may be, and what is said of what it may not be (SPEC 2)."""

from decimal import Decimal

import pytest

from coordinator.wire.outcome_plan import (
    UNSET,
    OutcomePlan,
    PlanFault,
    PlannedAttempt,
    PlannedOutcome,
    cost_micros,
    duration_ms,
    parse_outcome_plan,
    read_outcome_plan,
)


@pytest.mark.parametrize("word", list(PlannedOutcome))
def test_every_word_alone_and_as_an_object(word: PlannedOutcome) -> None:
    assert parse_outcome_plan(str(word)).attempt(1) == PlannedAttempt(outcome=word)
    assert parse_outcome_plan({"outcome": str(word)}).attempt(1) == PlannedAttempt(outcome=word)


def test_an_object_says_result_tokens_cost_and_duration() -> None:
    plan = parse_outcome_plan({"result": None, "tokens": 7, "cost": Decimal("0.25"), "duration": "1m30s"})
    assert plan.attempt(1) == PlannedAttempt(
        result=None, tokens=7, cost_micros=250_000, duration_ms=90_000, outcome=PlannedOutcome.SUCCESS
    )
    assert parse_outcome_plan("success").attempt(1).result is UNSET


def test_a_list_is_one_for_each_attempt_and_the_last_repeats() -> None:
    plan = parse_outcome_plan(["transient_error", {"outcome": "crash"}, "success"])
    assert [plan.attempt(number).outcome for number in range(1, 6)] == [
        "transient_error",
        "crash",
        "success",
        "success",
        "success",
    ]


def test_all_faults_are_listed_with_their_paths() -> None:
    faults: list[PlanFault] = []
    plan = read_outcome_plan(
        ["nope", {"outcome": 3, "tokens": True, "cost": -1, "duration": "soon", "x": 1}], faults
    )
    assert [fault.path for fault in faults] == [
        (0,),
        (1, "x"),
        (1, "outcome"),
        (1, "tokens"),
        (1, "cost"),
        (1, "duration"),
    ]
    assert "success" in faults[0].expected and faults[0].found == "'nope'"
    assert len(plan.attempts) == 2


@pytest.mark.parametrize("value", [[], None, 1, True, [["success"]], {"outcome": ["success"]}])
def test_what_is_no_plan_is_refused(value: object) -> None:
    with pytest.raises(PlanFault):
        parse_outcome_plan(value)


def test_absent_is_success() -> None:
    assert OutcomePlan().attempt(3).outcome == "success"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("250ms", 250),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("1.5s", 1500),
        (2, 2000),
        (0, 0),
        (0.25, 250),
        ("", None),
        ("5", None),
        ("1s ", None),
        (True, None),
        (-1, None),
        (0.0001, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_durations(value: object, expected: int | None) -> None:
    assert duration_ms(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5_000_000),
        ("0.10", 100_000),
        (Decimal("0.000001"), 1),
        ("0.0000001", None),
        ("1." + "0" * 40 + "1", None),
        ("1" * 101, None),
        ("1e400", None),
        ("nan", None),
        ("x", None),
        (False, None),
        (-1, None),
    ],
)
def test_money_is_exact(value: object, expected: int | None) -> None:
    assert cost_micros(value) == expected
