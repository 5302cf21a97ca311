"""Owns what an error looks like over HTTP: a problem document (RFC 9457), with the status that its class says.

Must not decide what an error is: the CrewlineError tree does (`wire/errors.py`); here stand only those that exist
because of HTTP, and which refusal of the machine means "not found". Nothing of an unexpected error is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from fastapi.responses import JSONResponse

from coordinator.client import Unanswered
from coordinator.team.faults import Fault
from coordinator.wire.errors import CrewlineError, InputFault, MachineFault, Refused, Unreachable
from coordinator.wire.grants import Answer
from coordinator.wire.names import Refusal, ReplyStatus, Verdict

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
"""What a client is asked to wait when Redis or a coordinator is away."""
MOST_FAULTS = 100
"""Faults of an input that one problem lists."""


class NotFound(CrewlineError):
    """There is no such thing."""

    http_status: ClassVar[int] = 404


class Unauthenticated(CrewlineError):
    """A valid token is needed: Authorization: Bearer TOKEN."""

    http_status: ClassVar[int] = 401


class Forbidden(CrewlineError):
    """The token does not have the scope for this."""

    http_status: ClassVar[int] = 403


class TooLarge(CrewlineError):
    """The request is larger than this server takes."""

    http_status: ClassVar[int] = 413


class TooManyRequests(CrewlineError):
    """Too many requests; try again later."""

    http_status: ClassVar[int] = 429

    def __init__(self, seconds: float) -> None:
        """seconds: when the next one is taken."""
        self.seconds = seconds
        super().__init__(f"too many requests; try again in {max(round(seconds), 1)} s")


class InFlight(CrewlineError):
    """A request with this Idempotency-Key is being worked on."""

    http_status: ClassVar[int] = 409


class KeyReused(CrewlineError):
    """This Idempotency-Key was used before with another body."""

    http_status: ClassVar[int] = 422


NOT_THERE = frozenset(
    {Refusal.UNKNOWN_RUN, Refusal.UNKNOWN_TASK, Refusal.UNKNOWN_REVIEW, Refusal.UNKNOWN_ACTION}
)
AT_FAULT = frozenset({Refusal.UNKNOWN_STATE, Refusal.UNKNOWN_DIGEST, Refusal.MALFORMED})
TAKEN = frozenset({Verdict.LATE, Verdict.DUPLICATE, Verdict.CONFLICT})
"""Verdicts that say what became of a report; it was heard, so they are no errors."""


def accepted(answer: Answer) -> Answer:
    """The answer, unless it is a refusal; raises NotFound, InputFault or Refused for one, with its word."""
    if answer.status != ReplyStatus.REFUSED or answer.word in TAKEN:
        return answer
    said = answer.detail or answer.word.replace("_", " ") or "refused"
    if answer.word in NOT_THERE:
        raise NotFound(said)
    if answer.word in AT_FAULT:
        raise InputFault(said)
    raise Refused(said, word=answer.word)


def problem_of(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, members and headers of the problem that an error means."""
    if not isinstance(error, CrewlineError) or isinstance(error, MachineFault):
        return 500, _document(500, "this is a fault of Crewline itself; its log says more"), {}
    members: dict[str, Any] = {}
    headers: dict[str, str] = {}
    if isinstance(error, InputFault):
        members["faults"] = [_fault(fault) for fault in error.faults[:MOST_FAULTS]]
    if isinstance(error, Refused) and error.word:
        members["word"] = error.word
    if isinstance(error, Unanswered):
        members.update(run=error.run, stored=True)
    if isinstance(error, Unreachable):
        headers["Retry-After"] = str(RETRY_SECONDS)
    if isinstance(error, TooManyRequests):
        headers["Retry-After"] = str(max(round(error.seconds), 1))
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return error.http_status, _document(error.http_status, str(error), **members), headers


def problem(error: Exception) -> JSONResponse:
    """The problem that an error means, as a response."""
    status, document, headers = problem_of(error)
    return JSONResponse(document, status, headers, MEDIA_TYPE)


def plain_problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A problem that is no CrewlineError: a path or a method that does not exist."""
    return JSONResponse(_document(status, detail), status, dict(headers or {}), MEDIA_TYPE)


def _document(status: int, detail: str, **members: Any) -> dict[str, Any]:
    title = HTTPStatus(status).phrase
    return {"type": "about:blank", "title": title, "status": status, "detail": detail[:10_000], **members}


def _fault(fault: object) -> dict[str, Any]:
    return fault.as_dict() if isinstance(fault, Fault) else {"message": str(fault)[:2_000]}


SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "What went wrong (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A sentence for a person."},
        "word": {"type": "string", "description": "The refusal as the state machine says it."},
        "faults": {"type": "array", "items": {"type": "object"}, "description": "All faults of the input."},
        "run": {"type": "string", "description": "The run that was spoken of."},
        "stored": {"type": "boolean", "description": "The request is stored and will be applied."},
    },
}
