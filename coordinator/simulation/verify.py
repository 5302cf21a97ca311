"""Owns `verify`: a run's recorded commands, applied to an empty store by the library that made them, must give the same
end state (DESIGN 1, 5).

Must not change the run or the installation that it belongs to, and must not take a missing library for a difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from redis import Redis

from coordinator.machine import commands
from coordinator.machine.commands import Command
from coordinator.machine.documents import pack
from coordinator.machine.keys import RUN_KEYS, settings
from coordinator.machine.library import Library
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadCommands, ReadDocuments, ReadPayloads, ReadRun, text
from coordinator.wire.errors import InputFault, Refused

PAGE = 500
"""Commands read, and applied, at once."""
TRIES = 5
"""Looks at a run that moves, before it is said that it does."""
FIRST_EPOCH = "0"
"""The epoch of a store in which nobody ever led."""

_BY_NAME: Mapping[str, type[Command]] = {
    kind.name(): kind
    for kind in vars(commands).values()
    if isinstance(kind, type) and issubclass(kind, Command)
}


class Verdict(StrEnum):
    """What came of a verification."""

    EQUAL = "equal"
    """Every key of the run is the same."""
    DIFFERS = "differs"
    """At least one is not."""
    NOT_VERIFIABLE = "not_verifiable"
    """The library that made the run is neither this version nor on the server."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The verdict. commands: how many were applied; differs: the first key that differs, and how."""

    verdict: Verdict
    commands: int = 0
    differs: str = ""


def verify(machine: Machine, run: str, empty: Redis) -> Verification:
    """Verifies a run. machine: that of its installation; empty: a private server, whose database is emptied first.

    Raises InputFault for an unknown run, Refused for one that moves too fast to be looked at.
    """
    record = machine.read(ReadRun(run))
    if not record:
        raise InputFault(f"{run}: no such run")
    library = library_of(machine, record["library"])
    if library is None:
        return Verification(Verdict.NOT_VERIFIABLE)
    applied, recorded = _recorded(machine, run)
    empty.flushdb()
    library.load(empty)
    installed: dict[Any, Any] = machine.redis.hgetall(settings(machine.namespace))
    if installed:
        empty.hset(settings(machine.namespace), mapping=installed)
    for start in range(0, len(applied), PAGE):
        with empty.pipeline(transaction=False) as pipe:
            for name, arguments in applied[start : start + PAGE]:
                library.call(pipe, machine.namespace, name, arguments)
            pipe.execute()
    differs = first_difference(recorded, dump(empty, machine.namespace, run))
    return Verification(Verdict.DIFFERS if differs else Verdict.EQUAL, len(applied), differs)


def library_of(machine: Machine, wanted: str) -> Library | None:
    """The library of that hash: this version, or one that is still loaded on the run's server."""
    if wanted == machine.library.hash:
        return machine.library
    for found in machine.redis.function_list(library=f"crewline_{wanted}", withcode=True):
        fields = {text(found[i]): found[i + 1] for i in range(0, len(found), 2)}
        return Library(wanted, text(fields["library_code"]), ((1, f"crewline_{wanted}"),))
    return None


# -- what is recorded ------------------------------------------------------------------------------------


def _recorded(machine: Machine, run: str) -> tuple[list[tuple[str, list[str]]], dict[str, Any]]:
    """The commands as calls, and the keys that they led to, both of one moment."""
    for _ in range(TRIES):
        entries = list(_entries(machine, run))
        stored = dump(machine.redis, machine.namespace, run)
        if len(entries) == len(stored.get("commands", ())):
            return _calls(machine, run, entries), stored
    raise Refused(f"{run} moves while it is looked at: verify it when it has stopped")


def _entries(machine: Machine, run: str) -> Iterator[list[str]]:
    offset = 0
    while page := machine.read(ReadCommands(run, offset, PAGE)):
        yield from page
        offset += len(page)


