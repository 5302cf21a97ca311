"""Owns reading the append-only file as a journal: every inbox entry that was stored, and what was recorded at its end.

It is what Redis itself wrote down, below Lua and below our own reads, so it can tell a report that was lost, or applied
twice. Must not judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Applied:
    """One transaction that took an entry out of its inbox. recorded: keys that it wrote (kind and run), of `commands`,
    `history`, `ledger`, `late`, `reply`. verdicts: kind and task of the events that it wrote."""

    recorded: list[str] = field(default_factory=list)
    verdicts: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Letter:
    """An inbox entry, by inbox and id; what it said; and every transaction that took it out."""

    inbox: str
    entry: str
    said: dict[str, str]
    applied: list[Applied] = field(default_factory=list)


def read_journal(folder: Path, namespace: str) -> list[Letter]:
    """All inbox entries of an installation, in the order in which they were stored. folder: Redis' data."""
    letters: dict[tuple[str, str], Letter] = {}
    prefix = f"{namespace}:inbox:".encode()
    for transaction in _transactions(_commands(folder)):
        taken: list[Letter] = []
        for command in transaction:
            if command[0].upper() == b"XADD" and command[1].startswith(prefix):
                letter = _letter(command)
                letters[letter.inbox, letter.entry] = letter
            elif command[0].upper() == b"XDEL" and command[1].startswith(prefix):
                taken += [letters[command[1].decode(), entry.decode()] for entry in command[2:]]
        if taken:
            applied = _applied(transaction, namespace)
            for letter in taken:
                letter.applied.append(applied)
    return list(letters.values())


def _letter(command: list[bytes]) -> Letter:
    """XADD with its options as Redis rewrote them: key, options, id, fields."""
    at = next(
        n for n, word in enumerate(command[2:], 2) if b"-" in word and word.replace(b"-", b"").isdigit()
    )
    words = [word.decode("utf-8", "backslashreplace") for word in command[at + 1 :]]
    return Letter(command[1].decode(), command[at].decode(), dict(zip(words[::2], words[1::2], strict=True)))


def _applied(transaction: list[list[bytes]], namespace: str) -> Applied:
    found = Applied()
    for command in transaction:
        name, key = command[0].upper(), command[1].decode() if len(command) > 1 else ""
        kind, _, run = key.removeprefix(f"{namespace}:").partition(":")
        if kind not in ("commands", "history", "ledger", "late", "reply") or name not in (
            b"XADD",
            b"RPUSH",
            b"LPUSH",
        ):
            continue
        found.recorded.append(f"{kind}:{run}" if run else kind)
        if kind == "history":
            fields = [word.decode() for word in command[3:]]
            event = dict(zip(fields[::2], fields[1::2], strict=False))
            found.verdicts.append((event.get("kind", ""), event.get("task_id", "")))
    return found


def _transactions(commands: Iterator[list[bytes]]) -> Iterator[list[list[bytes]]]:
    """Commands between MULTI and EXEC together, each other one alone."""
    together: list[list[bytes]] | None = None
    for command in commands:
        name = command[0].upper()
        if name == b"MULTI":
            together = []
        elif name == b"EXEC":
            yield together or []
            together = None
        elif together is None:
            yield [command]
        else:
            together.append(command)


def _commands(folder: Path) -> Iterator[list[bytes]]:
    """The commands of all incremental parts, in order; a part that was cut off by a kill ends where it was cut."""
    directory = folder / "appendonlydir"
    [manifest] = directory.glob("*.manifest")
    for line in manifest.read_text().splitlines():
        words = line.split()
        if words[5] == "i":
            yield from _parse((directory / words[1]).read_bytes())


def _parse(data: bytes) -> Iterator[list[bytes]]:
    at, end = 0, len(data)
    while at < end:
        line = data.find(b"\r\n", at)
        if line < 0:
            return
        if data[at : at + 1] != b"*":  # an annotation
            at = line + 2
            continue
        count, at = int(data[at + 1 : line]), line + 2
        command = []
        for _ in range(count):
            line = data.find(b"\r\n", at)
            if line < 0:
                return
            size = int(data[at + 1 : line])
            command.append(data[line + 2 : line + 2 + size])
            at = line + 2 + size + 2
        if at > end:
            return
        yield command
