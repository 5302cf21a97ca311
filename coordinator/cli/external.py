"""Owns `report-task` and `signal`: what outside systems and operators say to a run (SPEC 3, 9)."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli import options
from coordinator.cli.inputs import read_text
from coordinator.cli.output import emit, say
from coordinator.client import Client
from coordinator.wire.digest import InvalidPayload, canonical, parse_json
from coordinator.wire.errors import InputFault, Refused
from coordinator.wire.grants import Answer
from coordinator.wire.names import FailureClass, Refusal, ReplyStatus, ReportState, Verdict

AT_FAULT = {
    Refusal.UNKNOWN_RUN: "there is no run {run}",
    Refusal.UNKNOWN_TASK: "run {run} has no task {task}",
    Refusal.UNKNOWN_STATE: "{state} is no state of a report: working, completed or failed",
    Refusal.TASK_ENDED: "task {task} has ended; nothing was changed",
    Refusal.NOT_EXTERNAL: "task {task} is done by workers; only external tasks are reported on",
    Refusal.WRONG_STATE: "task {task} is not ready to be reported on",
}
"""Refusals that are the caller's fault (exit 2, SPEC 9), as sentences."""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("report-task")(report_task)
    app.command("signal")(signal_run)


def report_task(
    run: options.RunId,
    task: Annotated[str, typer.Argument(metavar="TASK", help="An external task of the run.")],
    state: Annotated[str, typer.Argument(metavar="STATE", help="working, completed or failed.")],
    payload: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The result as JSON (completed), or what went wrong (failed); - reads it."
        ),
    ] = None,
    key: Annotated[
        str, typer.Option(help="Idempotency key: the same key and content change nothing twice.")
    ] = "",
    tokens: Annotated[int, typer.Option(min=0, help="Tokens used.")] = 0,
    cost: Annotated[str, typer.Option(metavar="DECIMAL", help="Money used.")] = "0",
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
) -> None:
    """Reports on an external task; prints the run's status after it, or late_ignored."""
    place = options.open_installation(redis, namespace)
    run_id = place.find(run)
    text = _payload(payload, state)
    answer = Client(place.redis, namespace).report(
        run_id,
        task,
        state,
        payload="" if state == ReportState.FAILED else text,
        error=_error(text) if state == ReportState.FAILED else "",
        key=key,
        tokens=tokens,
        cost_micros=options.micros(cost),
    )
    _settle(answer, run=run_id, task=task, state=state)


def _payload(file: Path | None, state: str) -> str:
    """The payload's JSON text; a completed task without one has the result null. Raises InputFault."""
    if file is None:
        return "null" if state == ReportState.COMPLETED else ""
    text = read_text(file)
    try:
        parse_json(text)
    except InvalidPayload as fault:
        raise InputFault(f"{file}: {fault}") from None
    return text


def _error(text: str) -> str:
    """The error document of a failed report: what the payload says, and whole if it is no error document."""
    value = parse_json(text) if text else None
    fields = value if isinstance(value, dict) else {}
    message = fields.get("message") or (canonical(value) if value is not None else "reported as failed")
    error = {"class": str(FailureClass.PERMANENT), "type": str(fields.get("type", "ExternalFailure"))}
    return jsonlib.dumps({**error, "message": str(message)[:10_000]}, ensure_ascii=False)


def signal_run(
    run: options.RunId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A signal that rules of the Team may ask for.")],
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
) -> None:
    """Gives a run a named signal; prints the run's status after it."""
    place = options.open_installation(redis, namespace)
    run_id = place.find(run)
    _settle(Client(place.redis, namespace).signal(run_id, name), run=run_id, task="", state="")


def _settle(answer: Answer, **said: str) -> None:
    """Prints what became of it. Raises InputFault for what the caller got wrong, Refused for any other
    refusal.
    """
    if answer.word == Verdict.LATE:
        emit(str(Verdict.LATE))
        return
    if answer.status == ReplyStatus.REFUSED and answer.word != Verdict.DUPLICATE:
        if answer.word in AT_FAULT:
            raise InputFault(AT_FAULT[Refusal(answer.word)].format(**said))
        raise Refused(answer.detail, word=answer.word)
    if answer.word:
        say(answer.word)
    emit(answer.run_status)
