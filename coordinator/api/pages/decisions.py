"""Owns the forms of the pages: each one is one entry in an inbox, under the name of the visitor's token.

A form that is refused comes back with what was typed and the reason. Must not decide anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from coordinator.api.gate import edge
from coordinator.api.operate import ask_id
from coordinator.api.pages import views
from coordinator.api.pages.rendering import render
from coordinator.api.pages.sessions import Fields, Guest, Visitor
from coordinator.api.place import Place
from coordinator.api.problems import Forbidden, accepted
from coordinator.api.runs import RunPath
from coordinator.team.rules.raises import LIMITS, read_raises
from coordinator.wire import reports
from coordinator.wire.digest import InvalidPayload, canonical, parse_json
from coordinator.wire.errors import CrewlineError, InputFault
from coordinator.wire.names import FailureClass, ReportState

router = APIRouter(include_in_schema=False)

NEEDS_SECOND = "needs_second"
"""The verdict on the first of two decisions, where the Team wants four eyes."""

Said = Callable[[Place, str, Mapping[str, str], str], object]
"""What a form says: place, run, fields, the visitor's name."""


@router.post("/runs/{run}/say/{what}")
async def operate(request: Request, guest: Guest, fields: Fields, run: RunPath, what: str) -> Response:
    """An operator's word to a run."""
    return await run_in_threadpool(_operate, request, guest, fields, run, what)


def _operate(request: Request, guest: Guest, fields: Mapping[str, str], run: str, what: str) -> Response:
    place = edge(request).place
    try:
        _permit(guest, "operate")
        if what not in WORDS:
            raise InputFault("the form is of another version; load the page again")
        WORDS[what](place, run, fields, guest.token.name)
    except CrewlineError as error:
        if what == "action":
            view = views.actions_view(place, run)
            return render("actions.html", request, guest, error.http_status, error=str(error), **view)
        view = views.run_view(place, run, "", views.EVENTS)
        return render("run.html", request, guest, error.http_status, error=str(error), **view)
    return RedirectResponse(f"/runs/{run}" + ("/actions" if what == "action" else ""), 303)


@router.post("/runs/{run}/reviews/{review}")
async def decide(request: Request, guest: Guest, fields: Fields, run: RunPath, review: str) -> Response:
    """A reviewer's decision."""
    return await run_in_threadpool(_decide, request, guest, fields, run, review)


def _decide(request: Request, guest: Visitor, fields: Mapping[str, str], run: str, review: str) -> Response:
    place = edge(request).place
    try:
        _permit(guest, "review")
        # Buttons of `accept` name the digest that they stand for.
        decision, _, digest = fields.get("decision", "").partition(" ")
        answer = place.say(
            "review",
            reports.Decide,
            run=run,
            review=review,
            decision=decision,
            digest=digest,
            payload=_json(fields.get("payload", "")) if decision == "supply" else "",
            version=fields.get("version", ""),
            tainted=fields.get("tainted", "keep"),
            reason=_reason(fields),
            source=guest.token.name,
        )
    except CrewlineError as error:
        view = views.review_view(place, run, review, "", "")
        return render(
            "review.html", request, guest, error.http_status, error=str(error), given=fields, **view
        )
    noted = f"/reviews/{quote(review, safe='')}" if answer.word == NEEDS_SECOND else ""
    return RedirectResponse(f"/runs/{run}{noted}", 303)


def _permit(guest: Visitor, scope: str) -> None:
    if not guest.may(scope):
        raise Forbidden(f"the token needs the scope {scope}")


def _reason(fields: Mapping[str, str]) -> str:
    reason = fields.get("reason", "").strip()
    if not reason:
        raise InputFault("reason: say why, for those who look at this later")
    return reason


def _json(text: str) -> str:
    """Typed JSON in its canonical form. Raises InputFault."""
    try:
        return canonical(parse_json(text))
    except InvalidPayload as fault:
        raise InputFault(f"the JSON: {fault}") from None


def _cancel(place: Place, run: str, fields: Mapping[str, str], source: str) -> object:
    return place.say(
        "operate",
        reports.Cancel,
        run=run,
        task=fields.get("task", ""),
        ask=ask_id(source, None),
        reason=_reason(fields),
        source=source,
    )


def _resume(place: Place, run: str, fields: Mapping[str, str], source: str) -> object:
    raises: dict[str, int | str] = {
        name: fields[name].strip() for name in LIMITS if fields.get(name, "").strip()
    }
    return accepted(place.client.resume(run, read_raises(raises), source=source))


def _answer(place: Place, run: str, fields: Mapping[str, str], source: str) -> object:
    typed = fields.get("answer", "")
    payload = _json(typed) if fields.get("as") == "json" else canonical(typed)
    return place.say(
        "operate",
        reports.AnswerQuestion,
        run=run,
        task=fields.get("task", ""),
        payload=payload,
        source=source,
    )


def _signal(place: Place, run: str, fields: Mapping[str, str], source: str) -> object:
    return place.say(
        "operate", reports.Signal, run=run, signal=fields.get("signal", "").strip(), source=source
    )


def _report(place: Place, run: str, fields: Mapping[str, str], source: str) -> object:
    state, payload = fields.get("state", ""), fields.get("payload", "").strip()
    more: dict[str, Any] = {}
    if state == ReportState.COMPLETED:
        more["payload"] = _json(payload or "null")
    if state == ReportState.FAILED:
        message = payload or "reported as failed"
        error = {"class": str(FailureClass.PERMANENT), "type": "ExternalFailure", "message": message}
        more["error"] = json.dumps(error, ensure_ascii=False)
    task = fields.get("task", "")
    return place.say(
        "operate", reports.ExternalReport, run=run, task=task, state=state, source=source, **more
    )


def _action(place: Place, run: str, fields: Mapping[str, str], source: str) -> object:
    receipt = fields.get("receipt", "").strip()
    return place.say(
        "operate",
        reports.ActionDecide,
        run=run,
        task=fields.get("task", ""),
        key=fields.get("key", ""),
        state=fields.get("state", ""),
        payload=_json(receipt) if receipt else "",
        reason=_reason(fields),
        source=source,
    )


WORDS: dict[str, Said] = {
    "cancel": _cancel,
    "resume": _resume,
    "answer": _answer,
    "signal": _signal,
    "report": _report,
    "action": _action,
}
"""What the forms of a run and of its actions say, by their name in the path."""
