"""Owns what every command has; the commands stand in the other files, one dataclass per Lua file of the same name.

Must not decide anything: a command is an intention, the Lua function judges it. Field order is the order on the
wire; the Lua file binds them by name (a test holds both lists together). Times are milliseconds since the epoch,
money is integer micro-units, documents are JSON text that Lua never opens unless the field says `plan`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache
from typing import ClassVar

GATE_FIELDS = ("now", "inbox", "entry", "reply_to", "request")
"""Fields that every command has and the gate (lua/prelude.lua) consumes; they are not logged with the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What every command carries.

    now: the coordinator's clock. inbox, entry: the inbox entry that this command applies, deleted in the same call.
    reply_to, request: list that gets the answer, and the asker's correlation id.
    """

    DOCUMENTS: ClassVar[tuple[str, ...]] = ()
    """Fields that may be large and are packed on their way (documents.py)."""

    now: int
    inbox: str = ""
    entry: str = ""
    reply_to: str = ""
    request: str = ""

    @classmethod
    @cache
    def name(cls) -> str:
        """The command's name: that of its Lua file and function."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    @cache
    def own_fields(cls) -> tuple[str, ...]:
        """Names of the command's own fields, in wire order."""
        return tuple(f.name for f in fields(cls) if f.name not in GATE_FIELDS)
