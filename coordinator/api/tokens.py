"""Owns the tokens of the API: the file in which their hashes stand, making one, finding one.

A token has 256 random bits, so SHA-256 is hash enough: nothing can be guessed from it. The file has one JSON object a
line; adding and removing lines takes effect at the next request, in every process that reads it. Must not keep or
log a token itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog

from coordinator.wire.errors import InputFault

SCOPES = ("read", "submit", "operate", "review")
"""read: runs and their reports. submit: new runs. operate: cancel, resume, answer, signal, reports, actions; the
ledgers. review: reviews, and deciding them."""
PREFIX = "crw_"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
DAY_MS = 24 * 3600 * 1000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Token:
    """Who a caller is. name: what decisions are recorded under. expires_at: ms, None for never."""

    name: str
    scopes: frozenset[str]
    digest: str
    expires_at: int | None = None

    def may(self, *scopes: str) -> bool:
        """Whether it has any of these scopes."""
        return bool(self.scopes.intersection(scopes))


class TokenFile:
    """The tokens that hold now. The file is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        """Raises InputFault when the file cannot be read, or a line of it means nothing."""
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._by_digest: dict[str, Token] = {}
        try:
            self._tokens(strict=True)
        except OSError as error:
            raise InputFault(f"{path}: cannot be read: {error.strerror}") from None

    def find(self, secret: str) -> Token | None:
        """The token with this text; None when it is unknown or has expired."""
        return self.by_digest(digest(secret))

    def by_digest(self, hashed: str) -> Token | None:
        """The token with this hash; None when it is unknown or has expired."""
        try:
            token = self._tokens().get(hashed)
        except OSError:  # a file that is gone lets nobody in
            log.error("token_file_unreadable", path=str(self._path))
            return None
        if token and token.expires_at is not None and token.expires_at <= time.time() * 1000:
            return None
        return token

    def _tokens(self, strict: bool = False) -> dict[str, Token]:
        state = self._path.stat()
        stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
        if stamp != self._stamp:
            self._by_digest = {token.digest: token for token in read_tokens(self._path, strict)}
            self._stamp = stamp
        return self._by_digest


def read_tokens(path: Path, strict: bool = True) -> Iterator[Token]:
    """The tokens in a file. strict: raise InputFault for a line that means nothing; else it lets nobody in."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            yield _token(line)
        except (ValueError, KeyError, TypeError):
            if strict:
                raise InputFault(f"{path}:{number}: expected a line of crewline api-token") from None
            log.error("token_line_unreadable", path=str(path), line=number)


def add_token(path: Path, name: str, scopes: Collection[str], days: int | None = None) -> str:
    """Makes a token, appends its hash to the file (mode 0600 when new), and gives its text, which is kept nowhere.

    Raises InputFault for a name that is taken or no name, for an unknown scope, and a file that cannot be written.
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise InputFault(f"--scope {', '.join(unknown) or 'is missing'}: expected of {', '.join(SCOPES)}")
    if not NAME.fullmatch(name):
        raise InputFault(f"--name {name[:80]!r}: expected up to 64 letters, digits and _.@-")
    if path.exists() and any(token.name == name for token in read_tokens(path)):
        raise InputFault(f"--name {name}: {path} has a token of this name")
    secret = PREFIX + secrets.token_urlsafe(32)
    now = int(time.time() * 1000)
    entry = {"name": name, "scopes": sorted(set(scopes)), "sha256": digest(secret), "created_at": now}
    if days is not None:
        entry["expires_at"] = now + days * DAY_MS
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a") as file:
            file.write(json.dumps(entry) + "\n")
    except OSError as error:
        raise InputFault(f"{path}: cannot be written: {error.strerror}") from None
    return secret


def digest(secret: str) -> str:
    """The hash of a token's text, as it stands in the file."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _token(line: str) -> Token:
    entry = json.loads(line)
    name, scopes, hashed, expires = entry["name"], entry["scopes"], entry["sha256"], entry.get("expires_at")
    if not NAME.fullmatch(name) or not set(scopes) <= set(SCOPES) or not re.fullmatch("[0-9a-f]{64}", hashed):
        raise ValueError("name, scopes or hash")
    return Token(name, frozenset(scopes), hashed, int(expires) if expires is not None else None)
