"""Owns what the commands of people share: who is speaking, what a refusal means to them, what is printed.

Must not decide anything about a run, and must not say who decided otherwise than by the authenticated name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from coordinator.cli.inputs import read_text
from coordinator.cli.kept import Target
from coordinator.cli.output import emit, emit_json
from coordinator.client import Client
from coordinator.wire.digest import InvalidPayload, canonical, parse_json
from coordinator.wire.errors import InputFault, Refused
from coordinator.wire.grants import Answer
from coordinator.wire.names import Refusal, ReplyStatus

AT_FAULT = {
    Refusal.UNKNOWN_RUN: "there is no run {run}",
    Refusal.UNKNOWN_TASK: "run {run} has no task {task}",
    Refusal.UNKNOWN_REVIEW: "run {run} has no review {review}",
    Refusal.UNKNOWN_DIGEST: "nobody sent a result of that digest; `review show` lists what was sent",
    Refusal.UNKNOWN_ACTION: "task {task} has no action {key} that is open: see `actions list`",
}
"""Refusals that are the caller's fault (exit 2), as sentences."""

SENTENCES = {
    Refusal.RUN_STOPPED: "run {run} has ended",
    Refusal.NOT_PARKED: "run {run} is not parked; only a parked run is resumed",
    Refusal.WRONG_STATE: "task {task} does not wait for this",
    Refusal.ALREADY_ANSWERED: "the question of task {task} was answered already, and otherwise",
    Refusal.STALE_VERSION: "review {review} has moved on since then; look at it again",
    Refusal.SAME_PERSON: "the Team wants four eyes: somebody else must decide the same",
}
"""Other refusals (exit 1)."""


def client_of(target: Target) -> Client:
    """Speaks to the installation of the run; what is decided is recorded under `Client.user`."""
    return Client(target.place.redis, target.place.namespace)


@contextmanager
def well_formed() -> Iterator[None]:
    """Turns what cannot be sent at all (an empty name, a reason of pages) into an InputFault with every fault."""
    try:
        yield
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise InputFault(faults) from None


def settle(answer: Answer, json: bool, **said: str) -> None:
    """Prints the run's status after it, alone, or the whole answer as JSON.

    Raises InputFault for what the caller got wrong, Refused for any other refusal.
    """
    if answer.status == ReplyStatus.REFUSED:
        word = Refusal(answer.word) if answer.word in set(Refusal) else None
        if word is Refusal.MALFORMED:
            raise InputFault(answer.detail)
        if word in AT_FAULT:
            raise InputFault(AT_FAULT[word].format(**said))
        sentence = SENTENCES[word].format(**said) if word in SENTENCES else answer.detail
        raise Refused(sentence, word=answer.word)
    if json:
        emit_json(
            {"run": answer.run, "status": answer.run_status, "answer": answer.status, "word": answer.word}
        )
    else:
        emit(answer.run_status)


def read_payload(file: Path) -> str:
    """A file's JSON, in canonical form; `-` is the standard input. Raises InputFault."""
    try:
        return canonical(parse_json(read_text(file)))
    except InvalidPayload as fault:
        raise InputFault(f"{file}: {fault}") from None
