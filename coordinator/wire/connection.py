"""Owns how every process connects to Redis, what it says when it cannot, and which servers it accepts.

Must not retry a command: a lost answer leaves open whether the command was applied, and only the caller knows
whether it may be sent twice. Must not put a password into a message: addresses are printed without user info and
query. Clients speak RESP2, so that answers have one shape whatever the library's default becomes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ConnectionError,
    NoPermissionError,
    ResponseError,
    TimeoutError,
)
from redis.retry import Retry

from coordinator.wire.errors import InputFault, Unreachable

SCHEMES = ("redis", "rediss", "unix")
OLDEST_REDIS = (7, 0)
OLDEST_VALKEY = (7, 2)

UNAVAILABLE = re.compile(
    r"^(LOADING|BUSY|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY|UNBLOCKED|CLUSTERDOWN|TRYAGAIN)\b",
    re.IGNORECASE,
)
"""First words of errors by which a server says that it cannot serve now; it may later, so they are `Unreachable`."""


def connect(url: str, *, socket_timeout: float = 10.0, blocking: bool = False) -> Redis:
    """Gives a client for `url` (redis://, rediss://, unix://); connects at the first command, not here.

    socket_timeout: seconds to wait for a connection and for each answer. blocking: for a client that waits in
    BLPOP and the like as long as it takes; only connecting has a time limit then. Raises InputFault for a URL
    that cannot be one.
    """
    if urlsplit(url).scheme not in SCHEMES:
        raise InputFault(f"not a Redis address: {address(url)} (expected redis://, rediss:// or unix://)")
    try:
        return Redis.from_url(
            url,
            protocol=2,
            decode_responses=False,
            socket_timeout=None if blocking else socket_timeout,
            socket_connect_timeout=socket_timeout,
            health_check_interval=30,
            retry=Retry(NoBackoff(), 0),
        )
    except (ValueError, TypeError) as error:
        raise InputFault(f"not a Redis address: {address(url)} ({error})") from None


def address(target: str | Redis) -> str:
    """Where `target` is, for a person: host and port or socket path, and the database unless it is 0; no secrets."""
    if isinstance(target, Redis):
        options: dict[str, Any] = target.connection_pool.connection_kwargs
        place = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
        return f"{place}/{options['db']}" if options.get("db") else str(place)
    parts = urlsplit(target)
    if parts.scheme == "unix":
        return unquote(parts.path)
    return parts.netloc.rpartition("@")[2] + parts.path.removesuffix("/0").rstrip("/")


@contextmanager
def guard(target: str | Redis) -> Iterator[None]:
    """Turns what Redis' client raises when the server cannot be used into one Unreachable that names the address."""
    try:
        yield
    except (AuthenticationError, AuthorizationError) as error:
        raise Unreachable(
            f"Redis at {address(target)} refused the credentials: {_first_line(error)}"
        ) from error
    except TimeoutError as error:
        raise Unreachable(f"Redis at {address(target)} did not answer in time") from error
    except ConnectionError as error:
        raise Unreachable(f"cannot reach Redis at {address(target)}: {_first_line(error)}") from error
    except ResponseError as error:
        if not is_unavailable(error):
            raise
        raise Unreachable(
            f"Redis at {address(target)} cannot serve now: {_first_line(_words(error))}"
        ) from error


def is_unavailable(error: BaseException) -> bool:
    """True when `error` says that the server cannot serve now, not that the command was wrong."""
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    return isinstance(error, ResponseError) and UNAVAILABLE.match(_words(error)) is not None


def check_server(redis: Redis) -> None:
    """Refuses a server that Crewline cannot run on, with all reasons at once.

    Needs INFO alone, so that it works under an ACL that forbids CONFIG. Raises InputFault with one line for each
    fault (a version that is too old, an eviction policy that loses keys), Unreachable when it cannot be asked.
    """
    place = address(redis)
    with guard(redis):
        try:
            info: dict[str, Any] = {**redis.info("server"), **redis.info("memory")}
        except NoPermissionError:
            raise InputFault(
                f"Redis at {place}: this user may not run INFO, which Crewline and RQ need"
            ) from None
    if faults := server_faults(info, place):
        raise InputFault(faults)


def server_faults(info: Mapping[str, Any], place: str) -> list[str]:
    """What makes the server at `place` unfit, one line each; `info`: its INFO sections server and memory."""
    faults = []
    valkey = "valkey_version" in info
    name, oldest = ("Valkey", OLDEST_VALKEY) if valkey else ("Redis", OLDEST_REDIS)
    version = str(info["valkey_version" if valkey else "redis_version"])
    if version_numbers(version) < oldest:
        faults.append(
            f"Redis at {place}: {name} {version} is too old: "
            f"Redis {_dotted(OLDEST_REDIS)} or Valkey {_dotted(OLDEST_VALKEY)} is needed"
        )
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        faults.append(
            f"Redis at {place}: maxmemory-policy is {policy}, which may throw away the state of runs: "
            "set it to noeviction"
        )
    return faults


def version_numbers(text: str) -> tuple[int, ...]:
    """The first two numbers of a version: (7, 0) for "7.0.15"; (0, 0) when there are none."""
    match = re.search(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _words(error: BaseException) -> str:
    """An error as the server said it: redis-py cuts the code of errors that it knows off and keeps it apart."""
    code = getattr(error, "status_code", None)
    return f"{code} {error}" if isinstance(code, str) else str(error)


def _first_line(said: object) -> str:
    return (str(said) or type(said).__name__).splitlines()[0].rstrip(".")