def _calls(machine: Machine, run: str, entries: list[list[str]]) -> list[tuple[str, list[str]]]:
    """Function names and arguments; payloads that are recorded by digest alone are put in their place again."""
    calls: list[tuple[str, list[str]]] = []
    documents = {name: pack(text) for name, text in machine.read(ReadDocuments(run)).items()}
    for start in range(0, len(entries), PAGE):
        page = entries[start : start + PAGE]
        digests = tuple(sorted({digest for entry in page if (digest := _digest(entry))}))
        found = machine.read(ReadPayloads(run, digests)) if digests else []
        payloads = dict(zip(digests, found, strict=True))
        calls += [_call(entry, payloads, documents) for entry in page]
    return calls


def _call(
    entry: list[str], payloads: Mapping[str, str | None], documents: Mapping[str, str]
) -> tuple[str, list[str]]:
    name, now, *own = entry
    if digest := _digest(entry):
        own[_BY_NAME[name].own_fields().index("payload")] = payloads[digest] or ""
    for document in _BY_NAME[name].DOCUMENTS if name in _BY_NAME else ():
        own[_BY_NAME[name].own_fields().index(document)] = documents[document]
    inbox = queued = reply_to = request = ""
    return name, [FIRST_EPOCH, now, inbox, queued, reply_to, request, *own]


def _digest(entry: list[str]) -> str:
    """The digest under which the run keeps the command's payload; empty when it has none."""
    name, _, *own = entry
    fields = _BY_NAME[name].own_fields() if name in _BY_NAME else ()
    return own[fields.index("digest")] if "payload" in fields else ""


# -- what is stored --------------------------------------------------------------------------------------


def dump(redis: Redis, namespace: str, run: str) -> dict[str, Any]:
    """Every key of the run by its name without namespace and run, with its content in a comparable form."""
    found: dict[str, Any] = {}
    for key in redis.scan_iter(match=f"{namespace}:*:{run}*", count=PAGE):
        kind, _, rest = text(key)[len(namespace) + 1 :].partition(":")
        if kind in RUN_KEYS and (rest == run or rest.startswith(f"{run}:")):
            found[kind + rest[len(run) :]] = _content(redis, text(key))
    return found


def _content(redis: Redis, key: str) -> Any:
    client: Any = redis
    kind = text(client.type(key))
    if kind == "hash":
        return {text(name): _value(value) for name, value in client.hgetall(key).items()}
    if kind == "list":
        return [_value(value) for value in client.lrange(key, 0, -1)]
    if kind == "set":
        return sorted(text(value) for value in client.smembers(key))
    if kind == "zset":
        return [(text(name), score) for name, score in client.zrange(key, 0, -1, withscores=True)]
    if kind == "stream":
        return [
            (text(entry), [text(part) for pair in fields.items() for part in pair])
            for entry, fields in client.xrange(key)
        ]
    return text(client.get(key))


def _value(raw: bytes) -> Any:
    """A text; JSON that Lua encoded is compared by its content, because the order of keys is the server's."""
    value = text(raw)
    if value[:1] in ("{", "["):
        try:
            return ("json", json.loads(value))
        except ValueError:
            return value
    return value


def first_difference(recorded: Mapping[str, Any], applied: Mapping[str, Any]) -> str:
    """The first key (by name) that differs and how; empty when none does."""
    for key in sorted({*recorded, *applied}):
        if key not in applied:
            return f"{key} should not be there"
        if key not in recorded:
            return f"{key} is missing"
        if recorded[key] != applied[key]:
            return f"{key}: {_where(recorded[key], applied[key])}"
    return ""


def _where(recorded: Any, applied: Any) -> str:
    if isinstance(recorded, dict) and isinstance(applied, dict):
        name = next(name for name in sorted({*recorded, *applied}) if recorded.get(name) != applied.get(name))
        return f"{name} is {_shown(recorded.get(name))}, the commands give {_shown(applied.get(name))}"
    if isinstance(recorded, list) and isinstance(applied, list):
        at = next(
            (n for n, pair in enumerate(zip(recorded, applied, strict=False)) if pair[0] != pair[1]), None
        )
        if at is None:
            return f"{len(recorded)} entries, the commands give {len(applied)}"
        return f"entry {at} is {_shown(recorded[at])}, the commands give {_shown(applied[at])}"
    return f"{_shown(recorded)}, the commands give {_shown(applied)}"


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 200 else shown[:197] + "..."
