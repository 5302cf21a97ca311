"""Owns `crewline review`: what a person must decide, with all evidence, and the decision (SPEC 6).

Must not decide for anybody: a decision names a digest in full and the version of the review that was looked at. Reviews
are called `RUN:TASK.N`.
"""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from coordinator.cli import options
from coordinator.cli.kept import Target, open_run
from coordinator.cli.output import columns, emit, emit_json
from coordinator.cli.people import client_of, read_payload, settle, well_formed
from coordinator.cli.report import picture
from coordinator.cli.review_screen import draw_review
from coordinator.machine.reads import ListReviews, ReadRecords
from coordinator.run_report import build_report
from coordinator.run_report.reviews import review_view
from coordinator.run_report.sections.ledgers import review_entries
from coordinator.run_report.wording import clean, when
from coordinator.wire.errors import InputFault, Refused
from coordinator.wire.names import Refusal, ReplyStatus
from coordinator.wire.reports import Decide

PAGE = 500


class Tainted(StrEnum):
    """What becomes of tasks that had started from the doubtful result."""

    KEEP = "keep"
    """They stand as they are."""
    RERUN = "rerun"
    """Those that ended are done again."""


Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="RUN:TASK.N, with RUN as everywhere; RUN alone if it has one open review."
    ),
]
Reason = Annotated[str, typer.Option(help="Why; it stands in the history.")]
Version = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="The review's state_version that you decided on, as `show` prints it; the present one by default.",
    ),
]
TaintedOption = Annotated[
    Tainted,
    typer.Option("--tainted", help="What becomes of tasks that had started from the doubtful result."),
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    family = typer.Typer(
        no_args_is_help=True, help="Shows what a person must decide, and takes the decision."
    )
    family.command("list")(list_reviews)
    family.command("show")(show_review)
    family.command("accept")(accept)
    family.command("supply")(supply)
    family.command("reject")(reject)
    family.command("rerun")(rerun)
    app.add_typer(family, name="review")


def list_reviews(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="All reviews of this run; else the open ones of all runs."),
    ] = None,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Lists reviews, oldest first."""
    if run is None:
        found = _open_reviews(options.open_installation(redis, namespace))
    else:
        with open_run(run, redis, namespace, reads=True) as target:
            records = target.place.machine.read(ReadRecords(target.run, "reviews"))
            found = [{"run": target.run, **entry} for entry in review_entries(records)]
    if json:
        emit_json(found, output)
        return
    rows = [
        [
            clean(f"{review['run']}:{review['id']}", 200),
            review["kind"],
            review["decision"] or review["status"],
            str(review["evidence"]),
            str(review["state_version"]),
            when(review["opened_at"]),
            clean(review["source"] or "", 40),
        ]
        for review in found
    ]
    emit(columns(["ID", "KIND", "STATUS", "EVIDENCE", "VERSION", "OPENED", "DECIDED BY"], rows), output)


def _open_reviews(place: options.Installation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    offset = 0
    while page := place.machine.read(ListReviews(offset, PAGE)):
        found += [{"run": run, **review_entries([record])[0]} for run, record in page]
        offset += len(page)
    return found


def show_review(
    review: Id,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Shows one review: the payloads side by side, what differs, who sent them, what hangs on it."""
    with _find(review, redis, namespace, reads=True) as found:
        view = found.view()
    if json:
        emit_json(view, output)
    else:
        emit(draw_review(view), output)


@dataclass(frozen=True, slots=True)
class Found:
    """A review that was named, and its record as it stood then."""

    target: Target
    record: dict[str, Any]

    @property
    def name(self) -> str:
        """RUN:TASK.N"""
        return f"{self.target.run}:{self.record['id']}"

    def view(self) -> dict[str, Any]:
        """All that is known of it."""
        view = review_view(build_report(picture(self.target.place, self.target.run)), self.record["id"])
        assert view is not None  # it was found just now, and records do not go away
        return {**view, "name": self.name}


