"""Owns the server: its routes, what stands around each of them, and the OpenAPI document.

Must not know an operation; a family of them is a file beside this one.
"""

from __future__ import annotations

import secrets
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import structlog
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from redis.exceptions import ConnectionError, RedisError, TimeoutError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from coordinator.api import operate, problems, reviews, runs, schemas
from coordinator.api.document import api_document
from coordinator.api.gate import Settings, State, edge
from coordinator.api.limits import BodyLimit, Flights, Rates, SafeHeaders
from coordinator.api.pages import router as pages
from coordinator.api.place import Place
from coordinator.api.tokens import TokenFile
from coordinator.wire.errors import CrewlineError, InputFault, Unreachable

PREFIX = "/api/v1"
PROBLEMS = {
    401: "No valid token.",
    403: "The token does not have the scope.",
    404: "There is no such thing.",
    409: "It cannot be done now; `word` says why.",
    413: "The request is too large.",
    422: "The request is at fault; `faults` lists how.",
    429: "Too many requests.",
    503: "Redis or the coordinator is away; with `stored`, the request will be applied.",
}

log = structlog.get_logger(__name__)


def build_api(place: Place, tokens: TokenFile, settings: Settings | None = None) -> FastAPI:
    """The server of one installation, as an ASGI application."""
    settings = settings or Settings()
    if not settings.session_key:
        settings = Settings(**{**_fields(settings), "session_key": secrets.token_bytes(32)})
    app = FastAPI(
        title="Crewline",
        version=_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.edge = State(
        place=place,
        tokens=tokens,
        settings=settings,
        rates=Rates(settings.rate, settings.burst),
        failures=Rates(settings.failures / 60, settings.failures),
        flights=Flights(),
    )
    _add_routes(app)
    _add_handlers(app)
    app.add_middleware(BodyLimit, most=settings.body_bytes)
    app.add_middleware(SafeHeaders)
    return app


def _fields(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in Settings.__dataclass_fields__}


def _add_routes(app: FastAPI) -> None:
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": text, "content": content} for status, text in PROBLEMS.items()
    }
    api = APIRouter(prefix=PREFIX, responses=responses)
    for family in (runs, operate, reviews):
        api.include_router(family.router)
    api.add_api_route(
        "/health", health, methods=["GET"], response_model=schemas.Health, tags=["health"], summary="Health"
    )
    app.include_router(api)
    app.add_api_route(f"{PREFIX}/openapi.json", openapi, methods=["GET"], include_in_schema=False)
    pages.add_pages(app)


def health(request: Request, response: Response) -> dict[str, bool]:
    """Whether the server can do its work: Redis answers, and a coordinator has led. 503 when not. Needs no token."""
    try:
        found = {"redis": True, "leader": bool(edge(request).place.leader().get("holder"))}
    except (Unreachable, RedisError):
        found = {"redis": False, "leader": False}
    if not found["redis"]:
        raise Unreachable
    return found


def openapi(request: Request) -> dict[str, Any]:
    """The OpenAPI document; needs no token, as it holds nothing of an installation."""
    app: FastAPI = request.app
    if app.openapi_schema is None:
        app.openapi_schema = api_document(app)
    return app.openapi_schema


def _add_handlers(app: FastAPI) -> None:
    def on_error(request: Request, error: Exception) -> Response:
        error = _known(error)
        if not isinstance(error, CrewlineError):
            log.error("request_failed", path=request.url.path, exc_info=error)
        if _is_page(request):
            return pages.error_page(request, error)
        return problems.problem(error)

    def on_validation(request: Request, error: Exception) -> Response:
        faults = error.errors() if isinstance(error, RequestValidationError) else []
        return on_error(
            request, InputFault([f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults])
        )

    def on_http(request: Request, error: Exception) -> Response:
        status, detail, headers = 500, "", None
        if isinstance(error, HTTPException):
            status, detail, headers = error.status_code, str(error.detail), error.headers
        if status == 422:
            return on_error(request, InputFault(detail))
        if status == 405:
            headers = {**(headers or {}), "Allow": ", ".join(sorted(_methods(request)))}
        if _is_page(request):
            return pages.plain_error(request, status, detail)
        return problems.plain_problem(status, detail, headers)

    for kind in (CrewlineError, RedisError, Exception):
        app.add_exception_handler(kind, on_error)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)


def _methods(request: Request) -> set[str]:
    """The methods of all routes of a path; Starlette names those of the first alone."""
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] != Match.NONE:
            found |= route.methods or set()
    return found


def _known(error: Exception) -> Exception:
    return Unreachable() if isinstance(error, ConnectionError | TimeoutError) else error


def _is_page(request: Request) -> bool:
    return not request.url.path.startswith("/api/")


def _version() -> str:
    try:
        return version("crewline")
    except PackageNotFoundError:
        return "0"
