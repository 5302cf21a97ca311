"""Owns reading the inboxes: which there are, how far a step reads, what happens to entries that have to wait.

An entry that exists was not applied; the command that applies it deletes it (DESIGN 1). So nothing is remembered
between steps but where to listen. Must not know what an entry means (`translate.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog
from redis import Redis

from coordinator.machine.commands import Command
from coordinator.machine.machine import Reply
from coordinator.runtime.leader import Fenced
from coordinator.runtime.translation.envelope import Source
from coordinator.runtime.translation.translator import Translator
from coordinator.wire import channels
from coordinator.wire.errors import MachineFault
from coordinator.wire.names import ReplyStatus

BEGINNING = "0-0"

Page = list[tuple[bytes, dict[bytes, bytes]]]

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Drained:
    """What a step found. done: entries gone for good. waiting: left where they are. more: not read to the end.

    submits: there were some, so there may be new roles. followed: replies to the commands that were to follow the
    entries; None when they were not sent.
    """

    done: int = 0
    waiting: int = 0
    more: bool = False
    submits: bool = False
    followed: list[Reply] | None = None


@dataclass(frozen=True, slots=True)
class _Item:
    source: Source
    entry: str
    raw: dict[bytes, bytes]
    command: Command


class Inboxes:
    """All inboxes of an installation. page: entries read from each at once; rounds: pages of each in one step."""

    def __init__(
        self, redis: Redis, namespace: str, translator: Translator, fenced: Fenced, page: int, rounds: int
    ) -> None:
        self._redis = redis
        self._namespace = namespace
        self._translator = translator
        self._fenced = fenced
        self._page = page
        self._rounds = rounds
        self._scopes = [Source(channels.scope_inbox(namespace, scope), scope) for scope in channels.SCOPES]
        self._sources = self._scopes
        self._seen: dict[Source, str] = {}
        self._fetched: dict[Source, Page] = {}
        """What `wait` found, for the next drain."""
        self._left_behind = True
        """Whether entries may stand before those that were seen."""

    def listen_to(self, roles: Sequence[str]) -> None:
        """From now on the inboxes of these roles are read, beside those of the scopes; those with `~` are no roles."""
        roles = [role for role in roles if not role.startswith("~")]
        if len(roles) != len(self._sources) - len(self._scopes):
            self._sources = [
                *self._scopes,
                *(Source(channels.inbox(self._namespace, role), "role", role) for role in sorted(roles)),
            ]
            self._left_behind = True

    def forget(self) -> None:
        """Begins anew, for a new lead: what others saw and did meanwhile is not known here."""
        self._sources = self._scopes
        self._seen, self._fetched = {}, {}
        self._left_behind = True

    def drain(self, now: int, follow: Sequence[Command] = ()) -> Drained:
        """Applies what stands in the inboxes, each in its order of arrival, each from its beginning.

        An entry of a run with an open batch stays, and so do all later ones of that run; those of other runs behind
        it are looked for on further pages, so that one busy run starves nobody. follow: commands that are sent in the
        pipeline of the last entries, if there are any and no fault is among them.
        """
        drained = Drained()
        held: set[str] = set()
        pages, self._fetched = self._fetched, {}
        if not pages or self._left_behind:
            pages = self._read(dict.fromkeys(self._sources, "-"))
        for _ in range(self._rounds):
            full = {
                source: f"({page[-1][0].decode()}"
                for source, page in pages.items()
                if len(page) == self._page
            }
            self._apply_pages(pages, now, held, drained, () if full else follow)
            if not full:
                break
            pages = self._read(full)
        else:
            drained.more = True
        self._left_behind = bool(drained.more or drained.waiting)
        return drained

    def wait(self, ms: int) -> None:
        """Blocks until a new entry arrives in any inbox, at most `ms` (> 0). What arrived is kept for `drain`, so
        that an entry that wakes the loop costs no second reading."""
        by_key = {source.key.encode(): source for source in self._sources}
        streams: dict[Any, Any] = {source.key: self._seen.get(source, BEGINNING) for source in self._sources}
        found: Any = self._redis.xread(streams, count=self._page, block=ms)
        self._fetched = {by_key[key]: page for key, page in found or ()}

    def _read(self, starts: dict[Source, str]) -> dict[Source, Page]:
        with self._redis.pipeline(transaction=False) as pipe:
            for source, start in starts.items():
                pipe.xrange(source.key, min=start, count=self._page)
            pages = dict(zip(starts, pipe.execute(), strict=True))
        return {source: page for source, page in pages.items() if page}

    def _apply_pages(
        self,
        pages: dict[Source, Page],
        now: int,
        held: set[str],
        drained: Drained,
        follow: Sequence[Command],
    ) -> None:
        """Submits first: a report on a new run in the same page needs to find its documents."""
        submits = {source: page for source, page in pages.items() if source.scope == "submit"}
        others = {source: page for source, page in pages.items() if source.scope != "submit"}
        drained.submits = drained.submits or bool(submits)
        self._apply(self._items(submits, now, held, drained), now, held, drained, () if others else follow)
        self._apply(self._items(others, now, held, drained), now, held, drained, follow)

    def _items(self, pages: dict[Source, Page], now: int, held: set[str], drained: Drained) -> list[_Item]:
        """The entries that can be applied, in order; those of held runs are passed over."""
        items = []
        for source, page in pages.items():
            self._seen[source] = page[-1][0].decode()
            for entry, raw in page:
                command = self._translator.command(source, entry.decode(), raw, now)
                if held and getattr(command, "run", None) in held:
                    drained.waiting += 1
                else:
                    items.append(_Item(source, entry.decode(), raw, command))
        return items

    def _apply(
        self, items: list[_Item], now: int, held: set[str], drained: Drained, follow: Sequence[Command]
    ) -> None:
        if not items:
            return
        replies = self._replies(items, now, drained, follow)
        for item, reply in zip(items, replies, strict=True):
            if reply.status == ReplyStatus.WAITING:
                held.add(getattr(item.command, "run", ""))
                drained.waiting += 1
            else:
                drained.done += 1

    def _replies(
        self, items: list[_Item], now: int, drained: Drained, follow: Sequence[Command]
    ) -> Sequence[Reply]:
        replies = self._fenced.apply_each([*(item.command for item in items), *follow])
        followed = [reply for reply in replies[len(items) :] if isinstance(reply, Reply)]
        if follow and len(followed) == len(follow):
            drained.followed = followed
        return [
            reply if isinstance(reply, Reply) else self._put_aside(item, now, reply)
            for item, reply in zip(items, replies, strict=False)
        ]

    def _put_aside(self, item: _Item, now: int, fault: MachineFault) -> Reply:
        """No entry may stop all others for ever: the one that the machine failed on goes to the ledger.

        Mostly it is gone from the inbox, since the gate deletes it first, and then it is put into the ledger by a
        call that deletes nothing.
        """
        place = f"{item.source.key} {item.entry}"
        log.error("entry_failed", entry=place, command=item.command.name(), fault=str(fault))
        reason = f"the state machine failed on this entry ({place}): {fault}"
        refusal = self._translator.refusal(item.source, item.entry, item.raw, now, reason)
        [reply] = self._fenced.apply_many([refusal])
        if reply.status == ReplyStatus.REPEATED:
            [reply] = self._fenced.apply_many([replace(refusal, inbox="", entry="")])
        return reply
