"""Owns what every command takes over from the entry that it applies: where it stands, and who waits for the answer.

Must not look at what an entry says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from coordinator.wire import channels
from coordinator.wire.reports import Entry

LONGEST_REQUEST = 64
LONGEST_REPLY_TO = 512

Raw = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Source:
    """An inbox. role: the role that it belongs to, empty for those of a scope."""

    key: str
    scope: str
    role: str = ""


class Envelope(TypedDict):
    """The fields of every command (`commands.GATE_FIELDS`)."""

    now: int
    inbox: str
    entry: str
    reply_to: str
    request: str


def envelope(source: Source, entry: str, report: Entry, now: int) -> Envelope:
    """The envelope of an entry that could be read."""
    return {
        "now": now,
        "inbox": source.key,
        "entry": entry,
        "reply_to": report.reply_to,
        "request": report.request,
    }


def unread_envelope(namespace: str, source: Source, entry: str, raw: Raw, now: int) -> Envelope:
    """The envelope of an entry that could not be: it is answered only if it names a list of its sender's own."""
    request = raw.get(b"request", b"").decode(errors="replace")[:LONGEST_REQUEST]
    reply_to = raw.get(b"reply_to", b"").decode(errors="replace")
    if source.role:
        own = channels.reply(namespace, source.role, "")
        name = reply_to[len(own) :].removesuffix(f":{request}")  # a worker's list, or one below it
        allowed = reply_to.startswith(own) and ":" not in name
    else:
        allowed = reply_to == channels.client_reply(namespace, request)
    return {
        "now": now,
        "inbox": source.key,
        "entry": entry,
        "reply_to": reply_to if allowed and len(reply_to) <= LONGEST_REPLY_TO else "",
        "request": request,
    }
