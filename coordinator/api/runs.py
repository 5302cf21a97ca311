"""Owns the routes that make runs and read them. Must not decide anything: answers are what the machine says."""

from __future__ import annotations

import hashlib
import time
from base64 import b32encode
from contextlib import nullcontext
from typing import Annotated, Any, Literal

from fastapi import Header, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from coordinator.api import schemas, shown
from coordinator.api.events import MEDIA_TYPE, event_stream
from coordinator.api.gate import Reader, Submitter, edge
from coordinator.api.problems import KeyReused, accepted
from coordinator.api.strict import strict_router
from coordinator.machine.reads import ReadEvents, ReadTasks
from coordinator.run_report import build_report, canonical_bytes, explain, render_markdown
from coordinator.run_report.build import event_entry
from coordinator.wire.errors import InputFault, Refused
from coordinator.wire.names import Refusal, ReplyStatus, RunStatus

router = strict_router("runs")

RunPath = Annotated[schemas.RunId, Path(description="A run's id.")]
Offset = Annotated[int, Query(ge=0, le=2**31)]
Limit = Annotated[int, Query(ge=1, le=500)]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]([ -~]*[!-~])?$",
        description="The same key of the same token with the same body is the same run.",
    ),
]


def run_of_key(caller: str, key: str) -> str:
    """The id of the run that an idempotency key stands for, so that no server has to remember it."""
    hashed = hashlib.sha256(f"{caller}\0{key}".encode()).digest()
    return f"k-{b32encode(hashed[:20]).decode().lower()}"


@router.post(
    "/runs",
    status_code=201,
    response_model=schemas.Submitted,
    responses={200: {"model": schemas.Submitted, "description": "The run was there already."}},
    summary="Submit a Team as a new run",
)
def submit(
    request: Request, response: Response, caller: Submitter, body: schemas.SubmitBody, key: Key = None
) -> Any:
    """Checks the Team and its inputs, and makes a run of them; all faults are listed."""
    state = edge(request)
    if key and body.run:
        raise InputFault("run: give the run's id or an Idempotency-Key, not both")
    run = run_of_key(caller.name, key) if key else body.run
    with state.flights.hold(run) if key and run else nullcontext():
        answer = state.place.client.submit(body.team, body.inputs, run)
        try:
            accepted(answer)
        except Refused as error:
            if key and error.word == Refusal.RUN_EXISTS:
                raise KeyReused from None
            raise
    repeated = answer.status == ReplyStatus.REPEATED
    response.status_code = 200 if repeated else 201
    response.headers["Location"] = f"{request.url.path}/{answer.run}"
    return {"run": answer.run, "status": answer.run_status, "repeated": repeated}


@router.get("/runs", response_model=schemas.RunPage, summary="List runs, newest first")
def list_runs(
    request: Request,
    caller: Reader,
    status: Annotated[RunStatus | None, Query(description="Only runs of this status.")] = None,
    team: Annotated[
        str, Query(max_length=200, description="Only runs whose Team's name contains this.")
    ] = "",
    offset: Offset = 0,
    limit: Limit = 50,
) -> Any:
    """A page of the list; runs that are submitted meanwhile move it, so one may be seen twice, none is missed."""
    rows: list[dict[str, Any]] = []
    for at, row in edge(request).place.runs(offset, status or "", team):
        if len(rows) == limit:
            return {"runs": rows, "next_offset": at}
        rows.append(shown.run_line(row))
    return {"runs": rows, "next_offset": None}


@router.get("/runs/{run}", response_model=schemas.Run, summary="A run in short")
def get_run(request: Request, caller: Reader, run: RunPath) -> Any:
    """Status, counts of tasks, budgets."""
    return shown.run_summary(edge(request).place.run(run))


@router.get("/runs/{run}/tasks", response_model=schemas.TaskPage, summary="The tasks of a run, in file order")
def list_tasks(request: Request, caller: Reader, run: RunPath, offset: Offset = 0, limit: Limit = 100) -> Any:
    """A page of tasks."""
    place = edge(request).place
    place.run(run)
    rows = place.read(ReadTasks(run=run, offset=offset, limit=limit + 1))
    more = len(rows) > limit
    return {
        "tasks": [shown.task_line(row) for row in rows[:limit]],
        "next_offset": offset + limit if more else None,
    }


@router.get(
    "/runs/{run}/events",
    response_model=schemas.EventPage,
    responses={
        200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
        204: {"description": "The run has ended and Last-Event-ID is its last event."},
    },
    summary="The history of a run, by pages or live",
)
async def list_events(
    request: Request,
    caller: Reader,
    run: RunPath,
    after: Annotated[int, Query(ge=0, le=2**53 - 1, description="Only events after this number.")] = 0,
    limit: Limit = 100,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{1,16}$")] = None,
) -> Any:
    """JSON, a page of events; or, when `text/event-stream` is asked for, all of them as they happen."""
    state = edge(request)
    if MEDIA_TYPE in request.headers.get("accept", ""):
        return await event_stream(state.place, run, last_event_id, after, state.settings.stream_seconds)

    def page() -> list[dict[str, str]]:
        state.place.run(run)
        rows: list[dict[str, str]] = state.place.read(ReadEvents(run=run, after=after, limit=limit))
        return rows

    events = [event_entry(row) for row in await run_in_threadpool(page)]
    return {"events": events, "next_after": events[-1]["seq"] if events else after}


@router.get(
    "/runs/{run}/report",
    responses={
        200: {
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/markdown": {"schema": {"type": "string"}},
            }
        }
    },
    response_class=Response,
    summary="The report of a run (SPEC 10)",
)
def report(
    request: Request, caller: Reader, run: RunPath, format: Literal["json", "markdown"] = "json"
) -> Response:
    """The whole document; payloads of conflicts and late results for operators and reviewers only."""
    found = build_report(edge(request).place.picture(run))
    if not caller.may("operate", "review"):
        found = shown.without_evidence(found)
    if format == "markdown":
        return Response(render_markdown(found), media_type="text/markdown")
    return Response(canonical_bytes(found), media_type="application/json")


@router.get("/runs/{run}/explain", summary="Why a run stands where it stands")
def explanation(request: Request, caller: Reader, run: RunPath) -> dict[str, Any]:
    """Why it stopped, or what each open task waits for."""
    place = edge(request).place
    found = place.picture(run)
    return explain(found, int(time.time() * 1000), place.workers(found.tasks)).as_data()
