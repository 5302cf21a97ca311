"""Owns the routes of what people decide and may look into: reviews, actions, the late ledger."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request

from coordinator.api import schemas, shown
from coordinator.api.gate import Operator, Reader, Reviewer, Witness, edge
from coordinator.api.operate import outcome
from coordinator.api.place import Place
from coordinator.api.problems import NotFound
from coordinator.api.runs import Limit, Offset, RunPath
from coordinator.api.strict import strict_router
from coordinator.machine.reads import ListReviews, ReadLedger, ReadPayloads
from coordinator.wire import reports
from coordinator.wire.digest import canonical
from coordinator.wire.errors import InputFault

router = strict_router()

ReviewPath = Annotated[str, Path(min_length=1, max_length=300, description="A review's id.")]


@router.get(
    "/reviews", tags=["reviews"], response_model=schemas.ReviewPage, summary="Open reviews of all runs"
)
def list_reviews(request: Request, caller: Witness, offset: Offset = 0, limit: Limit = 50) -> Any:
    """A page of them, oldest first."""
    rows = edge(request).place.read(ListReviews(offset=offset, limit=limit + 1))
    more = len(rows) > limit
    return {
        "reviews": [{"run": run, **record} for run, record in rows[:limit]],
        "next_offset": offset + limit if more else None,
    }


@router.get(
    "/runs/{run}/reviews", tags=["reviews"], response_model=schemas.Reviews, summary="All reviews of a run"
)
def run_reviews(request: Request, caller: Witness, run: RunPath) -> Any:
    """Open and decided ones."""
    return {"reviews": [{"run": run, **record} for record in edge(request).place.records(run, "reviews")]}


@router.get(
    "/runs/{run}/reviews/{review}",
    tags=["reviews"],
    response_model=schemas.ReviewDetail,
    summary="A review with its evidence",
)
def get_review(request: Request, caller: Witness, run: RunPath, review: ReviewPath) -> Any:
    """Every payload that arrived under the key, in order of arrival."""
    record, arrivals = review_with_evidence(edge(request).place, run, review)
    return {"run": run, **record, "evidence_list": arrivals}


def review_with_evidence(place: Place, run: str, review: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A review's record, and the arrivals that it is about. Raises NotFound, Unreachable."""
    record = next((entry for entry in place.records(run, "reviews") if entry["id"] == review), None)
    if record is None:
        raise NotFound(f"run {run} has no review {review[:300]}")
    return record, shown.evidence_of(place.picture(run), record["task"])


@router.post(
    "/runs/{run}/reviews/{review}/decision",
    tags=["reviews"],
    response_model=schemas.Outcome,
    summary="Decide a review",
)
def decide(
    request: Request, caller: Reviewer, run: RunPath, review: ReviewPath, body: schemas.DecisionBody
) -> Any:
    """Of two deciders one wins; who decided on old evidence is told `stale_version`."""
    supplied = "payload" in body.model_fields_set
    if (body.decision == "accept") != (body.digest is not None):
        raise InputFault("digest: is for `accept`, which needs it")
    if (body.decision == "supply") != supplied:
        raise InputFault("payload: is for `supply`, which needs it")
    answer = edge(request).place.say(
        "review",
        reports.Decide,
        run=run,
        review=review,
        decision=body.decision,
        payload=canonical(body.payload) if supplied else "",
        digest=body.digest or "",
        version=body.version,
        tainted=body.tainted,
        reason=body.reason,
        source=caller.name,
    )
    return outcome(run, answer)


@router.get(
    "/runs/{run}/actions", tags=["actions"], response_model=schemas.Actions, summary="Side effects of a run"
)
def list_actions(request: Request, caller: Reader, run: RunPath) -> Any:
    """All of them, with their states."""
    return {"actions": actions_of(edge(request).place, run)}


def actions_of(place: Place, run: str) -> list[dict[str, Any]]:
    """The actions of a run with what was said of them. Raises NotFound, Unreachable."""
    records = place.records(run, "actions")
    digests = {entry[name] for entry in records for name in ("details", "receipt")}
    payloads = payloads_of(place, run, digests)
    return [shown.action(entry, payloads) for entry in records]


def payloads_of(place: Place, run: str, digests: set[str]) -> dict[str, str]:
    """The payloads of these digests, as far as they are kept."""
    wanted = tuple(sorted(digests - {""}))
    texts = place.read(ReadPayloads(run=run, digests=wanted)) if wanted else []
    return {digest: text for digest, text in zip(wanted, texts, strict=True) if text is not None}


@router.post(
    "/runs/{run}/actions/decision",
    tags=["actions"],
    response_model=schemas.Outcome,
    summary="Say how an action ended",
)
def decide_action(request: Request, caller: Operator, run: RunPath, body: schemas.ActionBody) -> Any:
    """For an action that was started and of which nobody knows how it ended."""
    answer = edge(request).place.say(
        "operate",
        reports.ActionDecide,
        run=run,
        task=body.task,
        key=body.key,
        state=body.state,
        payload=canonical(body.receipt) if "receipt" in body.model_fields_set else "",
        reason=body.reason,
        source=caller.name,
    )
    return outcome(run, answer)


@router.get(
    "/runs/{run}/late",
    tags=["late"],
    response_model=schemas.LatePage,
    summary="Reports that came too late to count",
)
def list_late(request: Request, caller: Witness, run: RunPath, offset: Offset = 0, limit: Limit = 50) -> Any:
    """A page of the late ledger, oldest first."""
    rows, more = late_of(edge(request).place, run, offset, limit)
    return {"late": rows, "next_offset": offset + limit if more else None}


def late_of(place: Place, run: str, offset: int, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """A page of the late ledger, and whether there is another. Raises NotFound, Unreachable."""
    place.run(run)
    rows = place.read(ReadLedger(run=run, ledger="late", offset=offset, limit=limit + 1))
    payloads = payloads_of(place, run, {row.get("digest", "") for row in rows[:limit]})
    return [shown.late_result(row, payloads) for row in rows[:limit]], len(rows) > limit
