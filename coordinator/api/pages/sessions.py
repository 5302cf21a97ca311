"""Owns the session of a person in a browser: a signed cookie that names a token, and what proves that a form is ours.

The cookie holds the token's hash and never the token; it is read again at every request, so a token that is taken out
of the file is out at once. HttpOnly and SameSite keep scripts and other sites away from it, and each form carries a
value that only a page of this session knows.
"""

from __future__ import annotations

import hmac
import secrets
import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends, Request, Response

from coordinator.api.gate import edge
from coordinator.api.problems import Forbidden, Unauthenticated
from coordinator.api.tokens import Token

COOKIE = "crewline_session"
SESSION_SECONDS = 12 * 3600
MOST_FIELDS = 50


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at a page. form_key: what a form of this session carries."""

    token: Token
    form_key: str

    def may(self, *scopes: str) -> bool:
        """Whether the token has any of these scopes."""
        return self.token.may(*scopes)


def open_session(request: Request, response: Response, token: Token) -> None:
    """Sets the cookie of a new session."""
    content = f"{token.digest}.{int(time.time())}.{secrets.token_urlsafe(12)}"
    value = f"{content}.{_sign(request, content)}"
    response.set_cookie(
        COOKIE,
        value,
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
        path="/",
    )


def close_session(response: Response) -> None:
    """Removes the cookie."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")


def visitor(request: Request) -> Visitor:
    """Who asks for a page. Raises Unauthenticated, Forbidden for a token that may not read, TooManyRequests."""
    value = request.cookies.get(COOKIE, "")
    content, _, signature = value.rpartition(".")
    parts = content.split(".")
    if len(parts) != 3 or not hmac.compare_digest(signature.encode(), _sign(request, content).encode()):
        raise Unauthenticated
    token = edge(request).tokens.by_digest(parts[0])
    if token is None or int(parts[1]) + SESSION_SECONDS < time.time():
        raise Unauthenticated
    edge(request).rates.take(token.digest)
    if not token.may("read"):
        raise Forbidden("pages need a token with the scope read")
    return Visitor(token, _sign(request, f"form {value}"))


async def form_fields(request: Request) -> dict[str, str]:
    """The fields of a form that was sent by one of our pages. Raises Unauthenticated, Forbidden."""
    fields = await plain_fields(request)
    expected = visitor(request).form_key
    if not hmac.compare_digest(fields.pop("form_key", "").encode(), expected.encode()):
        raise Forbidden("the form is not of this session; load the page again")
    return fields


async def plain_fields(request: Request) -> dict[str, str]:
    """The fields of a form. Raises Forbidden when another site sent it."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("the form was sent by another site")
    text = (await request.body()).decode(errors="replace")
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Forbidden("too many fields") from None
    return {name: values[-1] for name, values in found.items()}


def _sign(request: Request, text: str) -> str:
    return hmac.new(edge(request).settings.session_key, text.encode(), sha256).hexdigest()


Guest = Annotated[Visitor, Depends(visitor)]
Fields = Annotated[dict[str, str], Depends(form_fields)]
