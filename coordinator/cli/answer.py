"""Owns `crewline answer`: a person's answer to the question of a task that waits for input (SPEC 3, 9)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli import options
from coordinator.cli.kept import Target, open_run
from coordinator.cli.people import client_of, read_payload, settle, well_formed
from coordinator.machine.reads import ReadPayloads, ReadTask
from coordinator.run_report.wording import clean
from coordinator.wire.digest import canonical
from coordinator.wire.errors import InputFault


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("answer")(answer_task)


def answer_task(
    run: options.RunId,
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task that is awaiting.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The answer as JSON; - reads the standard input.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="The answer as a text, instead of a file.")
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(help="Digest of the question that is meant; the one that is open now by default."),
    ] = None,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Answers a task's question, once; its next attempt gets the answer. Prints the run's status after it.

    A run that `crewline run` has kept is found in .crewline; go on with it by `crewline run --continue RUN`.
    """
    payload = _payload(file, text)
    with open_run(run, redis, namespace) as target, well_formed():
        asked, digest = open_question(target, task)
        if payload is None:
            what = f"it asks: {asked}" if asked else "it asks nothing now"
            raise InputFault(f"{task}: give the answer as FILE, - or --text ({what})")
        client = client_of(target)
        asked_for = digest if question is None else question
        answer = client.answer(target.run, task, payload, question=asked_for, source=client.user())
        settle(answer, json, run=target.run, task=task)


def _payload(file: Path | None, text: str | None) -> str | None:
    if file is not None and text is not None:
        raise InputFault("give the answer either as FILE or with --text")
    if text is not None:
        return canonical(text)
    return None if file is None else read_payload(file)


def open_question(target: Target, task: str) -> tuple[str, str]:
    """What the task asks now, and the digest of it; both empty when it asks nothing."""
    machine = target.place.machine
    found = machine.read(ReadTask(target.run, task))
    if found.get("state") != "awaiting" or found.get("waits_for") != "input":
        return "", ""
    digest = found.get("question_digest", "")
    [text] = machine.read(ReadPayloads(target.run, (digest,)))
    return clean(text or "", 1000), digest
