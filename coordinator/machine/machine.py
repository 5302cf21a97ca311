"""Owns the way into the state machine: apply commands, ask questions. Every change of a run goes through here.

Must not decide anything about states, and must not retry: a lost reply is harmless, because an inbox entry is deleted
in the call that applies it (DESIGN 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from coordinator.machine.commands import GATE_FIELDS, Command
from coordinator.machine.documents import pack
from coordinator.machine.library import Library
from coordinator.machine.reads import Query, text
from coordinator.wire.channels import DEFAULT_NAMESPACE
from coordinator.wire.errors import MachineFault
from coordinator.wire.names import ReplyStatus


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a command. word: a Refusal or Verdict, or empty. run_status: the run's, after it."""

    status: ReplyStatus
    word: str
    run_status: str
    data: str = ""


class Machine:
    """The state machine on one Redis, in one namespace.

    redis: a client without decode_responses. epoch: set by the leader after take_lead; every command carries it.
    """

    def __init__(
        self, redis: Redis, namespace: str = DEFAULT_NAMESPACE, library: Library | None = None
    ) -> None:
        self.redis = redis
        self.namespace = namespace
        self.library = library or Library.build()
        self.epoch = 0

    def load(self) -> None:
        """Loads this version of the library; harmless when it is there."""
        self.library.load(self.redis)

    def apply(self, command: Command) -> Reply:
        """Applies one command. Raises MachineFault for an error inside Lua; redis errors pass through."""
        return self.apply_many([command])[0]

    def apply_many(self, commands: Sequence[Command]) -> list[Reply]:
        """Applies commands in order in one pipeline; gives their replies in order. The first fault is raised, after
        all of them were tried."""
        replies = self.apply_each(commands)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return [reply for reply in replies if isinstance(reply, Reply)]

    def apply_each(self, commands: Sequence[Command]) -> list[Reply | Exception]:
        """Like apply_many, with the fault of a command in the place of its reply."""
        if not commands:
            return []
        pipe = self.redis.pipeline(transaction=False)
        for command in commands:
            self.library.call(pipe, self.namespace, command.name(), self._arguments(command))
        raw = pipe.execute(raise_on_error=False)
        return [self._reply(command, answer) for command, answer in zip(commands, raw, strict=True)]

    def read(self, query: Query) -> Any:
        """Asks one question; the answer is decoded by the query itself."""
        return self.read_many([query])[0]

    def read_many(self, queries: Sequence[Query]) -> list[Any]:
        """Asks several questions in one round trip; the answers in order. Raises MachineFault for errors inside Lua."""
        pipe = self.redis.pipeline(transaction=False)
        for query in queries:
            self.library.call_read(pipe, self.namespace, query.name(), query.arguments())
        raw = pipe.execute(raise_on_error=False)
        for query, answer in zip(queries, raw, strict=True):
            if isinstance(answer, Exception):
                raise self._fault(query.name(), answer)
        return [query.decode(answer) for query, answer in zip(queries, raw, strict=True)]

    def _arguments(self, command: Command) -> list[Any]:
        header = [self.epoch, *(getattr(command, name) for name in GATE_FIELDS)]
        own = [getattr(command, name) for name in command.own_fields()]
        for name in command.DOCUMENTS:
            place = command.own_fields().index(name)
            own[place] = pack(own[place])
        return header + own

    def _reply(self, command: Command, answer: Any) -> Reply | Exception:
        if isinstance(answer, Exception):
            return self._fault(command.name(), answer)
        status, word, run_status, *rest = (text(part) for part in answer)
        return Reply(ReplyStatus(status), word, run_status, rest[0] if rest else "")

    def _fault(self, name: str, error: Exception) -> Exception:
        """An error of our own Lua is a fault of ours; anything else that the server says is passed on."""
        message = str(error)
        if isinstance(error, ResponseError) and ("user_function" in message or "Script killed" in message):
            return MachineFault(f"{name}: {self.library.locate(message)}")
        return error
