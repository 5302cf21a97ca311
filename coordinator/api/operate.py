"""Owns the routes by which operators and outside systems move runs. Who did it is the token's name alone."""

from __future__ import annotations

import json
import secrets
from typing import Annotated, Any

from fastapi import Path, Request

from coordinator.api import schemas
from coordinator.api.gate import Operator, edge
from coordinator.api.problems import accepted
from coordinator.api.runs import Key, RunPath, run_of_key
from coordinator.api.strict import strict_router
from coordinator.team.rules.amounts import money_micros
from coordinator.team.rules.raises import read_raises
from coordinator.wire import reports
from coordinator.wire.digest import canonical
from coordinator.wire.grants import Answer
from coordinator.wire.names import FailureClass, ReportState

router = strict_router("operate")

TaskPath = Annotated[schemas.TaskId, Path(description="A task's id.")]


def outcome(run: str, answer: Answer) -> dict[str, Any]:
    """What became of a request."""
    return {
        "run": answer.run or run,
        "status": answer.status,
        "word": answer.word,
        "run_status": answer.run_status,
        "detail": answer.detail,
    }


def ask_id(caller: str, key: str | None) -> str:
    """The request id of a cancel: of the caller's key, so that it can be sent twice, or a new one."""
    return run_of_key(caller, key) if key else secrets.token_hex(16)


@router.post("/runs/{run}/cancel", response_model=schemas.Outcome, summary="Cancel a run")
def cancel_run(
    request: Request, caller: Operator, run: RunPath, body: schemas.CancelBody, key: Key = None
) -> Any:
    """Ends the run; whoever works on it is told at once."""
    ask = ask_id(caller.name, key)
    place = edge(request).place
    return outcome(
        run, place.say("operate", reports.Cancel, run=run, ask=ask, reason=body.reason, source=caller.name)
    )


@router.post("/runs/{run}/tasks/{task}/cancel", response_model=schemas.Outcome, summary="Cancel one task")
def cancel_task(
    request: Request,
    caller: Operator,
    run: RunPath,
    task: TaskPath,
    body: schemas.CancelBody,
    key: Key = None,
) -> Any:
    """Ends the task; what requires it is blocked, the rest of the run goes on."""
    ask = ask_id(caller.name, key)
    answer = edge(request).place.say(
        "operate", reports.Cancel, run=run, task=task, ask=ask, reason=body.reason, source=caller.name
    )
    return outcome(run, answer)


@router.post("/runs/{run}/resume", response_model=schemas.Outcome, summary="Let a parked run go on")
def resume(request: Request, caller: Operator, run: RunPath, body: schemas.ResumeBody) -> Any:
    """Raises limits and goes on (SPEC 5)."""
    raises = read_raises(dict(body.raises.items()))
    return outcome(run, accepted(edge(request).place.client.resume(run, raises, source=caller.name)))


@router.post(
    "/runs/{run}/tasks/{task}/answer", response_model=schemas.Outcome, summary="Answer a task's question"
)
def answer_task(
    request: Request, caller: Operator, run: RunPath, task: TaskPath, body: schemas.AnswerBody
) -> Any:
    """The task goes on with a new attempt, which gets the answer."""
    answer = edge(request).place.say(
        "operate",
        reports.AnswerQuestion,
        run=run,
        task=task,
        question=body.question or "",
        payload=canonical(body.answer),
        source=caller.name,
    )
    return outcome(run, answer)


@router.post("/runs/{run}/signals", response_model=schemas.Outcome, summary="Give a run a signal")
def signal(request: Request, caller: Operator, run: RunPath, body: schemas.SignalBody) -> Any:
    """A fact that rules of the Team may ask for."""
    answer = edge(request).place.say(
        "operate", reports.Signal, run=run, signal=body.signal, source=caller.name
    )
    return outcome(run, answer)


@router.post(
    "/runs/{run}/tasks/{task}/reports", response_model=schemas.Outcome, summary="Report on an external task"
)
def report_task(
    request: Request, caller: Operator, run: RunPath, task: TaskPath, body: schemas.ReportBody
) -> Any:
    """What an outside system says; `late_ignored` and the like are verdicts, not errors."""
    state = ReportState(body.state)
    answer = edge(request).place.say(
        "operate",
        reports.ExternalReport,
        run=run,
        task=task,
        state=state,
        key=body.key,
        payload=canonical(body.payload) if state == ReportState.COMPLETED else "",
        error=failure_text(body.error) if state == ReportState.FAILED else "",
        source=caller.name,
        tokens=body.tokens,
        cost_micros=money_micros(body.cost) or 0,
    )
    return outcome(run, answer)


def failure_text(error: schemas.FailureBody | None) -> str:
    """The error document of a failed report."""
    said = error or schemas.FailureBody(message="reported as failed")
    return json.dumps(
        {"class": FailureClass.PERMANENT.value, "type": said.type, "message": said.message},
        ensure_ascii=False,
    )
