"""Owns what is rendered anew when threads have grown: a thread whose `lastUpdated` changed, and no other (SPEC 8).

Must not read or write files: the caller says what it holds already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Freshness(StrEnum):
    """What is to be done with a thread."""

    NEW = "new"
    """It was never rendered here."""
    CHANGED = "changed"
    """Its `lastUpdated` is another one than that of what was rendered, or one of the two has none."""
    UNCHANGED = "unchanged"
    """It is left alone, and not even fetched."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A thread as a list tells of it; `last_updated` is empty when the list does not say."""

    id: str
    last_updated: str


def freshness(listed: Listed, rendered: Mapping[str, str]) -> Freshness:
    """Judges one thread. `rendered`: the `lastUpdated` of what was rendered, by thread id. Any difference is a change,
    also one to an earlier time: an export may have been rolled back.
    """
    if listed.id not in rendered:
        return Freshness.NEW
    same = listed.last_updated and listed.last_updated == rendered[listed.id]
    return Freshness.UNCHANGED if same else Freshness.CHANGED
