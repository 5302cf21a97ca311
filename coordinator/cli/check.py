"""Owns the commands `check` and `schema`: whether a Team file is sound, and what one looks like (SPEC 9).

Must not judge a file itself: `team.loader` does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from coordinator.team.loader import examine
from coordinator.team.schema import team_schema


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("check")(check)
    app.command("schema")(schema)


def check(
    file: Annotated[Path, typer.Argument(metavar="TEAM", help="The Team file, YAML or JSON.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Say whether a Team file is sound, or list everything that is wrong with it (exit 2)."""
    team, faults = examine(file)
    if as_json:
        answer = {"ok": team is not None, "file": str(file), "faults": [fault.as_dict() for fault in faults]}
        if team is not None:
            answer["team"] = team.team
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
    elif team is not None:
        optional = sum(not task.required for task in team.tasks.values())
        typer.echo(f"ok: {team.team}, {len(team.tasks)} tasks ({optional} optional), {len(team.roles)} roles")
    else:
        for fault in faults:
            typer.echo(str(fault))
        typer.echo(f"{len(faults)} fault{'s' if len(faults) > 1 else ''} in {file}", err=True)
    if team is None:
        raise typer.Exit(2)


def schema() -> None:
    """Print the JSON Schema of a Team file, for editors and generators."""
    typer.echo(json.dumps(team_schema(), ensure_ascii=False, indent=2))
