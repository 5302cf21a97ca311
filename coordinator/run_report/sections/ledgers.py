"""Owns the report's ledgers: conflicting and late results, actions, reviews, cancellations (SPEC 6, 7, 10).

Must not judge: what was recorded stands, with the payloads that were kept of it. Must not leave an entry out: a ledger
is evidence. Every entry of a list has the same names, so that tables can be made of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.run_report.fields import count, document, flag, number, word
from coordinator.run_report.sections.tasks import TaskEntry

Entry = dict[str, Any]
Record = Mapping[str, Any]

ACTION_STATES = ("unknown", "started", "failed", "confirmed")
"""The order in which actions are listed: what a person should look at comes first."""


def conflict_entries(ledger: Sequence[Record], payloads: Mapping[str, str]) -> list[Entry]:
    """Gives `result_conflicts`: every result that came under a key whose results contradict each other."""
    return [
        {
            "task": entry["task"],
            "key": word(entry, "key"),
            "arrival": number(entry, "arrival"),
            "digest": word(entry, "digest"),
            "payload": document(payloads.get(entry.get("digest", ""))),
            "state_version": number(entry, "state_version"),
            "worker": word(entry, "worker"),
            "lease": word(entry, "lease"),
            "attempt": number(entry, "attempt"),
            "at": number(entry, "at"),
            "accepted": flag(entry, "accepted"),
        }
        for entry in ledger
    ]


def late_entries(ledger: Sequence[Record], payloads: Mapping[str, str]) -> list[Entry]:
    """Gives `late_results`: what came when it could not count any more."""
    return [
        {
            "task": entry["task"],
            "source": word(entry, "source"),
            "attempt": number(entry, "attempt"),
            "at": number(entry, "at"),
            "digest": word(entry, "digest"),
            "payload": document(payloads.get(entry.get("digest", ""))),
            "verdict": word(entry, "verdict"),
            "reason": word(entry, "reason"),
            "would_change": flag(entry, "would_change"),
            "state": word(entry, "state"),
        }
        for entry in ledger
    ]


def action_entries(
    records: Sequence[Record], payloads: Mapping[str, str], tasks: Mapping[str, TaskEntry]
) -> list[Entry]:
    """Gives `actions`, by state, then in the order of their tasks. A failed action's `receipt` is its error."""
    place = {name: position for position, name in enumerate(tasks)}
    rank = {state: position for position, state in enumerate(ACTION_STATES)}
    ordered = sorted(
        records, key=lambda a: (rank.get(a["state"], len(rank)), place.get(a["task"], len(place)), a["key"])
    )
    return [
        {
            "task": action["task"],
            "key": action["key"],
            "state": action["state"],
            "attempt": number(action, "attempt"),
            "worker": word(action, "worker"),
            "at": number(action, "at"),
            "details": document(payloads.get(action.get("details", ""))),
            "receipt": document(payloads.get(action.get("receipt", ""))),
        }
        for action in ordered
    ]


def review_entries(records: Sequence[Record]) -> list[Entry]:
    """Gives `reviews`, oldest first, open ones with null for what a decision will say."""
    return [
        {
            "id": review["id"],
            "task": review["task"],
            "kind": review["kind"],
            "status": review["status"],
            "opened_at": number(review, "opened_at"),
            "state_version": number(review, "state_version"),
            "evidence": count(review, "evidence"),
            "action": word(review, "action"),
            "first": review.get("first"),
            "decision": word(review, "decision"),
            "digest": word(review, "digest"),
            "reason": word(review, "reason"),
            "source": word(review, "source"),
            "decided_at": number(review, "decided_at"),
        }
        for review in sorted(records, key=_age)
    ]


def _age(review: Record) -> tuple[int, int, str]:
    """Reviews are numbered through the run: `TASK.N`."""
    serial = str(review["id"]).rpartition(".")[2]
    return count(review, "opened_at"), int(serial) if serial.isdigit() else 0, review["id"]


def cancellation_entries(
    records: Sequence[Record], tasks: Mapping[str, TaskEntry], events: Sequence[Entry]
) -> list[Entry]:
    """Gives `cancellations`: every canceled task, and every attempt that was told to end (SPEC 7).

    `outcome` says how the second phase went (requested, confirmed, completed_anyway, unconfirmed); it is null where
    nobody had to be told. Tasks that a stop took with it have no event of their own (SPEC 3): their `seq` is null.
    """
    seqs = {event["task_id"]: event["seq"] for event in events if event["kind"] == "task_canceled"}
    told: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda r: count(r, "attempt")):
        told.setdefault(record["task"], []).append(record)
    found: list[Entry] = []
    for name, task in tasks.items():
        canceled = task["state"] == "canceled"
        for record in told.get(name, [{}] if canceled else []):
            found.append(
                {
                    "task": name,
                    "was": task["was"],
                    "seq": seqs.get(name),
                    "reason": word(record, "reason") or task["reason"],
                    "attempt": number(record, "attempt"),
                    "worker": word(record, "worker"),
                    "source": word(record, "source"),
                    "requested_at": number(record, "requested_at"),
                    "outcome": word(record, "outcome"),
                    "at": number(record, "at"),
                }
            )
    return found
