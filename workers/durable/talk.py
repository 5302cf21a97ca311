"""Owns the handler's side of a conversation with the coordinator: what it may say, and when its attempt is over.

Must not know how the words travel (that is the Channel) nor what they are about.
"""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import ValidationError

from coordinator.wire.grants import Answer, ChildReply, Grant, Message
from coordinator.wire.names import Refusal, ReplyStatus
from coordinator.wire.reports import (
    ActionDoubt,
    ActionEnd,
    ActionStart,
    ArtifactMade,
    LeasedRequest,
    Spawn,
    Use,
)
from workers.outcomes import AttemptCanceled

REQUESTS: dict[str, type[LeasedRequest]] = {
    "use": Use,
    "action": ActionStart,
    "action_end": ActionEnd,
    "action_doubt": ActionDoubt,
    "spawn": Spawn,
    "artifact": ArtifactMade,
}
"""What a handler can say, by the kind of its inbox entry."""

OVER = frozenset(
    {
        Refusal.RUN_STOPPED,
        Refusal.STALE_LEASE,
        Refusal.STALE_ATTEMPT,
        Refusal.UNKNOWN_RUN,
        Refusal.UNKNOWN_TASK,
        Refusal.WRONG_ROLE,
    }
)
"""Refusals which say that the attempt is over: its handler must not do anything more."""


class Channel(Protocol):
    """How a handler's words reach the coordinator. Every method may be called from any thread."""

    artifacts: str
    """URL below which artifacts are kept, empty when nobody said."""

    def canceled(self) -> bool:
        """Whether the attempt is to end."""

    def draining(self) -> bool:
        """Whether the worker is about to stop."""

    def progress(self, details: str) -> None:
        """Says that the handler gets on; never waits, never fails."""

    def use(self, tokens: int, cost_micros: int) -> bool:
        """Says the totals used so far; True when they cannot be covered."""

    def ask(self, kind: str, fields: dict[str, Any], wait: bool = True) -> Message | None:
        """Says something, again and again until it is answered; None when the attempt is to end before that.

        wait False: comes back (with None) as soon as it is stored, also when the attempt is to end.
        """


class Unsayable(ValueError):
    """It cannot be said in a message: too long, or of a wrong type."""


class Talk:
    """What one attempt says. Its methods may be called from any thread."""

    def __init__(self, grant: Grant, channel: Channel) -> None:
        self.grant = grant
        self.channel = channel
        self.in_doubt: set[str] = set()
        """Keys of actions that this attempt began, and of which it does not know whether they were done."""

    def ask(self, kind: str, **fields: Any) -> Answer | ChildReply:
        """Says something and waits for the answer. Raises AttemptCanceled when the attempt is over or to end,
        Unsayable for what no message can carry."""
        self._check(kind, fields)
        message = self.channel.ask(kind, fields)
        if not isinstance(message, Answer | ChildReply):
            raise AttemptCanceled("the attempt is to end")
        if message.status == ReplyStatus.REFUSED and message.word in OVER:
            raise AttemptCanceled(f"the attempt is over: {message.word}")
        return message

    def tell(self, kind: str, **fields: Any) -> None:
        """Says something that must be stored before the handler goes on, also when the attempt is to end."""
        self._check(kind, fields)
        self.channel.ask(kind, fields, wait=False)

    def _check(self, kind: str, fields: dict[str, Any]) -> None:
        grant = self.grant
        try:
            REQUESTS[kind](
                run=grant.run, task=grant.task, attempt=grant.attempt, worker="w", lease=grant.lease, **fields
            )
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            raise Unsayable(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
