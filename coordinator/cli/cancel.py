"""Owns `cancel`: an operator ends a run, or one task of it (SPEC 7)."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli import options
from coordinator.cli.output import emit, say
from coordinator.client import Client
from coordinator.wire.errors import InputFault, Refused
from coordinator.wire.names import Refusal, ReplyStatus

LONGEST_REASON, LONGEST_REQUEST = 2000, 128
AT_FAULT: dict[str, str] = {
    Refusal.UNKNOWN_RUN: "there is no run {run}",
    Refusal.UNKNOWN_TASK: "run {run} has no task {task}",
    Refusal.TASK_ENDED: "task {task} has ended; nothing was changed",
    Refusal.WRONG_STATE: "a person must decide about task {task} first (crewline review)",
    Refusal.RUN_STOPPED: "run {run} has ended; nothing was changed",
}
"""Refusals as sentences; the first three are the caller's fault (exit 2)."""
EXIT_2 = (Refusal.UNKNOWN_RUN, Refusal.UNKNOWN_TASK, Refusal.TASK_ENDED)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("cancel")(cancel)


def cancel(
    run: options.RunId,
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
    task: Annotated[
        str, typer.Option(metavar="TASK", help="Cancel this task alone; the rest of the run goes on.")
    ] = "",
    request: Annotated[
        str | None,
        typer.Option(metavar="ID", help="An id of your choice: the same one again changes nothing."),
    ] = None,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
) -> None:
    """Cancels a run or one task; prints the run's status after it. Workers are told at once, and have a grace."""
    for name, value, most in (("--reason", reason, LONGEST_REASON), ("--request", request, LONGEST_REQUEST)):
        if value is not None and not 0 < len(value) <= most:
            raise InputFault(f"{name}: expected 1 to {most} characters")
    place = options.open_installation(redis, namespace)
    run_id = place.find(run)
    client = Client(place.redis, namespace)
    answer = client.cancel(run_id, task=task, reason=reason, ask=request, source=client.user())
    if answer.status == ReplyStatus.REFUSED:
        told = AT_FAULT.get(answer.word, answer.detail).format(run=run_id, task=task)
        raise InputFault(told) if answer.word in EXIT_2 else Refused(told, word=answer.word)
    if answer.status == ReplyStatus.REPEATED:
        say("this request was applied already")
    emit(answer.run_status)
