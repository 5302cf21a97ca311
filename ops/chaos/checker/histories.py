"""Owns what a run's history alone must show: one accepted result a task, nothing started after a stop, an end with a
reason, versions and numbers without gaps.

Must not trust the states that are stored: they are followed event by event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from coordinator.wire.names import ENDED, FINAL, PARKED, RunStatus, TaskState
from ops.chaos.checker.evidence import Evidence, Fields, RunEvidence, Violation

DECIDED = frozenset({"task_conflicted", "review_accepted", "review_rejected", "task_rerun", "task_unblocked"})
"""Events that may move a task that has ended."""
STARTS = ("task_queued", "attempt_started")


def check_histories(evidence: Evidence) -> Iterable[Violation]:
    """All runs, each by itself."""
    for run in evidence.runs.values():
        yield from _Follower(run).follow()
        yield from _ended(run)


class _Follower:
    """Follows one history from its beginning."""

    def __init__(self, run: RunEvidence) -> None:
        self._run = run
        self._states: dict[str, str] = {}
        self._accepted: Counter[str] = Counter()
        self._started: dict[str, int] = {}
        self._status: str = RunStatus.RUNNING
        self._seq = self._version = 0

    def follow(self) -> Iterator[Violation]:
        for event in self._run.events:
            yield from self._count(event)
            if event["kind"].startswith("run_"):
                self._status = event["to"] or self._status
            elif event["to"]:
                yield from self._move(event)
        if str(self._version) != self._run.run["state_version"]:
            yield self._wrong(
                "versions", f"the run is at {self._run.run['state_version']}, its events {self._version}"
            )
        for task in self._run.tasks:
            stored = task.get("was") or task["state"]
            if stored != self._states.get(task["id"], TaskState.PENDING):
                yield self._wrong(
                    "replay", f"{task['id']} is {stored}, its events say {self._states.get(task['id'])}"
                )

    def _count(self, event: Fields) -> Iterator[Violation]:
        seq, version = int(event["seq"]), int(event["state_version"])
        if seq != self._seq + 1:
            yield self._wrong("events lost", f"event {seq} follows {self._seq}")
        if version != self._version + bool(event["to"]):
            yield self._wrong(
                "versions", f"event {seq} ({event['kind']}) has {version} after {self._version}"
            )
        self._seq, self._version = seq, version

    def _move(self, event: Fields) -> Iterator[Violation]:
        task, kind, to = event["task_id"], event["kind"], event["to"]
        before = self._states.get(task, TaskState.PENDING)
        where = f"event {event['seq']} ({kind}) of {task}"
        if event["from"] != before:
            yield self._wrong("replay", f"{where} leaves {event['from']}, the task was {before}")
        if before in ENDED and kind not in DECIDED:
            yield self._wrong("moved after its end", f"{where}: the task had ended {before}")
        self._states[task] = to
        if to == TaskState.SUCCEEDED and kind != "review_accepted":
            self._accepted[task] += 1
            if self._accepted[task] > 1:
                yield self._wrong("two results", f"{where} is accepted result number {self._accepted[task]}")
        if kind in STARTS and self._status != RunStatus.RUNNING:
            yield self._wrong("started after the stop", f"{where}: the run was {self._status}")
        if kind == "attempt_started":
            number = int(event["attempt"])
            if number <= self._started.get(task, 0):
                yield self._wrong(
                    "attempt granted twice", f"{where}: attempt {number} after {self._started[task]}"
                )
            self._started[task] = number

    def _wrong(self, kind: str, evidence: str) -> Violation:
        return Violation(kind, self._run.id, evidence)


def _ended(run: RunEvidence) -> Iterator[Violation]:
    """It ended, or is parked, and says why; nobody is still waited for."""
    status = run.run["status"]
    if status not in FINAL | PARKED or run.run.get("batch"):
        open_tasks = [f"{task['id']} {task['state']}" for task in run.tasks if task["state"] not in ENDED]
        yield Violation(
            "not ended", run.id, f"{status}, batch {run.run.get('batch')!r}: {', '.join(open_tasks)}"
        )
        return
    if not (run.run.get("stop_reason") or run.run.get("locked_reason")):
        yield Violation("no reason", run.id, f"{status} without a reason")
    if status in FINAL:
        for task in run.tasks:
            if task["state"] not in ENDED and task["state"] != TaskState.NEEDS_REVIEW:
                yield Violation("not ended", run.id, f"the run is {status}, {task['id']} is {task['state']}")
    for cancellation in run.cancellations:
        if cancellation["outcome"] == "requested":
            what = f"attempt {cancellation['attempt']} of {cancellation['task']} was never settled"
            yield Violation("cancel without an end", run.id, what)
    for task in run.tasks:
        if int(task.get("granted") or 0) > int(task["max_attempts"]):
            what = f"{task['id']}: {task['granted']} granted leases count, allowed are {task['max_attempts']}"
            yield Violation("too many attempts", run.id, what)
