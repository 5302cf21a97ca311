"""Owns `list`, `status` and `events`: what is stored of runs, in short. Read only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from coordinator.cli import options
from coordinator.cli.output import columns, emit, emit_json
from coordinator.cli.progress import PAGE
from coordinator.machine.reads import ListRuns, ReadEvents, ReadRun
from coordinator.run_report.build import budget_entries, event_entry
from coordinator.run_report.fields import count, number, word
from coordinator.run_report.wording import clean, error_line, when
from coordinator.wire.digest import canonical
from coordinator.wire.names import FINAL, TaskState

UNFINISHED = (TaskState.PENDING, TaskState.QUEUED, TaskState.RUNNING, TaskState.AWAITING)
"""States that a stop turns into `canceled` without rewriting the task."""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("list")(list_runs)
    app.command("status")(show_status)
    app.command("events")(show_events)


def list_runs(
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.")] = 50,
    status: Annotated[str | None, typer.Option(help="Only runs of this status.")] = None,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Lists the runs, newest first."""
    place = options.open_installation(redis, namespace)
    found: list[dict[str, str]] = []
    offset = 0
    while len(found) < limit:
        page = place.machine.read(ListRuns(offset=offset, limit=PAGE))
        found += [run for run in page if status in (None, run["status"])]
        offset += len(page)
        if len(page) < PAGE:
            break
    if json:
        numbers = ("created_at", "state_version")
        runs = [{**run, **{name: number(run, name) for name in numbers}} for run in found[:limit]]
        emit_json(runs, output)
    else:
        rows = [
            [run["run"], clean(run["team"], 60), run["status"], when(number(run, "created_at"))]
            for run in found[:limit]
        ]
        emit(columns(["RUN", "TEAM", "STATUS", "SUBMITTED"], rows), output)


def status_data(run: Mapping[str, str]) -> dict[str, Any]:
    """A run in short: what `status --json` prints."""
    return {
        "run": run["run"],
        "team": run.get("team", ""),
        "status": run["status"],
        "state_version": count(run, "state_version"),
        "created_at": number(run, "created_at"),
        "ended_at": number(run, "ended_at"),
        "stop_reason": word(run, "stop_reason"),
        "locked_reason": word(run, "locked_reason"),
        "tasks": _task_counts(run),
        "steps_used": count(run, "used_step_budget"),
        "budgets": budget_entries(run),
    }


def _task_counts(run: Mapping[str, str]) -> dict[str, int]:
    """Tasks by the state that people see: what a stop left unfinished counts as canceled (SPEC 4)."""
    counts = {state: count(run, f"n_{state}") for state in TaskState}
    if run["status"] in {str(status) for status in FINAL}:
        for state in UNFINISHED:
            counts[TaskState.CANCELED] += counts[state]
            counts[state] = 0
    return {str(state): amount for state, amount in counts.items() if amount}


def show_status(
    run: options.RunId,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Says how a run stands."""
    with options.find_run(run, redis, namespace) as (place, run_id):
        data = status_data(place.machine.read(ReadRun(run=run_id)))
    if json:
        emit_json(data, output)
        return
    tasks = ", ".join(f"{n} {state}" for state, n in data["tasks"].items())
    lines = [
        f"{data['run']} · team {clean(data['team'], 80)} · {data['status']}",
        f"tasks: {tasks or 'none'}",
        f"submitted {when(data['created_at'])}, ended {when(data['ended_at'])}",
    ]
    for name, budget in data["budgets"].items():
        if budget["limit"] is not None:
            lines.append(f"{name}: {budget['used']} of {budget['limit']} used, {budget['reserved']} reserved")
    emit("\n".join(lines), output)


def show_events(
    run: options.RunId,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    after: Annotated[int, typer.Option(min=0, help="Only events after this number.")] = 0,
    task: Annotated[str | None, typer.Option(help="Only events of this task.")] = None,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Prints a run's history, oldest first."""
    events: list[dict[str, Any]] = []
    with options.find_run(run, redis, namespace) as (place, run_id):
        while page := place.machine.read(ReadEvents(run=run_id, after=after, limit=PAGE)):
            events += [event_entry(event) for event in page if task in (None, event.get("task_id"))]
            after = int(page[-1]["seq"])
    if json:
        emit("[" + ",\n ".join(canonical(event) for event in events) + "]", output)
    else:
        emit(
            columns(["SEQ", "AT", "EVENT", "TASK", "ATTEMPT", "MOVE", "WHY"], [_row(e) for e in events]),
            output,
        )


def _row(event: Mapping[str, Any]) -> list[str]:
    move = f"{event['from'] or '·'} → {event['to']}" if event["to"] else ""
    why = error_line(event.get("error")) or clean(event["reason"])
    attempt = str(event["attempt"] or "")
    return [
        str(event["seq"]),
        when(event["at"]),
        event["kind"],
        clean(event["task_id"], 80),
        attempt,
        move,
        why,
    ]
