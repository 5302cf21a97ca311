"""Owns `watch`: follows a run until it ends or parks; the exit code says how. Read only."""

from __future__ import annotations

import typer

from coordinator.cli import options
from coordinator.cli.lists import status_data
from coordinator.cli.live import Progress, follow
from coordinator.cli.output import emit, emit_json
from coordinator.cli.progress import RunFeed


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("watch")(watch_run)


def watch_run(
    run: options.RunId,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Follows a run until it ends or parks; exits 0 if it completed, else 1."""
    follow_to_the_end(options.open_installation(redis, namespace), run, json)


def follow_to_the_end(place: options.Installation, run: str, json: bool) -> None:
    """Shows progress, prints the status alone (or as JSON) and exits the command by it (SPEC 9)."""
    with Progress() as progress:
        view = follow(RunFeed(place.machine, place.find(run)), progress)
    if json:
        emit_json(status_data(view.run))
    else:
        emit(view.status)
    raise typer.Exit(options.exit_code(view.status))
