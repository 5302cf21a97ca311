"""Owns the faults of a chaos run: which there are, how each is done, and the seeded order in which they come.

A fault with a length (a freeze, a delay, a silence) is ended by `tick` when its time has come, or by `heal`. Must not
look at what the faults do to the runs: that is the checker's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from redis.exceptions import RedisError

from ops.chaos.fleet import Fleet, Pause, now
from ops.chaos.load import NAMESPACE, Load
from ops.chaos.proxy import Proxy
from ops.chaos.store import Store
from ops.chaos.teams import ROLES

GAP_MS = (300, 1_500)
"""Time between two faults."""
WORKERS = ("inline", "forked")

Undo = Callable[[], None]


class Faults:
    """Injects one fault after the other. tally: how often each came."""

    def __init__(self, random: Random, fleet: Fleet, proxy: Proxy, store: Store, load: Load) -> None:
        self._random, self._fleet, self._proxy = random, fleet, proxy
        self._store, self._load = store, load
        self.tally: Counter[str] = Counter()
        self._undo: list[tuple[int, Undo]] = []
        self._next_at = now() + GAP_MS[1]
        self._kinds: list[tuple[str, int, Callable[[], bool]]] = [
            ("worker killed", 4, lambda: self._kill(whole=False)),
            ("worker host lost", 1, lambda: self._kill(whole=True)),
            ("handler process killed", 3, self._kill_handler),
            ("worker frozen", 4, lambda: self._freeze(WORKERS, (300, 4_500))),
            ("worker drained", 2, lambda: self._drain(*WORKERS)),
            ("coordinator killed", 2, self._kill_coordinator),
            ("coordinator frozen", 3, lambda: self._freeze(("coordinator",), (500, 5_000))),
            ("coordinator drained", 1, lambda: self._drain("coordinator")),
            ("network delayed", 2, self._delay),
            ("network silent", 2, self._swallow),
            ("network cut", 3, self._cut),
            ("reply lost", 4, self._lose_reply),
            ("Redis restarted", 1, lambda: self._restart(killed=False)),
            ("Redis killed", 1, lambda: self._restart(killed=True)),
            ("clients killed", 2, self._kill_clients),
            ("functions flushed", 1, self._flush_functions),
            ("job vanished", 2, self._lose_job),
            ("entry malformed", 1, self._scrawl),
            ("run canceled", 2, lambda: self._load.cancel(whole=True)),
            ("task canceled", 4, lambda: self._load.cancel(whole=False)),
        ]

    def tick(self) -> None:
        """Ends what is over, and does the next fault when its time has come."""
        at = now()
        for due, undo in [each for each in self._undo if each[0] <= at]:
            self._undo.remove((due, undo))
            undo()
        if at < self._next_at:
            return
        self._next_at = at + self._random.randint(*GAP_MS)
        names, weights, _ = zip(*self._kinds, strict=True)
        [name] = self._random.choices(names, weights)
        inject = next(kind[2] for kind in self._kinds if kind[0] == name)
        try:
            if inject():
                self.tally[name] += 1
        except RedisError:
            return  # the fault needs Redis, and Redis is just away

    def heal(self) -> None:
        """Ends every fault that still lasts."""
        for _, undo in self._undo:
            undo()
        self._undo.clear()
        for name in self._fleet.members:
            self._proxy.heal(name)

    # -- processes -----------------------------------------------------------------------------------------

    def _someone(self, *kinds: str) -> str:
        """A member that stands up; empty when there is none."""
        names = self._fleet.names(*kinds)
        return self._random.choice(names) if names else ""

    def _kill(self, *, whole: bool) -> bool:
        name = self._someone(*WORKERS)
        if name:
            self._fleet.kill(name, whole=whole)
        return bool(name)

    def _kill_handler(self) -> bool:
        name = self._someone("forked")
        return bool(name) and self._fleet.kill_handler(name)

    def _kill_coordinator(self) -> bool:
        name = self._someone("coordinator")
        if name:
            self._fleet.kill(name, whole=True)
        return bool(name)

    def _drain(self, *kinds: str) -> bool:
        name = self._someone(*kinds)
        if name:
            self._fleet.drain(name)
        return bool(name)

    def _freeze(self, kinds: tuple[str, ...], span: tuple[int, int]) -> bool:
        name = self._someone(*kinds)
        if not name or len(self._fleet.names(*kinds)) == 1:
            return False
        self._fleet.freeze(name)
        self._undo.append((now() + self._random.randint(*span), lambda: self._fleet.thaw(name)))
        return True

    # -- network -------------------------------------------------------------------------------------------

    def _later(self, span: tuple[int, int], undo: Undo) -> bool:
        """Ends the fault after a while; until then nobody can be sure of its times."""
        began = now()

        def end() -> None:
            undo()
            self._fleet.pauses.append(Pause(0, began, now()))

        self._undo.append((began + self._random.randint(*span), end))
        return True

    def _delay(self) -> bool:
        name = self._someone()
        if not name:
            return False
        self._proxy.delay(name, self._random.choice((0.02, 0.1, 0.4)))
        return self._later((500, 3_000), lambda: self._proxy.heal(name))

    def _swallow(self) -> bool:
        name = self._someone()
        if not name:
            return False
        self._proxy.swallow(name, deaf=self._random.random() < 0.5)
        return self._later((500, 6_000), lambda: self._proxy.heal(name))

    def _cut(self) -> bool:
        name = self._someone()
        if name:
            self._proxy.cut(name)
        return bool(name)

    def _lose_reply(self) -> bool:
        name = self._someone()
        if name:
            self._proxy.lose_reply(name)
        return bool(name)

    # -- Redis ---------------------------------------------------------------------------------------------

    def _restart(self, *, killed: bool) -> bool:
        began = now()
        self._store.restart(killed=killed)
        self._fleet.pauses.append(Pause(0, began, now()))
        return True

    def _kill_clients(self) -> bool:
        with self._store.client() as client:
            client.client_kill_filter(_type="normal", skipme=True)
        return True

    def _flush_functions(self) -> bool:
        with self._store.client() as client:
            client.function_flush()
        return True

    def _lose_job(self) -> bool:
        """Somebody takes a job out of a queue and dies."""
        role = self._random.choice(sorted(ROLES))
        with self._store.client() as client:
            return client.lpop(f"rq:queue:{NAMESPACE}:{role}") is not None

    def _scrawl(self) -> bool:
        self._load.scrawl()
        return True
