"""Owns `report` and `explain`: the run's document, and why the run stands where it stands. Read only."""

from __future__ import annotations

import time
from collections.abc import Mapping

import typer
from redis import Redis

from coordinator.cli import options
from coordinator.cli.output import emit, emit_json
from coordinator.machine.snapshot import RunSnapshot, snapshot
from coordinator.run_report import build_report, canonical_bytes, explain, render_markdown
from coordinator.wire.channels import queue_name
from coordinator.wire.connection import guard
from coordinator.wire.errors import InputFault


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("report")(show_report)
    app.command("explain")(show_explanation)


def show_report(
    run: options.RunId,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Prints a run's report: Markdown, or JSON with --json or an --output that ends in .json."""
    with options.find_run(run, redis, namespace) as (place, run_id):
        report = build_report(picture(place, run_id))
    as_json = json or (output is not None and output.suffix == ".json")
    emit(canonical_bytes(report) if as_json else render_markdown(report), output)


def show_explanation(
    run: options.RunId,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Says on one screen why a run stopped, or what each open task of a live run waits for."""
    with options.find_run(run, redis, namespace) as (place, run_id):
        found = picture(place, run_id)
        said = explain(found, int(time.time() * 1000), workers_by_role(place, found))
    if json:
        emit_json(said.as_data(), output)
    else:
        emit(said.as_text(), output)


def picture(place: options.Installation, prefix: str) -> RunSnapshot:
    """Everything recorded of the run that `prefix` means. Raises InputFault when there is none."""
    found = snapshot(place.machine, place.find(prefix))
    if found is None:
        raise InputFault(f"{prefix}: no such run")
    return found


def workers_by_role(place: options.Installation, found: RunSnapshot) -> Mapping[str, int]:
    """How many workers RQ has registered for the queue of each role of the run (a set of RQ's, read only)."""
    roles = sorted({task["role"] for task in found.tasks if task.get("role")})
    with guard(place.redis):
        return {role: _live(place.redis, queue_name(place.namespace, role)) for role in roles}


def _live(redis: Redis, queue: str) -> int:
    """RQ forgets a dead worker's own key first; its name may stand in the queue's set a while longer."""
    names = redis.smembers(f"rq:workers:{queue}")
    return int(redis.exists(*names)) if names else 0
