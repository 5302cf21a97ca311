"""Owns driving the Redis machine and the oracle side by side, and comparing everything that a reader can see.

Must not choose commands: a test does. The comparison follows every command, so the first difference is the cause.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from redis import Redis

from coordinator.machine.commands import (
    Command,
    ContinueBatch,
    Dispatch,
    DispatchTask,
    FireTimer,
    GrantLease,
    TakeLead,
)
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import (
    DueTimers,
    OpenBatches,
    ReadEvents,
    ReadLedger,
    ReadOutbox,
    ReadRecords,
    ReadRun,
    ReadTasks,
)
from coordinator.wire.names import FINAL, RunStatus, TaskState, Verdict
from tests.support.builders import DEFAULTS
from tests.support.oracle import Answer, Oracle
from tests.support.oracle.budget import missing
from tests.support.oracle.readiness import ready

MANY = 10_000
RECENT = 25
"""Of so many commands the refused ones are told too."""
RUN_NUMBERS = (
    "state_version", "reports", "used_step_budget", "used_tokens", "used_cost", "reserved_step_budget",
    "reserved_tokens", "reserved_cost", "overrun_tokens", "overrun_cost",
)  # fmt: skip


class Lockstep:
    """A machine on a real Redis and an oracle, given the same commands."""

    def __init__(self, redis: Redis, namespace: str = "crewline") -> None:
        self.redis = redis
        self.namespace = namespace
        self.machine = Machine(redis, namespace)
        self.machine.load()
        self.machine.epoch = int(self.machine.apply(TakeLead(now=1, holder="test", ttl_ms=600_000)).data)
        self.oracle = Oracle()
        self.histories: dict[str, History] = {}
        self.counts: Counter[str] = Counter()
        """How often each command had each status, and each word was said."""
        self.log: list[str] = []
        """Every command so far, as it may be told."""

    def post(self, inbox: str) -> str:
        """Writes an inbox entry for both; gives its id."""
        added: Any = self.redis.xadd(inbox, {"v": "1", "kind": "test"})
        entry = added.decode() if isinstance(added, bytes) else str(added)
        self.oracle.post(inbox, entry)
        return entry

    def apply(self, command: Any) -> Reply:
        """Applies a command to both, finishes open batches, and compares."""
        reply = self.machine.apply(command)
        if isinstance(command, Dispatch):
            self._follow_dispatch(command)
            return reply
        answer = self.oracle.apply(command)
        name, told = type(command).__name__, answer.word or answer.status
        self.counts.update([f"{name} {answer.status}", f"word {told}"])
        self.log.append(_short(command) if answer.status == "applied" else f"{told}: {_short(command)}")
        if not (isinstance(command, FireTimer) and not command.task):
            mine, its = (str(answer.status), str(answer.word)), (str(reply.status), reply.word)
            assert its == mine, self.told(f"the machine says {its}, the oracle {mine}")
        if command.reply_to:
            self._check_reply(command, answer)
        self._finish_batches(command.now)
        if command.run in self.oracle.runs:
            self._learn_backoffs(command.run)
            self.check(command.run)
        return reply

    def _follow_dispatch(self, command: Dispatch) -> None:
        """Which run is served first is compared elsewhere (cases B). Within a run it goes by priority, then file order
        over all roles, and at the end nothing that fits may be left while there was room."""
        self._finish_batches(command.now)
        room = command.limit
        for run in self.oracle.runs.values():
            if run.status is not RunStatus.RUNNING:
                continue
            history = self.histories[run.id]
            events: list[dict[str, str]] = self.machine.read(ReadEvents(run.id, history.seq, MANY))
            chosen = [event["task_id"] for event in events if event["kind"] == "task_queued"]
            for name in chosen:
                expected = [t.id for t in ready(run) if not missing(run, t)]
                assert [name] == expected[:1], self.told(f"dispatched {name}, expected {expected}")
                self.oracle.apply(DispatchTask(now=command.now, run=run.id, task=name))
            self.counts["Dispatch applied"] += 1
            self.log.append(f"{_short(command)}: {run.id} {chosen}")
            room -= len(chosen)
            self.check(run.id)
        for run in self.oracle.runs.values():
            left = [t.id for t in ready(run) if not missing(run, t)]
            assert room <= 0 or run.status is not RunStatus.RUNNING or not left, self.told(f"left: {left}")

    def apply_all(self, commands: Sequence[Command]) -> None:
        for command in commands:
            self.apply(command)

    def due(self, now: int) -> list[tuple[str, str]]:
        """Timers that the machine has due; none that the oracle knows of may be missing."""
        found = [(str(run), str(task)) for run, task in self.machine.read(DueTimers(now, MANY))]
        for run in self.oracle.runs:
            missing = {(run, task) for task in self.oracle.due(run, now)} - set(found)
            assert not missing, self.told(f"timers due at {now} that the machine does not list: {missing}")
        return found

    def told(self, difference: str) -> str:
        """A difference with the commands that led to it; of the refused ones only the last few."""
        kept = [line for line in self.log[:-RECENT] if not line.split(" ")[0].endswith(":")]
        return "\n  ".join(["after", *kept, *self.log[-RECENT:], "=> " + difference])

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except AssertionError as error:
            raise AssertionError(self.told(str(error))) from None

    def check(self, run: str) -> None:
        """Compares the public state of one run and follows its history."""
        if self.oracle.runs[run].loading:
            return
        mine = self.oracle.view(run)
        fields: dict[str, str] = self.machine.read(ReadRun(run))
        tasks: list[dict[str, str]] = self.machine.read(ReadTasks(run, 0, MANY))
        history = self.histories.setdefault(run, History())
        with self._telling():
            history.follow(self.machine.read(ReadEvents(run, history.seq, MANY)))
        its = self._its_view(fields, tasks, history, run)
        differences = [
            f"{name}: machine {its[name]!r}, oracle {mine[name]!r}"
            for name in mine
            if name != "tasks" and its[name] != mine[name]
        ]
        for name, view in mine["tasks"].items():
            theirs = its["tasks"].get(name, {})
            differences += [
                f"{name}.{field}: machine {theirs.get(field)!r}, oracle {value!r}"
                for field, value in view.items()
                if theirs.get(field) != value
            ]
        recent = [
            f"{e['kind']} {e['task_id']} {e['from']} -> {e['to']} {e['reason']}" for e in history.recent
        ]
        assert not differences, self.told(
            "\n  ".join([*differences, f"{run} is {fields['status']}", *recent])
        )
        self._check_causes(run, fields, tasks)
        with self._telling():
            history.check(int(fields["state_version"]), tasks)
        self._check_outbox()

    def _its_view(
        self, fields: dict[str, str], tasks: list[dict[str, str]], history: History, run: str
    ) -> dict[str, Any]:
        stopped = fields["status"] in FINAL
        late = self.machine.read(ReadLedger(run, "late", 0, MANY))
        by_rule = fields["status"] == "paused" and bool(fields.get("stop_rule"))
        return {
            "status": fields["status"],
            "locked_reason": "" if by_rule else fields.get("locked_reason", ""),
            "stop_reason": fields.get("stop_reason", "") if stopped else "",
            "stop_rule": fields.get("stop_rule", "") if stopped else "",
            "also_true": _words(fields.get("also_true", "")) if stopped else [],
            **{name: int(fields.get(name) or 0) for name in RUN_NUMBERS},
            "tasks": {task["id"]: _task_view(task) for task in tasks},
            "verdicts": history.verdicts,
            **self._records(run),
            "would_change": sum(int(entry.get("would_change") or 0) for entry in late),
        }

    def _records(self, run: str) -> dict[str, Any]:
        """Cancellations, actions and reviews, as the oracle keeps them."""
        found = {
            kind: self.machine.read(ReadRecords(run, kind))
            for kind in ("cancellations", "actions", "reviews")
        }
        return {
            "cancellations": {(e["task"], int(e["attempt"])): e["outcome"] for e in found["cancellations"]},
            "actions": {
                (e["task"], e["key"]): (e["state"], int(e["attempt"]), e.get("receipt", ""))
                for e in found["actions"]
            },
            "reviews": {
                e["id"]: (e["task"], e["kind"], int(e["state_version"]), e.get("decision", ""))
                for e in found["reviews"]
            },
        }

    def _check_causes(self, run: str, fields: dict[str, str], tasks: list[dict[str, str]]) -> None:
        for task in tasks:
            if task["state"] == TaskState.BLOCKED and fields["status"] not in FINAL:
                causes = self.oracle.roots(run, task["id"])
                assert task.get("root") in causes, self.told(
                    f"{task['id']}: root {task['root']}, possible {causes}"
                )
        if fields["status"] == "critical_failure":
            causes = self.oracle.critical_roots(run)
            assert fields["stop_task"] in causes, self.told(
                f"stop_task {fields['stop_task']}, possible {causes}"
            )

    def _check_outbox(self) -> None:
        """Every queued attempt was handed to the outbox, and nothing else ever was."""
        found = [json.loads(each) for each in self.machine.read(ReadOutbox(MANY))]
        handed = [(e["run"], e["role"], e["task"], int(e["attempt"])) for e in found]
        assert len(handed) == len(set(handed)), self.told(f"an attempt was handed out twice: {handed}")
        ever = {(run.id, *each) for run in self.oracle.runs.values() for each in run.launched}
        queued = {
            (run.id, task.role, task.id, task.attempt)
            for run in self.oracle.runs.values()
            for task in run.tasks.values()
            if task.state is TaskState.QUEUED and not task.external and not task.for_each and not run.stopped
        }
        assert queued <= set(handed) <= ever, self.told(f"outbox {handed}, queued {queued}")

    def _finish_batches(self, now: int) -> None:
        for _ in range(MANY):
            open_runs = [run for run, kind, *_ in self.machine.read(OpenBatches(MANY)) if kind == "continue"]
            if not open_runs:
                return
            for run in open_runs:
                self.machine.apply(ContinueBatch(now=now, run=run))
        raise AssertionError("a batch never ends")

    def _learn_backoffs(self, run: str) -> None:
        """The machine draws the jitter; it must lie in the allowed span, and the oracle goes on with it."""
        waiting = list(self.oracle.backoffs(run))
        if not waiting:
            return
        fields = {task["id"]: task for task in self.machine.read(ReadTasks(run, 0, MANY))}
        for task in waiting:
            assert task.due is not None
            earliest, latest = task.due
            due_at = int(fields[task.id].get("due_at") or 0)
            assert earliest <= due_at <= latest, self.told(f"{task.id}: due at {due_at}, allowed {task.due}")
            task.due = (due_at, due_at)

    def _check_reply(self, command: Command, answer: Answer) -> None:
        """One reply for an answered command, none for a repeated or waiting one."""
        raw: Any = self.redis.lrange(command.reply_to, 0, -1)
        self.redis.delete(command.reply_to)
        if answer.status in ("repeated", "waiting"):
            return
        assert len(raw) == 1, self.told(f"answered {len(raw)} times")
        reply = json.loads(raw[0])
        assert reply["request"] == command.request
        if isinstance(command, GrantLease) and answer.status == "applied":
            assert (reply["kind"], reply["lease"], reply["attempt"]) == (
                "grant",
                command.lease,
                command.attempt,
            )
        else:
            assert (reply["status"], reply["word"]) == (str(answer.status), str(answer.word))


class History:
    """Follows a run's events: versions rise by exactly one, and replaying the moves gives the states (I6, I7)."""

    def __init__(self) -> None:
        self.seq = 0
        self.version = 0
        self.states: dict[str, str] = {}
        self.verdicts: dict[str, int] = {}
        self.recent: list[dict[str, str]] = []
        """What the last command left."""

    def follow(self, events: list[dict[str, str]]) -> None:
        """Takes the next events."""
        self.recent = events
        for event in events:
            seq, version, kind = int(event["seq"]), int(event["state_version"]), event["kind"]
            assert seq > self.seq, f"seq {seq} after {self.seq}"
            self.seq = seq
            if event["from"] != event["to"] and not kind.startswith("run_"):
                was = self.states.get(event["task_id"], "pending")
                assert event["from"] == was, f"{event} but the task was {was}"
                assert version == self.version + 1, f"{event} after version {self.version}"
                self.states[event["task_id"]] = event["to"]
            assert version in (self.version, self.version + 1), f"{event} after version {self.version}"
            self.version = version
            if kind in (Verdict.LATE, Verdict.DUPLICATE, Verdict.CONFLICT):
                self.verdicts[kind] = self.verdicts.get(kind, 0) + 1

    def check(self, version: int, tasks: list[dict[str, str]]) -> None:
        assert self.version == version, f"the history ends at {self.version}, the run is at {version}"
        for task in tasks:
            stored = task.get("was") or task["state"]
            assert self.states.get(task["id"], "pending") == stored, (
                f"{task['id']} is {stored}, history differs"
            )


