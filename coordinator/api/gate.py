"""Owns who may come in: the bearer token of a request, its scope, and its rate.

Must not know what a route does. Tokens come by the Authorization header alone, so no other site can make a browser
use the API; the pages have sessions of their own (`pages/sessions.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from coordinator.api.limits import Flights, Rates
from coordinator.api.place import Place
from coordinator.api.problems import Forbidden, Unauthenticated
from coordinator.api.tokens import Token, TokenFile

BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="A token of crewline api-token.")


@dataclass(frozen=True, slots=True)
class Settings:
    """How the server bounds its callers. rate, burst: requests a second of one token, and at once.

    failures: wrong tokens a minute from one address. body_bytes: largest request. stream_seconds: after which an event
    stream is closed for the client to come back. session_key: signs the pages' cookies.
    """

    rate: float = 50
    burst: float = 200
    failures: float = 30
    body_bytes: int = 8 * 2**20
    stream_seconds: float = 900
    session_key: bytes = b""


@dataclass(frozen=True, slots=True)
class State:
    """What the routes share; `request.app.state.edge`."""

    place: Place
    tokens: TokenFile
    settings: Settings
    rates: Rates
    failures: Rates
    flights: Flights


def edge(request: Request) -> State:
    """The shared state."""
    found: State = request.app.state.edge
    return found


def address(request: Request) -> str:
    """Where a request comes from."""
    return request.client.host if request.client else "unknown"


def admit(request: Request, secret: str) -> Token:
    """The token of this text. Raises Unauthenticated, and TooManyRequests after too many wrong ones."""
    state = edge(request)
    state.failures.check(address(request))
    token = state.tokens.find(secret) if secret else None
    if token is None:
        state.failures.take(address(request))
        raise Unauthenticated
    state.rates.take(token.digest)
    return token


def needs(*scopes: str) -> Callable[..., Awaitable[Token]]:
    """A dependency: the caller's token, which must have one of these scopes."""

    async def caller(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
    ) -> Token:
        if given is None:
            raise Unauthenticated
        token = admit(request, given.credentials)
        if not token.may(*scopes):
            raise Forbidden(f"the token needs the scope {' or '.join(scopes)}")
        return token

    return caller


Reader = Annotated[Token, Security(needs("read"))]
Submitter = Annotated[Token, Security(needs("submit"))]
Operator = Annotated[Token, Security(needs("operate"))]
Reviewer = Annotated[Token, Security(needs("review"))]
Witness = Annotated[Token, Security(needs("operate", "review"))]
"""Evidence and ledgers are for operators and reviewers only (SPEC 6)."""
