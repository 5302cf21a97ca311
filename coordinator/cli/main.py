"""Owns the `crewline` command: which file holds which commands, and what an error looks like to a user.

Must not hold a command of its own. Every CrewlineError ends here, as lines on the standard error and the exit
code that stands on its class (SPEC 9); nobody is shown a traceback, unless CREWLINE_TRACEBACK asks for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer
from redis.exceptions import ConnectionError, RedisError, TimeoutError

from coordinator.run_report.wording import clean
from coordinator.wire.errors import CrewlineError, InputFault

FAMILIES: dict[str, tuple[str, ...]] = {
    "run": ("run",),
    "simulate": ("simulate", "verify"),
    "check": ("check", "schema"),
    "submit": ("submit",),
    "lists": ("list", "status", "events"),
    "watch": ("watch",),
    "report": ("report", "explain"),
    "external": ("report-task", "signal"),
    "answer": ("answer",),
    "resume": ("resume",),
    "review": ("review",),
    "actions": ("actions",),
    "late": ("late",),
    "cancel": ("cancel",),
    "thread": ("thread",),
    "coordinator": ("coordinator",),
    "worker": ("worker",),
    "api": ("api", "api-token"),
    "doctor": ("doctor", "health"),
}
"""File of `coordinator/cli` by family, and the commands that it registers, in the order of the help."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

TRACEBACK_VARIABLE = "CREWLINE_TRACEBACK"


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"crewline {version('crewline')}")
        except PackageNotFoundError:
            print("crewline, from its source folder")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Decides when a whole team of agents stops."""


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """The command line; with only the family that `arguments` ask for, because each one takes time to
    import.
    """
    app = typer.Typer(
        name="crewline",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    asked = next((word for word in arguments if not word.startswith("-")), "")
    families = [family for family, commands in FAMILIES.items() if asked in commands] or list(FAMILIES)
    for family in families:
        import_module(f"coordinator.cli.{family}").register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits the process."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        build_app(arguments)(args=list(arguments), prog_name="crewline")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        sys.exit(tell(error))


def tell(error: Exception) -> int:
    """Says on the standard error what went wrong, a line for each fault; gives the exit code."""
    code, lines = _reading(error)
    for line in lines:
        print(f"crewline: {clean(line, 2000)}", file=sys.stderr)
    return code


def _reading(error: Exception) -> tuple[int, list[str]]:
    if isinstance(error, InputFault):
        return error.exit_code, [str(fault) for fault in error.faults]
    if isinstance(error, CrewlineError):
        return error.exit_code, [str(error)]
    if isinstance(error, ConnectionError | TimeoutError):
        return 3, [f"Redis cannot be reached: {error}"]
    kind = "Redis said" if isinstance(error, RedisError) else "this is a fault of Crewline itself"
    hint = f"set {TRACEBACK_VARIABLE}=1 to see where"
    return CrewlineError.exit_code, [f"{kind}: {type(error).__name__}: {error} ({hint})"]


if __name__ == "__main__":
    main()
