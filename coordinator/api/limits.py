"""Owns the bounds of what the server takes: requests a second, bytes a request, and the headers that keep pages safe.

Must not know who a caller is: a rate is kept for a key that the gate chooses. Everything lives in this process.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException

from coordinator.api.problems import InFlight, TooLarge, TooManyRequests, problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_KEYS = 10_000
"""Callers whose rate is remembered; the one that was quiet longest is forgotten first."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Rates:
    """A bucket of `burst` requests for each key, refilled by `rate` a second."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, key: str) -> None:
        """Takes one request from the bucket; raises TooManyRequests when it is empty."""
        with self._lock:
            left, now = self._left(key)
            if left < 1:
                raise TooManyRequests((1 - left) / self._rate)
            self._buckets[key] = (left - 1, now)
            self._buckets.move_to_end(key)
            if len(self._buckets) > MOST_KEYS:
                self._buckets.popitem(last=False)

    def check(self, key: str) -> None:
        """Raises TooManyRequests when the bucket is empty; takes nothing."""
        with self._lock:
            left, _ = self._left(key)
        if left < 1:
            raise TooManyRequests((1 - left) / self._rate)

    def _left(self, key: str) -> tuple[float, float]:
        now = self._clock()
        left, at = self._buckets.get(key, (self._burst, now))
        return min(self._burst, left + (now - at) * self._rate), now


class Flights:
    """The idempotency keys whose requests this process is working on."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._lock = Lock()

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Raises InFlight when somebody holds the key."""
        with self._lock:
            if key in self._keys:
                raise InFlight
            self._keys.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._keys.discard(key)


class BodyLimit:
    """ASGI middleware: a request body above so many bytes is refused, whether its length was told or not."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, and answers 413 when too much comes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = Headers(scope=scope).get("content-length", "0")
        error = TooLarge(f"the request is larger than {self._most} bytes")
        if not told.isdigit() or int(told) > self._most:
            await problem(error)(scope, receive, send)
            return
        read = 0

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._most:
                raise HTTPException(error.http_status, str(error))  # what FastAPI passes on
            return message

        await self._app(scope, bounded, send)


class SafeHeaders:
    """ASGI middleware: the headers that every answer has. What stands in Redis is never cached."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
