"""Owns the handler of the Crewline workers. Must not do anything."""

from __future__ import annotations

from workers import Context, handler


@handler("noop")
def noop(context: Context) -> bool:
    """Does nothing; a handler returns a result, so it returns the smallest one."""
    return True
