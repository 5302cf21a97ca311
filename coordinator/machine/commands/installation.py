"""Owns the commands of one kind: what concerns the installation and no single run: the lead, unreadable entries.

Must not decide anything; what each one means stands in the Lua file of its name (`lua/commands/`).
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.machine.commands.base import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeLead(Command):
    """Takes or renews the leader lease, judged by Redis' own clock (SPEC 7). Gives the epoch."""

    holder: str
    ttl_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResignLead(Command):
    """The leader ends and hands over at once (SPEC 7)."""

    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseEntry(Command):
    """An inbox entry that cannot be read, or names no run, goes to the bounded installation ledger (SPEC 6)."""

    reason: str
    raw: str
