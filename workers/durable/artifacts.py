"""Owns where artifacts lie: outside Redis, below an fsspec URL, a folder for each run, named by SHA-256 (SPEC 8).

What lies there never changes: the same bytes are stored once, other bytes have another name. A run's folder can be
removed as a whole when the run is. Must not talk to the coordinator.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from workers.outcomes import Permanent, Transient

CHUNK = 1 << 20
"""Bytes that are copied at a time."""
VARIABLE = "CREWLINE_ARTIFACTS"
"""Environment variable with the URL."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A named output: digest is `sha256:` and 64 hex digits over its bytes, size in bytes, url where it lies."""

    name: str
    digest: str
    size: int
    url: str


def keep(place: str, run: str, name: str, source: str | bytes | os.PathLike[str]) -> Artifact:
    """Stores the bytes, or those of the file at a path, and says where they lie.

    Raises OSError when the file cannot be read, Permanent without a place, Transient when the place cannot be written.
    """
    if not place:
        raise Permanent(f"artifact {name}: no place for artifacts is set ({VARIABLE}, or --artifacts)")
    with _open(source) as file:
        digest, size = _digest(file)
        file.seek(0)
        try:
            url = _store(place, run, digest, size, file)
        except _Changed:
            raise Permanent(f"artifact {name}: the file changed while it was read") from None
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise Transient(f"artifact {name} could not be stored: {why}") from error
    return Artifact(name, f"sha256:{digest}", size, url)


class _Changed(Exception):
    pass


def _open(source: str | bytes | os.PathLike[str]) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb")


def _digest(file: BinaryIO) -> tuple[str, int]:
    found, size = hashlib.sha256(), 0
    while chunk := file.read(CHUNK):
        found.update(chunk)
        size += len(chunk)
    return found.hexdigest(), size


def _store(place: str, run: str, digest: str, size: int, file: BinaryIO) -> str:
    """Writes beside and then moves, so that a name never stands for half of its bytes."""
    import fsspec  # slow to import, and most handlers make no artifacts

    system, root = fsspec.core.url_to_fs(place)
    folder = f"{root.rstrip('/')}/{run}"
    path = f"{folder}/{digest}"
    if not (system.exists(path) and system.size(path) == size):
        system.makedirs(folder, exist_ok=True)
        part = f"{folder}/.{digest[:16]}-{secrets.token_hex(8)}"
        try:
            _copy(system, part, digest, file)
            system.mv(part, path)
        except BaseException:
            if system.exists(part):
                system.rm(part)
            raise
    return without_secrets(system.unstrip_protocol(path))


def _copy(system: Any, part: str, digest: str, file: BinaryIO) -> None:
    found = hashlib.sha256()
    with system.open(part, "wb") as target:
        while chunk := file.read(CHUNK):
            found.update(chunk)
            target.write(chunk)
    if found.hexdigest() != digest:
        raise _Changed


def without_secrets(url: str) -> str:
    """The URL without a user or a password in it."""
    return re.sub(r"^([a-z0-9+.:-]+://)[^/@]*@", r"\1", url, flags=re.IGNORECASE)
