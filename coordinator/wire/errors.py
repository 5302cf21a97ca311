"""Owns the exceptions that cross a module's edge, with the exit code and HTTP status that each one means.

Must not print, log or decide: the edges (`cli`, `api`) read `exit_code` and `http_status` off the class. An
exception's docstring is its default message. What a command was refused for is a `Reply`, never an exception,
until an edge turns it into `Refused` (DESIGN 2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar


class CrewlineError(Exception):
    """Crewline could not do this."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class InputFault(CrewlineError):
    """The Team or the arguments are at fault."""

    exit_code = 2
    http_status = 422

    def __init__(self, faults: str | Iterable[object] = ()) -> None:
        """Takes one sentence, or all faults found; each fault's `str` is one line for a person (SPEC 2)."""
        self.faults: tuple[object, ...] = (faults,) if isinstance(faults, str) else tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


class Unreachable(CrewlineError):
    """Redis, or another part that is needed, cannot be reached."""

    exit_code = 3
    http_status = 503


class Refused(CrewlineError):
    """The request was refused."""

    exit_code = 1
    http_status = 409

    def __init__(self, message: str = "", *, word: str = "") -> None:
        """`word`: the refusal as the state machine says it, such as `task_ended` (`wire.names.Refusal`)."""
        self.word = word
        super().__init__(message or word.replace("_", " "))


class MachineFault(CrewlineError):
    """The state machine failed; this is a bug in Crewline."""

    exit_code = 1
    http_status = 500

    def __init__(self, message: str = "", *, file: str = "", line: int = 0) -> None:
        """`file`, `line`: where in the Lua sources, 1-based; empty and 0 when it is not known."""
        self.file = file
        self.line = line
        where = f"{file}:{line}: " if file else ""
        super().__init__(f"{where}{message}" if message else "")
