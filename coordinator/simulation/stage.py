"""Owns one simulated installation: the production loop over the same Lua, a virtual clock, scripted workers.

Both `simulate` and `explore` play on it; how fast and in which order is theirs to say. Must not decide states, and must
not go round the loop: what happens to the run happens by inbox entries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from redis import Redis

from coordinator.machine.commands import TakeLead
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadEvents
from coordinator.runtime.loop import Bounds, Loop, StepResult
from coordinator.simulation.actors.externals import ScriptedExternals
from coordinator.simulation.actors.launcher import Deliver, ScriptedLauncher
from coordinator.simulation.actors.post import Post
from coordinator.simulation.actors.workers import ScriptedWorkers
from coordinator.simulation.clock import Agenda, Happening, VirtualClock
from coordinator.simulation.invariants import Fields
from coordinator.simulation.scene import Scene
from coordinator.wire.channels import client_reply
from coordinator.wire.errors import InputFault
from coordinator.wire.grants import Answer, parse_message
from coordinator.wire.names import FINAL, ReplyStatus
from coordinator.wire.reports import Submit

LEAD_MS = 10**10
"""The lead never expires by itself: Redis' clock decides nothing here."""
PATIENCE = 20
"""Looks at the queues (each a sweep apart) before a run that waits for nothing is called idle."""
_REQUEST = "submit"
_PAGE = 500


class Stage:
    """A scene being played. make_machine: for each coordinator; deliver: what becomes of jobs on their way."""

    def __init__(
        self,
        redis: Redis,
        scene: Scene,
        *,
        post: Post | None = None,
        make_machine: Callable[[], Machine] | None = None,
        deliver: Deliver | None = None,
    ) -> None:
        self._redis = redis
        self.scene = scene
        self.clock = VirtualClock()
        self.agenda = Agenda()
        self.post = post or Post(redis, scene.namespace)
        self.workers = ScriptedWorkers(self.post, self.agenda, self.clock, scene.script)
        self.externals = ScriptedExternals(self.post, self.agenda, self.clock, scene.script)
        self._make_machine = make_machine or partial(Machine, redis, scene.namespace)
        self._deliver = deliver
        self._tokens = scene.tokens()
        self._coordinators = 0
        self._seen = 0
        self._heard = 0
        self._news: list[Fields] = []
        self._idle = 0
        self._finished = False
        self.stepped = False
        """Whether a coordinator did anything since this was last unset."""
        self._last = StepResult()
        self.status = ""
        self.machine, self.loop = self._start_coordinator()

    # -- coordinators ----------------------------------------------------------------------------------

    def _start_coordinator(self) -> tuple[Machine, Loop]:
        """A fresh process: it takes the lead and knows nothing."""
        self._coordinators += 1
        namespace = self.scene.namespace
        machine = self._make_machine()
        machine.load()
        lead = TakeLead(now=self.clock.now, holder=f"coordinator-{self._coordinators}", ttl_ms=LEAD_MS)
        machine.epoch = int(machine.apply(lead).data)
        launcher = ScriptedLauncher(machine, self._redis, namespace, self.workers, self._deliver)
        loop = Loop(machine, self._redis, namespace, launcher=launcher, tokens=self._tokens, allow_cycle=True)
        return machine, loop

    def restart_coordinator(self) -> None:
        """The coordinator died; another one takes the lead as soon as the lease of the first has run out."""
        self._redis.delete(f"{self.scene.namespace}:leader")
        self.machine, self.loop = self._start_coordinator()

    def replace_leader(self) -> Loop:
        """Another coordinator takes the lead; gives the loop of the old one, which does not know it."""
        old = self.loop
        self.restart_coordinator()
        return old

    def step_of_old_leader(self, old: Loop) -> bool:
        """The old leader goes on as if it still led; says whether it noticed."""
        self.stepped = True
        return old.step(self.clock.now).deposed

    # -- what happens ----------------------------------------------------------------------------------

    def submit(self) -> None:
        """Submits the run as a client does. Raises InputFault when it is refused."""
        team, inputs = self.scene.documents
        reply_to = client_reply(self.scene.namespace, _REQUEST)
        entry = Submit(run=self.scene.run, team=team, inputs=inputs, reply_to=reply_to, request=_REQUEST)
        self.post.to_scope("submit", entry)
        self.step()
        raw = self.post.answer(_REQUEST)
        answer = parse_message(raw) if raw else None
        if not isinstance(answer, Answer) or answer.status != ReplyStatus.APPLIED:
            raise InputFault(
                answer.detail or answer.word if isinstance(answer, Answer) else "the run was not accepted"
            )

    def step(self) -> StepResult:
        """One step of the loop; then everybody reads what is new."""
        self._heard = self.post.sent
        self.stepped = True
        self._last = self.loop.step(self.clock.now)
        self.attend()
        return self._last

    def attend(self) -> None:
        """Everybody reads what is new: workers their answers, outside systems the events."""
        self.workers.listen()
        events = self._read_events()
        if events:
            self._seen = int(events[-1]["seq"])
            self.status = next((e["to"] for e in reversed(events) if _is_status(e)), self.status)
            self.externals.watch(events, self.scene.run)
            self._news += events

    def _read_events(self) -> list[Fields]:
        events: list[Fields] = []
        seen = self._seen
        page: list[Fields] = [{}] * _PAGE
        while len(page) == _PAGE:
            page = self.machine.read(ReadEvents(self.scene.run, seen, _PAGE))
            events += page
            seen = int(page[-1]["seq"]) if page else seen
        return events

    def take_news(self) -> list[Fields]:
        """The events that came since this was asked last."""
        news, self._news = self._news, []
        return news

    @property
    def rests(self) -> bool:
        """Whether a step would find nothing to do, unless time passes or somebody speaks."""
        return not self._last.more and self.post.sent == self._heard

    def let_happen(self, happening: Happening) -> None:
        """One thing of the agenda happens now, whenever it was planned."""
        self.agenda.take(happening)
        happening.act()

    def pass_time(self) -> bool:
        """Moves the clock to whatever is due next; False when nothing is."""
        instants = [
            at for at in (self.agenda.next_at(), self._last.wake_at) if at is not None and at > self.clock.now
        ]
        if instants:
            self.clock.advance_to(min(instants))
        return bool(instants)

    def fair_step(self) -> StepResult:
        """What comes next when everything comes in its time and nothing goes wrong."""
        if self.rests and not self.agenda.is_due(self.clock.now):
            self._wait()
        with self.post.bundled():
            while happening := self.agenda.take_due(self.clock.now):
                happening.act()
        return self.step()

    def _wait(self) -> None:
        """Nothing is left to do now: time moves on, unless the run is over."""
        if self.status in FINAL:
            self._finished = not self._send_late()
        elif self.pass_time():
            self._idle = 0
        elif not self._send_late():
            self._idle += 1
            self.clock.advance_to(self.clock.now + Bounds().sweep_ms)

    def _send_late(self) -> bool:
        sent = self.workers.send_late()
        return self.externals.send_late() or sent

    # -- how it stands ---------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether the run has stopped and everything that was still to be said about it was said."""
        return self._finished

    @property
    def is_idle(self) -> bool:
        """Whether nothing is going to happen any more, for all that is known."""
        return self._idle >= PATIENCE


def _is_status(event: Fields) -> bool:
    """Whether an event is one of the run, not of a task."""
    return event["kind"].startswith("run_") and bool(event["to"])
