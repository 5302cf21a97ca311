"""What a person may write for a limit that is to be raised."""

from __future__ import annotations

import pytest

from coordinator.team.rules.raises import read_raises
from coordinator.wire.errors import InputFault


def test_limits_are_read_exactly() -> None:
    assert read_raises(
        {
            "tokens": "300000",
            "step_budget": "+10",
            "cost": "+1.50",
            "deadline": "+1h30m",
            "no_progress": "90",
            "no_progress_steps": "7",
        }
    ) == [
        ("limit_tokens", 300_000, False),
        ("limit_step_budget", 10, True),
        ("limit_cost", 1_500_000, True),
        ("limit_deadline_ms", 5_400_000, True),
        ("limit_no_progress_ms", 90_000, False),
        ("limit_no_progress_steps", 7, False),
    ]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("tokens", ""),
        ("tokens", "++1"),
        ("tokens", "1e3"),
        ("tokens", "٣"),
        ("tokens", str(2**53)),
        ("cost", "1,50"),
        ("cost", "-1"),
        ("deadline", "tomorrow"),
        ("status", "1"),
    ],
)
def test_what_is_no_amount_is_refused(name: str, written: str) -> None:
    with pytest.raises(InputFault):
        read_raises({name: written})


def test_all_faults_are_told() -> None:
    with pytest.raises(InputFault) as caught:
        read_raises({"tokens": "x", "cost": "y"})
    assert len(caught.value.faults) == 2
