"""Owns what the effects of handlers must show against the histories: every begin had its lease, and none came twice.

A process that stood still, or that nobody could reach, is late through no fault of its own: such time is added to
what a begin may be late (no store can stop a process between its last look and its next line). Must not excuse
anything else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from coordinator.wire.names import TaskState
from ops.chaos.checker.evidence import Evidence, Execution, Fields, RunEvidence, Violation
from ops.chaos.fleet import Pause

SLACK_MS = 1_000
"""For a busy machine: between a moment and the line that tells of it."""
CLOCK_MS = 2
"""Two readings of one clock, rounded."""

Key = tuple[str, str, int]


def check_executions(evidence: Evidence) -> Iterable[Violation]:
    """Begins against grants, results against begins, ends against reports."""
    yield from _ran_twice(evidence)
    began: dict[str, list[Execution]] = defaultdict(list)
    for execution in evidence.executions:
        began[execution.run].append(execution)
    for run, executions in began.items():
        if run not in evidence.runs:
            yield Violation("ran without a lease", run, "no such run, but handlers began")
            continue
        begins = _Begins(evidence.runs[run], evidence.pauses)
        for execution in executions:
            yield from begins.check(execution)
    for one in evidence.runs.values():
        yield from _results(one, began[one.id])
    yield from _unreported(evidence)


def _ran_twice(evidence: Evidence) -> Iterator[Violation]:
    for (run, task, attempt), times in Counter(e.attempt_of for e in evidence.executions).items():
        if times > 1:
            yield Violation("ran twice", run, f"attempt {attempt} of {task} began {times} times")


class _Begins:
    """The grants of one run, and what a begin may not be later than."""

    def __init__(self, run: RunEvidence, pauses: list[Pause]) -> None:
        self._run, self._pauses = run, pauses
        self._heartbeats = {task["id"]: int(task.get("heartbeat_ms") or 0) for task in run.tasks}
        self._grants: dict[tuple[str, int], Fields] = {}
        self._over: dict[tuple[str, int], Fields] = {}
        """The event by which an attempt was told to end."""
        running: dict[str, int] = {}
        for event in run.events:
            task = event["task_id"]
            if event["kind"] == "attempt_started":
                running[task] = int(event["attempt"])
                self._grants[task, running[task]] = event
            elif event["kind"] == "cancel_requested":
                self._over.setdefault((task, int(event["attempt"])), event)
            elif event["kind"] == "run_stopped":
                for name, number in running.items():
                    self._over.setdefault((name, number), event)
            elif event["from"] == TaskState.RUNNING and event["to"]:
                running.pop(task, None)
        self._renewed: dict[tuple[str, int], list[int]] = defaultdict(list)
        for name, at, said in run.commands:
            if name == "renew_lease":
                self._renewed[said["task"], int(said["attempt"])].append(at)

    def check(self, began: Execution) -> Iterator[Violation]:
        attempt = (began.task, began.attempt)
        where = f"attempt {began.attempt} of {began.task} in {began.pid}"
        grant = self._grants.get(attempt)
        if grant is None:
            yield self._wrong("ran without a lease", f"{where} began, nothing was granted")
            return
        holder = grant.get("worker", "").split(".")
        if len(holder) < 2 or holder[1] not in (str(began.pid), str(began.ppid)):
            yield self._wrong("ran without a lease", f"{where} began, the lease is {grant.get('worker')}'s")
        granted = int(grant["at"])
        if began.began < granted - CLOCK_MS:
            yield self._wrong(
                "ran without a lease", f"{where} began {granted - began.began} ms before its grant"
            )
        renewed = [at for at in self._renewed[attempt] if at <= began.began]
        ends = max([granted, *renewed]) + self._heartbeats[began.task]
        late = began.began - ends - self._lost_time(began, granted)
        if late > SLACK_MS:
            yield self._wrong("began after its lease", f"{where} began {late} ms after its lease had ended")
        over = self._over.get(attempt)
        if over is not None:
            late = began.began - int(over["at"]) - self._lost_time(began, granted)
            if late > SLACK_MS:
                yield self._wrong("began after a cancel", f"{where} began {late} ms after {over['kind']}")

    def _lost_time(self, began: Execution, since: int) -> int:
        """Time before the begin in which its worker stood still, or somebody was out of reach."""
        lost = 0
        for pause in self._pauses:
            if pause.pid in (0, began.pid, began.ppid):
                lost += max(0, min(pause.ended, began.began) - max(pause.began, since))
        return lost

    def _wrong(self, kind: str, evidence: str) -> Violation:
        return Violation(kind, self._run.id, evidence)


def _results(run: RunEvidence, executions: list[Execution]) -> Iterator[Violation]:
    """A result that counts was returned by a handler that ran."""
    returned = {(e.task, e.attempt) for e in executions if e.how == "returned"}
    workers = {
        task["id"] for task in run.tasks if task.get("external") != "1" and task.get("for_each") != "1"
    }
    for event in run.events:
        attempt = (event["task_id"], int(event["attempt"] or 0))
        if event["kind"] == "task_succeeded" and event["task_id"] in workers and attempt not in returned:
            what = f"attempt {attempt[1]} of {attempt[0]} succeeded, but no handler returned anything"
            yield Violation("result from nothing", run.id, what)


def _unreported(evidence: Evidence) -> Iterator[Violation]:
    """What a handler ended with reached the inbox, unless its process was killed or could tell nobody (`dropped`)."""
    told = {
        (letter.said.get("run"), letter.said.get("task"), letter.said.get("attempt"))
        for letter in evidence.letters
        if letter.said.get("kind") in ("end", "hand_back", "action_doubt")
    }
    silent = [
        e
        for e in evidence.executions
        if e.how not in ("", "exit")
        and not {e.pid, e.ppid} & evidence.killed
        and (e.run, e.task, str(e.attempt)) not in told
    ]
    for execution in silent[evidence.dropped :]:
        what = f"attempt {execution.attempt} of {execution.task} ended {execution.how}, no report was stored"
        yield Violation("report never sent", execution.run, what)


def late_begins(evidence: Evidence) -> int:
    """How many handlers began in the moment in which they were told to end: leases granted before, by a hair."""
    count = 0
    for run in evidence.runs.values():
        stops = {
            (event["task_id"], int(event["attempt"])): int(event["at"])
            for event in run.events
            if event["kind"] == "cancel_requested"
        }
        count += sum(
            e.began > stops.get((e.task, e.attempt), e.began) for e in evidence.executions if e.run == run.id
        )
    return count
