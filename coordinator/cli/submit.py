"""Owns `submit`: a Team and its inputs go to a coordinator, as a new run (SPEC 9)."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli import options
from coordinator.cli.inputs import gather_inputs
from coordinator.cli.output import emit, emit_json
from coordinator.cli.watch import follow_to_the_end
from coordinator.client import Client
from coordinator.team.loader import load_team
from coordinator.team.payloads import check_inputs
from coordinator.wire.errors import Refused
from coordinator.wire.names import ReplyStatus


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("submit")(submit_team)


def submit_team(
    team: options.TeamFile,
    inputs: options.Inputs = None,
    input_file: options.InputFile = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--id", help="The run's id: the same id and content is the same run. Made up by default."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run; exit by its status.")] = False,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Submits a run to an installation; prints its id."""
    checked = load_team(team)
    values = check_inputs(checked, gather_inputs(inputs, input_file))
    place = options.open_installation(redis, namespace)
    run = options.run_id(run_id, checked.team)
    answer = Client(place.redis, namespace).submit(checked, values, run)
    if answer.status == ReplyStatus.REFUSED:
        raise Refused(answer.detail, word=answer.word)
    if wait:
        follow_to_the_end(place, run, json)
    elif json:
        emit_json(
            {"run": run, "status": answer.run_status, "repeated": answer.status == ReplyStatus.REPEATED}
        )
    else:
        emit(run)
