"""Owns `crewline actions`: the side effects of a run, and what a person says of those that nobody knows (SPEC 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from coordinator.cli import options
from coordinator.cli.kept import Target, open_run
from coordinator.cli.output import columns, emit, emit_json
from coordinator.cli.people import client_of, read_payload, settle, well_formed
from coordinator.cli.report import picture
from coordinator.run_report import build_report
from coordinator.run_report.wording import clean, when
from coordinator.wire.digest import canonical

Task = Annotated[str, typer.Argument(metavar="TASK", help="The task that performed it.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The action's key, as `actions list` shows it.")]
Reason = Annotated[str, typer.Option(help="Why; it stands in the history.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    family = typer.Typer(
        no_args_is_help=True, help="Lists the side effects of a run, and says how they ended."
    )
    family.command("list")(list_actions)
    family.command("confirm")(confirm_action)
    family.command("fail")(fail_action)
    app.add_typer(family, name="actions")


def list_actions(
    run: options.RunId,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Lists the actions of a run, those of which nobody knows first."""
    with open_run(run, redis, namespace, reads=True) as target:
        actions = build_report(picture(target.place, target.run))["actions"]
    if json:
        emit_json(actions, output)
        return
    rows = [
        [
            clean(action["task"], 80),
            clean(action["key"], 80),
            action["state"],
            str(action["attempt"] or ""),
            clean(action["worker"] or "", 40),
            when(action["at"]),
            "" if action["receipt"] is None else clean(canonical(action["receipt"])),
        ]
        for action in actions
    ]
    emit(columns(["TASK", "KEY", "STATE", "ATTEMPT", "BY", "AT", "RECEIPT"], rows), output)


def confirm_action(
    run: options.RunId,
    task: Task,
    key: Key,
    receipt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The receipt as JSON, for later attempts; - reads it."),
    ] = None,
    reason: Reason = "",
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Says that an action was done; a later attempt gets the receipt instead of doing it again."""
    payload = "null" if receipt is None else read_payload(receipt)
    with open_run(run, redis, namespace) as target:
        _decide(target, task, key, "confirmed", payload, reason, json)


def fail_action(
    run: options.RunId,
    task: Task,
    key: Key,
    reason: Reason,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Says that an action was not done; a later attempt may do it."""
    payload = canonical({"reason": reason})
    with open_run(run, redis, namespace) as target:
        _decide(target, task, key, "failed", payload, reason, json)


def _decide(
    target: Target,
    task: str,
    key: str,
    state: Literal["confirmed", "failed"],
    payload: str,
    reason: str,
    json: bool,
) -> None:
    client = client_of(target)
    with well_formed():
        said = client.decide_action(
            target.run, task, key, state, payload=payload, reason=reason, source=client.user()
        )
    settle(said, json, run=target.run, task=task, key=key)