@contextmanager
def _find(text: str, redis: str | None, namespace: str, *, reads: bool = False) -> Iterator[Found]:
    """The review that is named. Raises InputFault when there is none, or several could be meant."""
    run, _, name = text.partition(":")
    with open_run(run, redis, namespace, reads=reads) as target:
        records = _records(target)
        fitting = [r for r in records if r["id"] == name or (not name and r["status"] == "open")]
        if len(fitting) != 1:
            known = ", ".join(f"{target.run}:{r['id']} ({r['status']})" for r in records) or "none"
            what = "no such review" if name or not fitting else "several reviews are open"
            raise InputFault(f"{text}: {what}; there are: {known}")
        yield Found(target, fitting[0])


def _records(target: Target) -> list[dict[str, Any]]:
    return review_entries(target.place.machine.read(ReadRecords(target.run, "reviews")))


def accept(
    review: Id,
    digest: Annotated[
        str,
        typer.Option("--digest", help="Digest of the result that is accepted, or a unique beginning of it."),
    ],
    reason: Reason = "",
    version: Version = None,
    tainted: TaintedOption = Tainted.KEEP,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Takes one of the results that were sent; what the conflict blocked goes on."""
    with _find(review, redis, namespace) as found:
        whole = _digest(found, digest)
        _decide(found, "accept", json, digest=whole, reason=reason, version=version, tainted=tainted)


def supply(
    review: Id,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The result as JSON; - reads the standard input.")
    ],
    reason: Reason = "",
    version: Version = None,
    tainted: TaintedOption = Tainted.KEEP,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Gives a result of one's own; what the conflict blocked goes on."""
    payload = read_payload(file)
    with _find(review, redis, namespace) as found:
        _decide(found, "supply", json, payload=payload, reason=reason, version=version, tainted=tainted)


def reject(
    review: Id,
    reason: Reason = "",
    version: Version = None,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Takes none of the results: the task has failed."""
    with _find(review, redis, namespace) as found:
        _decide(found, "reject", json, reason=reason, version=version)


def rerun(
    review: Id,
    reason: Reason = "",
    version: Version = None,
    tainted: TaintedOption = Tainted.KEEP,
    redis: options.RedisUrl = None,
    namespace: options.Namespace = options.DEFAULT,
    json: options.AsJson = False,
) -> None:
    """Lets the task be done again, whatever its max_attempts."""
    with _find(review, redis, namespace) as found:
        _decide(found, "rerun", json, reason=reason, version=version, tainted=tainted)


def _digest(found: Found, beginning: str) -> str:
    """The whole digest that is meant; what fits none goes as it is, and the machine refuses it."""
    digests = [candidate["digest"] for candidate in found.view()["candidates"]]
    fitting = [d for d in digests if d.startswith(beginning) or d.partition(":")[2].startswith(beginning)]
    if len(fitting) > 1:
        raise InputFault(f"--digest {beginning}: several results begin so: {', '.join(fitting)}")
    return fitting[0] if fitting and beginning else beginning


def _decide(
    found: Found,
    decision: Literal["accept", "supply", "reject", "rerun"],
    json: bool,
    *,
    version: int | None,
    reason: str,
    tainted: Tainted = Tainted.KEEP,
    digest: str = "",
    payload: str = "",
) -> None:
    """Says the decision. Raises Refused, naming who decided before, and InputFault."""
    client = client_of(found.target)
    with well_formed():
        decided = Decide(
            run=found.target.run,
            review=found.record["id"],
            decision=decision,
            digest=digest,
            payload=payload,
            version=found.record["state_version"] if version is None else version,
            tainted=tainted.value,
            reason=reason,
            source=client.user(),
        )
    answer = client.decide(decided)
    if answer.status == ReplyStatus.REFUSED and answer.word == Refusal.ALREADY_DECIDED:
        raise Refused(_told(found), word=answer.word)
    settle(answer, json, run=found.target.run, review=found.name, task=found.record["task"])


def _told(found: Found) -> str:
    """By whom a review was decided, when and how."""
    record = next(r for r in _records(found.target) if r["id"] == found.record["id"])
    how = f"{record['decision']}{' of ' + record['digest'] if record['digest'] else ''}"
    why = f": {jsonlib.dumps(clean(record['reason']), ensure_ascii=False)}" if record["reason"] else ""
    who = clean(record["source"] or "somebody", 80)
    return f"{found.name} was decided by {who} at {when(record['decided_at'])}: {how}{why}"
