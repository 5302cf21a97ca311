"""Owns how a run's large documents (its Team, its inputs) stand in Redis: as they are, or packed when they are large.

A Team of 100,000 tasks is several megabytes of JSON; writing that inside one Lua call would hold up the server for tens
of milliseconds. Must not look into a document.
"""

from __future__ import annotations

import base64
import zlib

SMALL = 65_536
"""Characters up to which a document is kept readable."""
PACKED = "zlib:"


def pack(document: str) -> str:
    """The document as it is stored; the same text always gives the same bytes."""
    if len(document) <= SMALL:
        return document
    return PACKED + base64.b85encode(zlib.compress(document.encode(), 6)).decode()


def unpack(stored: str) -> str:
    """The document. JSON never begins with the mark of a packed one."""
    if not stored.startswith(PACKED):
        return stored
    return zlib.decompress(base64.b85decode(stored[len(PACKED) :])).decode()