def _task_view(task: dict[str, str]) -> dict[str, Any]:
    return {
        "state": task["state"],
        "attempt": int(task.get("attempt") or 0),
        "granted": int(task.get("granted") or 0),
        "digest": task.get("digest", ""),
        "result_trust": task.get("result_trust", ""),
        "tainted": task.get("tainted", "") in ("1", "true"),
        "outcome": task.get("outcome", ""),
    }


def _short(command: Command) -> str:
    """A command in one line, without fields that say nothing."""
    values = {name: getattr(command, name) for name in ("now", *command.own_fields())}
    if values.get("digest"):
        values["digest"] = values["digest"][-6:]
    if "items" in values:
        values |= {"items": _short_items(values["items"]), "digest": "", "team": "", "inputs": ""}
    told = [
        f"{name}={str(value)[:2000]}" for name, value in values.items() if value not in ("", 0, "[]", "{}")
    ]
    return f"{type(command).__name__} {' '.join(told)}"


def _short_items(items: str) -> str:
    """A plan's items without what is as usual."""
    lines = []
    for kind, *rest in json.loads(items):
        if kind == "task":
            said = [
                f"{k}={v}" for k, v in rest[0].items() if v != DEFAULTS.get(k) and v not in ("", 0, "work")
            ]
            lines.append(" ".join(said))
        else:
            lines.append(" ".join(rest))
    return "".join(f"\n      {line}" for line in lines)


def _words(text: str) -> list[str]:
    """The reasons of a stored list, each a word or an object with one."""
    return [each if isinstance(each, str) else str(each["reason"]) for each in json.loads(text or "[]")]
