"""Owns `crewline api` and `crewline api-token`: the server of the HTTP API and the pages, and who may use it."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli import options
from coordinator.cli.logs import configure_logs
from coordinator.cli.output import emit, say
from coordinator.wire.connection import connect
from coordinator.wire.errors import InputFault

if TYPE_CHECKING:
    from coordinator.api.gate import Settings

TOKENS_VARIABLE = "CREWLINE_API_TOKENS"

TokensFile = Annotated[
    Path,
    typer.Option(
        "--tokens",
        envvar=TOKENS_VARIABLE,
        metavar="FILE",
        help="The file with the hashes of the tokens (crewline api-token new).",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("api")(serve)
    tokens = typer.Typer(no_args_is_help=True, help="Tokens of the API.")
    tokens.command("new")(new_token)
    tokens.callback()(_tokens)
    app.add_typer(tokens, name="api-token")


def _tokens() -> None:
    """Tokens of the HTTP API and its pages."""


def serve(
    tokens: TokensFile,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8080,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests a second that one token may make.")] = 50,
    burst: Annotated[float, typer.Option(min=1, help="Requests that one token may make at once.")] = 200,
    failures: Annotated[float, typer.Option(min=1, help="Wrong tokens a minute from one address.")] = 30,
    body_bytes: Annotated[int, typer.Option(min=1024, help="Largest request.")] = 8 * 2**20,
    stream_seconds: Annotated[
        float, typer.Option(min=0.1, help="After which an event stream is closed; clients resume it.")
    ] = 900,
    answer_seconds: Annotated[
        float, typer.Option(min=0.1, help="How long a coordinator's answer is waited for.")
    ] = 10,
    session_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="At least 32 secret bytes that sign the pages' cookies, when several servers serve them.",
        ),
    ] = None,
    proxies: Annotated[
        str | None, typer.Option(metavar="IPS", help="Proxies whose X-Forwarded headers are believed.")
    ] = None,
) -> None:
    """Serves the HTTP API at /api/v1 and the pages at /. Put TLS in front of it. Ends on SIGTERM."""
    from coordinator.api.gate import Settings

    settings = Settings(
        rate=rate,
        burst=burst,
        failures=failures,
        body_bytes=body_bytes,
        stream_seconds=stream_seconds,
        session_key=_session_key(session_key),
    )
    configure_logs()
    _run(options.address_of(redis), namespace, tokens, settings, answer_seconds, (host, port, proxies))


def _run(
    url: str,
    namespace: str,
    tokens: Path,
    settings: Settings,
    answer_seconds: float,
    listen: tuple[str, int, str | None],
) -> None:
    from coordinator.api.app import build_api
    from coordinator.api.place import Place
    from coordinator.api.serving import Listener
    from coordinator.api.tokens import TokenFile

    known = TokenFile(tokens)
    place = Place(connect(url), namespace, answer_seconds=answer_seconds)
    host, port, proxies = listen
    app = build_api(place, known, settings)
    with _bound(host, port) as at:
        shown = f"[{host}]" if ":" in host else host
        say(f"crewline: serving http://{shown}:{at.getsockname()[1]}")
        Listener(app, proxies).run(at)


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises InputFault."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputFault(f"--host {host} --port {port}: cannot listen there: {error.strerror}") from None


def _session_key(file: Path | None) -> bytes:
    """The key that signs cookies; empty: a new one for this process. Raises InputFault."""
    if file is None:
        return b""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputFault(f"{file}: cannot be read: {error.strerror}") from None
    if len(content) < 32:
        raise InputFault(f"{file}: expected at least 32 bytes")
    return hashlib.sha256(content).digest()


def new_token(
    tokens: TokensFile,
    scope: Annotated[
        list[str], typer.Option("--scope", help="read, submit, operate or review. May be repeated.")
    ],
    name: Annotated[str, typer.Option("--name", help="Whose token it is: decisions are recorded under it.")],
    days: Annotated[int | None, typer.Option(min=1, help="Days until it expires; never by default.")] = None,
) -> None:
    """Makes a token, appends its hash to the tokens file, and prints the token: this once."""
    from coordinator.api.tokens import add_token

    scopes = [part.strip() for entry in scope for part in entry.split(",")]
    secret = add_token(tokens, name, scopes, days)
    say(f"crewline: {tokens} has {name} now; to take the token back, remove its line")
    emit(secret)
