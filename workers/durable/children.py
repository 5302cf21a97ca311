"""Owns the children that a handler makes: asking for one, waiting for it, what its failure is to the parent (SPEC 8).

A parent that waits holds no worker: its handler is left, and begins anew when the children have ended. Must not decide
whether a child may be made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from coordinator.wire.digest import InvalidPayload, encode
from coordinator.wire.grants import Answer, ChildReply
from coordinator.wire.names import ENDED, Refusal, TaskState
from workers.durable.talk import Talk
from workers.outcomes import AttemptLeft, Permanent

WHY = {
    Refusal.NOT_ALLOWED: "the Team does not let this role make children for that owner (roles: may_spawn)",
    Refusal.SPAWN_LIMIT: "the run has as many children as it may have, or they are as deep as they may be"
    " (limits: max_children, max_depth)",
}


class SpawnRefused(Permanent):
    """The child cannot be made: the message says why."""


class ChildFailed(Permanent):
    """A child that was waited for did not succeed.

    key: of its spawn. task: its name. state: failed, denied, canceled, blocked or skipped. error_class, error_type,
    error_message: of its own failure; the class is empty when it did not fail itself.
    """

    def __init__(self, key: str, reply: ChildReply) -> None:
        error = reply.error or {}
        self.key = key
        self.task = reply.child
        self.state = reply.state
        self.error_class = str(error.get("class", ""))
        self.error_type = str(error.get("type", ""))
        self.error_message = str(error.get("message", ""))
        why = f"{self.error_type}: {self.error_message}" if self.error_type else reply.reason
        super().__init__(f"child {key} ({reply.child}) {reply.state}" + (f": {why}" if why else ""))


class Child:
    """A child task. In a sync handler `child.result()`, in an async one `await child`.

    key: of its spawn. task: its name in the run. background: it is not waited for.
    """

    def __init__(self, talk: Talk, key: str, definition: str, background: bool) -> None:
        self.key = key
        self.background = background
        self._talk = talk
        self._definition = definition
        self._reply = self._look()

    @property
    def task(self) -> str:
        """Its name in the run, such as `lead[0]`."""
        return self._reply.child

    @property
    def state(self) -> str:
        """Its state when the coordinator was last asked."""
        return self._reply.state

    @property
    def ended(self) -> bool:
        """Whether it had ended then, whichever way."""
        return self._reply.state in ENDED

    def result(self) -> Any:
        """Its result. If it has not ended, this attempt ends here, and the handler begins anew when its children have.

        Raises ChildFailed when it ended without success. A background child is not waited for: RuntimeError.
        """
        if not self.ended:
            self._reply = self._look()
        return self._outcome()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._wait().__await__()

    async def _wait(self) -> Any:
        if not self.ended:
            self._reply = await asyncio.to_thread(self._look)
        return self._outcome()

    def _outcome(self) -> Any:
        if self.state == TaskState.SUCCEEDED:
            return self._reply.result
        if self.ended:
            raise ChildFailed(self.key, self._reply)
        if self.background:
            raise RuntimeError(
                f"child {self.key} runs in the background and has not ended: it is not waited for"
            )
        raise AttemptLeft.for_children()

    def _look(self) -> ChildReply:
        reply = self._talk.ask("spawn", key=self.key, child=self._definition, background=int(self.background))
        if isinstance(reply, ChildReply):
            return reply
        why = WHY.get(Refusal(reply.word)) if reply.word in WHY else None
        raise SpawnRefused(f"spawn {self.key}: {why or _said(reply)}")


def _said(reply: Answer) -> str:
    return reply.detail or reply.word


def definition(capability: str, input: Any, owner: str | None, keys: dict[str, Any]) -> str:
    """The child as its entry carries it; raises SpawnRefused for what is no JSON."""
    given = {"capability": capability, **keys}
    if owner is not None:
        given["owner"] = owner
    if input is not None:
        given["input"] = input
    try:
        return encode(given)
    except InvalidPayload as error:
        raise SpawnRefused(f"spawn of {capability}: {error}") from None
