"""The picture of a running team: states, attempts, budgets; plain lines where there is no terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from coordinator.cli.live import Progress, draw, plain_line
from coordinator.cli.progress import RunView


def view_of(count: int = 3) -> RunView:
    """A run with a limit, and tasks of which the first runs."""
    run = {"run": "r1", "team": "refund", "status": "running", "created_at": "1000", "ended_at": "4500"}
    view = RunView(run={**run, "limit_step_budget": "20", "used_step_budget": "3", "limit_cost": "5000000"})
    for n in range(count):
        state = "running" if n == 0 else "succeeded" if n % 2 else "pending"
        view.set_task({"id": f"t{n}", "state": state, "role": "clerk", "required": "1", "attempt": "1"})
    return view


def drawn(view: RunView, height: int = 40) -> str:
    console = Console(file=io.StringIO(), width=100, height=height, force_terminal=False)
    console.print(draw(view, height))
    return console.file.getvalue()  # type: ignore[attr-defined] # the file is ours


def test_shows_tasks_states_attempts_budgets_and_time() -> None:
    text = drawn(view_of())
    assert "refund · r1 · running · 3.5 s" in text
    assert "t0" in text
    assert "1/1" in text
    assert "3 of 20" in text
    assert "0.00 of 5.00" in text
    assert "1 running" in text


def test_a_large_team_is_cut_to_the_screen_and_shows_what_is_under_way() -> None:
    text = drawn(view_of(500), height=24)
    assert len(text.splitlines()) <= 24
    assert "t0 " in text
    assert "more tasks" in text


def test_events_move_the_tasks() -> None:
    view = view_of()
    view.apply(
        {"task_id": "t0", "from": "running", "to": "failed", "attempt": "2", "error": '{"class":"permanent"}'}
    )
    assert (view.rows["t0"].state, view.rows["t0"].attempt, view.rows["t0"].note) == (
        "failed",
        2,
        "permanent",
    )


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {
                "kind": "attempt_started",
                "task_id": "a",
                "from": "queued",
                "to": "running",
                "attempt": "1",
                "worker": "w",
            },
            "a running, attempt 1 by w",
        ),
        (
            {"kind": "task_failed", "task_id": "a", "to": "failed", "reason": "permanent"},
            "a failed: permanent",
        ),
        (
            {"kind": "run_stopped", "task_id": "a", "from": "running", "to": "failed"},
            "run stopped: failed by a",
        ),
        ({"kind": "task_queued", "task_id": "a", "to": "queued"}, ""),
        (
            {"kind": "task_failed", "task_id": "a", "to": "failed", "reason": "x\x1b[2J\ny"},
            "a failed: x [2J y",
        ),
    ],
)
def test_an_event_is_a_plain_line(event: dict[str, str], line: str) -> None:
    assert plain_line({"at": "1500", **event}).partition(" ")[2] == line or not line


def test_without_a_terminal_only_lines_are_written() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    with Progress(console) as progress:
        event = {"kind": "task_succeeded", "task_id": "a", "to": "succeeded", "at": "1500", "attempt": "1"}
        progress.show(view_of(), [event])
        progress.show(view_of(), [])
    assert console.file.getvalue() == "00:00:01.500Z a succeeded, attempt 1\n"  # type: ignore[attr-defined] # ours
