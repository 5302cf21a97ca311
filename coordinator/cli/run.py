"""Owns `crewline run`: a Team from its file to its report, with nothing set up before (SPEC 9).

Must not start anything before everything that can be checked was checked: the Team, the inputs, the handlers.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from coordinator.cli import options
from coordinator.cli.archive import Archive, Setting, find_archive
from coordinator.cli.inputs import gather_inputs
from coordinator.cli.live import Progress
from coordinator.cli.local import Begin, command_to_go_on, has_ended, play
from coordinator.cli.output import emit, say
from coordinator.client import Client
from coordinator.run_report import RunReport, canonical_bytes, remedies, render_markdown, summarize
from coordinator.team.loader import load_team
from coordinator.team.models import Team
from coordinator.team.payloads import check_inputs
from coordinator.wire.errors import InputFault, Refused, Unreachable
from coordinator.wire.names import ReplyStatus


class Mode(StrEnum):
    """How a worker runs its handlers."""

    FORK = "fork"
    """A child process for each attempt."""
    INLINE = "inline"
    """In the worker's own process."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run")(run_team)


def run_team(
    team: Annotated[Path | None, typer.Argument(metavar="TEAM", help="The Team file, YAML or JSON.")] = None,
    inputs: options.Inputs = None,
    input_file: options.InputFile = None,
    handlers: Annotated[
        str | None, typer.Option(help="File or module of the handlers; the Team file's own by default.")
    ] = None,
    redis: options.RedisUrl = None,
    mode: Annotated[
        Mode, typer.Option(help="A child process per attempt, or the worker's own process.")
    ] = Mode.FORK,
    concurrency: Annotated[int, typer.Option("-c", "--concurrency", min=1, help="Workers of each role.")] = 1,
    run_id: Annotated[str | None, typer.Option("--id", help="The run's id; made up by default.")] = None,
    go_on: Annotated[
        str | None,
        typer.Option(
            "--continue", metavar="RUN", help="Go on with a run that was kept: its id, or its folder."
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Everything in one process; breakpoints work.")
    ] = False,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Runs a team on this machine: embedded Redis, coordinator, workers, progress, report."""
    if (team is None) == (go_on is None):
        raise InputFault("give either a TEAM file or --continue RUN")
    if go_on is not None:
        archive = find_archive(go_on)
        setting = archive.setting()
        begin: Begin = _nothing
    else:
        assert team is not None
        setting, checked, values = prepare(
            team, inputs, input_file, handlers, redis, mode, concurrency, run_id
        )
        archive = Archive(setting.run)
        begin = partial(submit, setting.run, checked, values)
    report = _play(setting, archive, begin, debug)
    tell(report, archive, json, output)
    raise typer.Exit(options.exit_code(report["status"]))


def _nothing(_: options.Installation) -> None:
    """A run that goes on was submitted long ago."""


def prepare(
    file: Path,
    pairs: Sequence[str] | None,
    input_file: Path | None,
    handlers: str | None,
    redis: str | None,
    mode: Mode,
    concurrency: int,
    run_id: str | None,
) -> tuple[Setting, Team, dict[str, Any]]:
    """Checks all that can be checked before anything is started. Raises InputFault with every fault."""
    team = load_team(file)
    values = check_inputs(team, gather_inputs(pairs, input_file))
    source = handlers_of(team, file, handlers)
    roles = check_handlers(team, source)
    run = options.run_id(run_id, team.team)
    setting = Setting(
        run=run,
        team=str(file),
        roles=tuple(roles),
        handlers=source,
        redis=redis or "",
        namespace=f"run-{run}" if redis else options.DEFAULT,
        mode=mode.value,
        concurrency=concurrency,
    )
    return setting, team, values


def handlers_of(team: Team, file: Path, given: str | None) -> str:
    """Where the handlers are: as given, else as the Team file says, relative to it; empty when nobody
    says.
    """
    if given is not None:
        return str(Path(given).absolute()) if given.endswith(".py") or "/" in given else given
    if team.handlers is None:
        return ""
    beside = file.parent / team.handlers
    return str(beside.absolute()) if beside.exists() or team.handlers.endswith(".py") else team.handlers


def check_handlers(team: Team, source: str) -> list[str]:
    """The roles that need workers here. Raises InputFault for each capability without a handler."""
    from workers.handlers import load_handlers

    allowed = {(role, name) for role, entry in team.roles.items() for name in entry.capabilities}
    tasks = [
        (task.owner or "", task.capability or name) for name, task in team.tasks.items() if not task.external
    ]
    needed = [pair for pair in tasks if pair in allowed]  # the others are denied without an attempt
    if not needed:
        return []
    able: Mapping[str, Any] = load_handlers(source) if source else {}
    missing = sorted({capability for _, capability in needed} - set(able))
    if missing:
        where = source or "no handlers were given: --handlers FILE, or `handlers:` in the Team file"
        raise InputFault([f"capability {name} has no handler ({where})" for name in missing])
    return sorted(with_spawned(team, {role for role, _ in needed}))


def with_spawned(team: Team, roles: set[str]) -> set[str]:
    """The roles, and those that their handlers may make children for, and so on."""
    found, unseen = set(roles), list(roles)
    while unseen:
        others = team.roles[unseen.pop()].may_spawn or []
        unseen.extend(other for other in others if other not in found)
        found.update(others)
    return found


def submit(run: str, team: Team, inputs: Mapping[str, Any], place: options.Installation) -> None:
    """Submits the run. Raises InputFault when the inputs do not fit, Refused for anything else."""
    answer = Client(place.redis, place.namespace).submit(team, inputs, run)
    if answer.status == ReplyStatus.REFUSED:
        raise Refused(answer.detail, word=answer.word)


def _play(setting: Setting, archive: Archive, begin: Begin, debug: bool) -> RunReport:
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    try:
        with Progress(plain=debug) as progress:
            if debug:
                from coordinator.cli.debug import play_debug

                return play_debug(setting, archive, begin, progress)
            return play(setting, archive, begin, progress)
    except Unreachable:
        say(f"the run is kept: {command_to_go_on(archive)}")
        raise
    except KeyboardInterrupt:
        say(f"stopped; the run is kept: {command_to_go_on(archive)}")
        raise


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """A terminal that goes away, or a supervisor that ends us, means the same as Ctrl-C."""
    raise KeyboardInterrupt


def tell(report: RunReport, archive: Archive, json: bool, output: Path | None) -> None:
    """Prints the report: JSON with --json, else a summary; where the rest is goes to the standard error."""
    if output is not None:
        as_json = json or output.suffix == ".json"
        emit(canonical_bytes(report) if as_json else render_markdown(report), output)
    elif json:
        emit(canonical_bytes(report))
    if not json:
        emit(summarize(report))
    say(f"report: {archive.path / 'report.md'}")
    if not has_ended(report):
        moves = remedies(report)
        say(f"the run is {report['status']} and was kept{'; a person can move it:' if moves else ''}")
        for command in moves:
            say(f"  {command}")
        say(f"{'then go' if moves else 'go'} on with: {command_to_go_on(archive)}")
