"""Owns the routes of the pages that only show something, and what an error looks like on a page."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, FastAPI, Header, Query, Request
from fastapi.responses import RedirectResponse, Response

from coordinator.api.events import event_stream
from coordinator.api.gate import admit, edge
from coordinator.api.pages import decisions, views
from coordinator.api.pages.rendering import render
from coordinator.api.pages.sessions import (
    Guest,
    Visitor,
    close_session,
    form_fields,
    open_session,
    plain_fields,
)
from coordinator.api.problems import Forbidden, NotFound, Unauthenticated, problem_of
from coordinator.api.runs import RunPath
from coordinator.api.shown import without_evidence
from coordinator.run_report import build_report, canonical_bytes, render_markdown
from coordinator.wire.names import RunStatus

STATIC = {"crewline.css": "text/css", "crewline.js": "text/javascript", "icon.svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)

Offset = Annotated[int, Query(ge=0, le=2**31)]
Part = Annotated[bool, Query(description="Only what changes.")]


def add_pages(app: FastAPI) -> None:
    """Adds all routes of the pages."""
    app.include_router(router)
    app.include_router(decisions.router)


def witness(visitor: Visitor) -> None:
    """Raises Forbidden for who may not see evidence (SPEC 6)."""
    if not visitor.may("operate", "review"):
        raise Forbidden("this is for operators and reviewers: the token needs the scope operate or review")


@router.get("/static/{name}")
def static(name: str) -> Response:
    """The style sheet, the script, the icon."""
    if name not in STATIC:
        raise NotFound
    content = files("coordinator.api.pages").joinpath("static", name).read_bytes()
    return Response(content, media_type=STATIC[name], headers={"Cache-Control": "max-age=300"})


@router.get("/login")
def login_page(request: Request, next: Annotated[str, Query(max_length=500)] = "/") -> Response:
    """Where a person gives a token."""
    return render("login.html", request, None, next=_own_path(next), error="")


@router.post("/login")
async def login(request: Request) -> Response:
    """Opens a session."""
    fields = await plain_fields(request)
    next_path = _own_path(fields.get("next", "/"))
    try:
        token = admit(request, fields.get("token", "").strip())
        if not token.may("read"):
            raise Forbidden("pages need a token with the scope read")
    except Unauthenticated:
        return render("login.html", request, None, 401, next=next_path, error="No valid token.")
    except Forbidden as error:
        return render("login.html", request, None, 403, next=next_path, error=str(error))
    response = RedirectResponse(next_path, 303)
    open_session(request, response, token)
    return response


@router.post("/logout")
async def logout(request: Request) -> Response:
    """Ends the session."""
    await form_fields(request)
    response = RedirectResponse("/login", 303)
    close_session(response)
    return response


@router.get("/")
def runs_page(
    request: Request,
    guest: Guest,
    status: Annotated[str, Query(max_length=30)] = "",
    team: Annotated[str, Query(max_length=200)] = "",
    offset: Offset = 0,
    part: Part = False,
) -> Response:
    """The list of runs."""
    known = status if status in set(RunStatus) else ""
    view = views.runs_view(edge(request).place, known, team, offset)
    return render("runs_part.html" if part else "runs.html", request, guest, **view)


@router.get("/runs/{run}")
def run_page(
    request: Request,
    guest: Guest,
    run: RunPath,
    state: Annotated[str, Query(max_length=20)] = "",
    events: Annotated[int, Query(ge=1, le=2_000)] = views.EVENTS,
    part: Part = False,
) -> Response:
    """One run."""
    view = views.run_view(edge(request).place, run, state, events)
    return render("run_part.html" if part else "run.html", request, guest, error="", **view)


@router.get("/runs/{run}/live")
async def live(
    request: Request,
    guest: Guest,
    run: RunPath,
    after: Annotated[int, Query(ge=0, le=2**53 - 1)] = 0,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """The events of a run, for its page."""
    state = edge(request)
    return await event_stream(state.place, run, last_event_id, after, state.settings.stream_seconds)


@router.get("/runs/{run}/report.{kind}")
def report(request: Request, guest: Guest, run: RunPath, kind: str) -> Response:
    """The report as a file."""
    if kind not in ("json", "md"):
        raise NotFound
    found = build_report(edge(request).place.picture(run))
    if not guest.may("operate", "review"):
        found = without_evidence(found)
    if kind == "md":
        return Response(render_markdown(found), media_type="text/markdown")
    return Response(canonical_bytes(found), media_type="application/json")


@router.get("/reviews")
def reviews_page(request: Request, guest: Guest) -> Response:
    """Open reviews."""
    witness(guest)
    return render("reviews.html", request, guest, **views.reviews_view(edge(request).place))


@router.get("/runs/{run}/reviews/{review}")
def review_page(
    request: Request,
    guest: Guest,
    run: RunPath,
    review: str,
    left: Annotated[str, Query(max_length=8)] = "",
    right: Annotated[str, Query(max_length=8)] = "",
) -> Response:
    """One review with its evidence."""
    witness(guest)
    view = views.review_view(edge(request).place, run, review, left, right)
    return render("review.html", request, guest, error="", given={}, **view)


@router.get("/runs/{run}/actions")
def actions_page(request: Request, guest: Guest, run: RunPath) -> Response:
    """The side effects of a run."""
    return render("actions.html", request, guest, error="", **views.actions_view(edge(request).place, run))


@router.get("/runs/{run}/late")
def late_page(request: Request, guest: Guest, run: RunPath, offset: Offset = 0) -> Response:
    """The late ledger of a run."""
    witness(guest)
    return render("late.html", request, guest, **views.late_view(edge(request).place, run, offset))


def error_page(request: Request, error: Exception) -> Response:
    """A page for what went wrong; the login for who has no session."""
    if isinstance(error, Unauthenticated) and request.method == "GET" and "part" not in request.query_params:
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?next={quote(target, safe='')}", 303)
    status, document, headers = problem_of(error)
    page = render("error.html", request, None, status, title=document["title"], detail=document["detail"])
    page.headers.update({name: value for name, value in headers.items() if name == "Retry-After"})
    return page


def plain_error(request: Request, status: int, detail: str) -> Response:
    """A page for a path that does not exist."""
    return render("error.html", request, None, status, title=detail, detail="")


def _own_path(given: str) -> str:
    """The path to go to after the login, if it is one of ours."""
    parts = urlsplit(given)
    own = given.startswith("/") and not given.startswith(("//", "/\\")) and not parts.netloc
    return given if own and given.isprintable() else "/"
