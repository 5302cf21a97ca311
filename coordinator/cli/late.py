"""Owns `crewline late`: the reports that came too late to count (SPEC 6). Read only."""

from __future__ import annotations

import typer

from coordinator.cli import options
from coordinator.cli.kept import open_run
from coordinator.cli.output import columns, emit, emit_json
from coordinator.cli.report import picture
from coordinator.run_report import build_report
from coordinator.run_report.wording import clean, when
from coordinator.wire.digest import canonical


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("late")(list_late)


def list_late(
    run: options.RunId,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Lists what arrived too late, oldest first; `would change`: it was a success of a task that the stop left open."""
    with open_run(run, redis, namespace, reads=True) as target:
        entries = build_report(picture(target.place, target.run))["late_results"]
    if json:
        emit_json(entries, output)
        return
    rows = [
        [
            when(entry["at"]),
            clean(entry["task"], 80),
            str(entry["attempt"] or ""),
            clean(entry["source"] or "", 40),
            entry["state"] or "",
            entry["reason"] or "",
            "yes" if entry["would_change"] else "",
            "" if entry["payload"] is None else clean(canonical(entry["payload"])),
        ]
        for entry in entries
    ]
    emit(
        columns(["AT", "TASK", "ATTEMPT", "FROM", "SAID", "WHY LATE", "WOULD CHANGE", "PAYLOAD"], rows),
        output,
    )
