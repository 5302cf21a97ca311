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
        """Applies commands in order in one pipeline; gives their replies in order."""
        if not commands:
            return []
        pipe = self.redis.pipeline(transaction=False)
        for command in commands:
            self.library.call(pipe, self.namespace, command.name(), self._arguments(command))
        raw = pipe.execute(raise_on_error=False)
        return [self._reply(command, answer) for command, answer in zip(commands, raw, strict=True)]

    def read(self, query: Query) -> Any:
        """Asks one question; the answer is decoded by the query itself."""
        try:
            raw = self.library.call_read(self.redis, self.namespace, query.name(), query.arguments())
        except ResponseError as error:
            raise self._fault(query.name(), error) from error
        return query.decode(raw)

    def _arguments(self, command: Command) -> list[Any]:
        header = [self.epoch, *(getattr(command, name) for name in GATE_FIELDS)]
        return header + [getattr(command, name) for name in command.own_fields()]

    def _reply(self, command: Command, answer: Any) -> Reply:
        if isinstance(answer, ResponseError):
            raise self._fault(command.name(), answer) from answer
        if isinstance(answer, Exception):
            raise answer
        status, word, run_status, *rest = (text(part) for part in answer)
        return Reply(ReplyStatus(status), word, run_status, rest[0] if rest else "")

    def _fault(self, name: str, error: ResponseError) -> Exception:
        """An error of our own Lua is a fault of ours; anything else that the server says is passed on."""
        message = str(error)
        if "user_function" in message or "Script killed" in message:
            return MachineFault(f"{name}: {self.library.locate(message)}")
        return error
