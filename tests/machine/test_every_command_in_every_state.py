"""Every command at a task in every state: legal, its events rows of the table; or refused, and nothing changed.

"Nothing" leaves out what records the refusal: the event, the log entry, counters, the ledgers; the inbox entry is gone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from coordinator.machine.commands import (
    AnswerTask,
    CancelTask,
    CollectTask,
    Command,
    DecideAction,
    DecideReview,
    Dispatch,
    DispatchTask,
    DoubtAction,
    EndAction,
    EndAttempt,
    FireTimer,
    GrantLease,
    HandBack,
    LoseQueued,
    RecordArtifact,
    RenewLease,
    ReportExternal,
    SendResults,
    SpawnTasks,
    StartAction,
    TakeLead,
    UseBudget,
)
from coordinator.machine.machine import Machine, Reply
from coordinator.machine.reads import ReadEvents, ReadRun, ReadTask
from coordinator.machine.transitions import TABLE
from coordinator.wire.names import ReplyStatus, TaskState
from tests.support.builders import ROLE, Spec, digest, plan, submit, task, text

RUN = "r1"
NOW = 1_000
INBOX = f"crewline:inbox:role:{ROLE}"
ROWS = {(source.value, row.target.value, row.event) for row in TABLE for source in row.sources}
RECORDS = ("history", "commands", "metrics", "late", "conflicts", "payloads", "keys", "reviews")
"""Kinds of keys in which a refusal may leave its record."""


class Bench:
    """A machine with one run, in which `t` stands in the wanted state and `other` keeps the run going."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.machine = Machine(redis)
        self.machine.load()
        self.machine.epoch = int(self.machine.apply(TakeLead(now=1, holder="test", ttl_ms=600_000)).data)

    def start(self, *tasks: Spec, **header: Any) -> None:
        other = task("other", external=1, required=1)
        for command in submit(
            plan(*tasks, other, on_required_failure="drain", on_completion="drain", **header), RUN, now=NOW
        ):
            assert self.machine.apply(command).status == ReplyStatus.APPLIED
        self.machine.apply(Dispatch(now=NOW, limit=100))

    def grant(self, name: str = "t") -> None:
        attempt = int(self.machine.read(ReadTask(RUN, name))["attempt"])
        reply = self.machine.apply(
            GrantLease(now=NOW, run=RUN, task=name, attempt=attempt, role=ROLE, worker="w", lease=f"L-{name}")
        )
        assert reply.status == ReplyStatus.APPLIED, reply

    def end(self, outcome: str, name: str = "t", payload: Any = 1) -> Reply:
        return self.machine.apply(end(outcome, name, payload))


def end(outcome: str, name: str = "t", payload: Any = 1) -> EndAttempt:
    success = outcome in ("succeeded", "missing_input")
    return EndAttempt(
        now=NOW, run=RUN, task=name, attempt=1, role=ROLE, worker="w", lease=f"L-{name}", outcome=outcome,
        payload=text(payload) if success else "", digest=digest(payload) if success else "", facts="[]",
        error="" if success else text({"class": outcome}), retry_after_ms=0, tokens=0, cost_micros=0,
    )  # fmt: skip


def pending(bench: Bench) -> None:
    bench.start(task("a", external=1), task("t", required=0, requires=["a"]))


def queued(bench: Bench) -> None:
    bench.start(task("t", required=0, max_attempts=2))


def running(bench: Bench) -> None:
    queued(bench)
    bench.grant()


def awaiting(bench: Bench) -> None:
    running(bench)
    bench.end("missing_input")


def succeeded(bench: Bench) -> None:
    running(bench)
    bench.end("succeeded")


def failed(bench: Bench) -> None:
    running(bench)
    bench.end("permanent")


def denied(bench: Bench) -> None:
    bench.start(task("t", required=0, capability="forbidden"))


def blocked(bench: Bench) -> None:
    bench.start(task("a", required=0, capability="forbidden"), task("t", required=0, requires=["a"]))


def skipped(bench: Bench) -> None:
    bench.start(task("t", required=0, when=["const", 0]))


def canceled(bench: Bench) -> None:
    """A child whose parent failed because min_success is out of reach."""
    bench.start(task("p", required=0, for_each=1))
    child = {**task("x"), "requires": 0, "after": 0, "any_total": 0, "parent": "p"}
    children = [{**child, "id": name} for name in ("bad", "t")]
    for spec in children:
        del spec["any_of"]
    bench.machine.apply(
        SpawnTasks(now=NOW, run=RUN, task="p", cursor=0, children=json.dumps(children), more=0)
    )
    bench.machine.apply(Dispatch(now=NOW, limit=100))
    bench.grant("bad")
    bench.end("permanent", "bad")
    bench.machine.apply(Dispatch(now=NOW, limit=100))
    bench.machine.apply(
        CollectTask(
            now=NOW, run=RUN, task="p", outcome="permanent", payload="", digest="", facts="[]", error=""
        )
    )


def needs_review(bench: Bench) -> None:
    succeeded(bench)
    bench.end("succeeded", payload=2)


REACH: dict[str, Callable[[Bench], None]] = {state.value: globals()[state.value] for state in TaskState}


def external(state: str, payload: Any = 1) -> ReportExternal:
    return ReportExternal(
        now=NOW, run=RUN, task="t", state=state, key="", payload=text(payload), digest=digest(payload),
        facts="[]", error="", source="someone", tokens=0, cost_micros=0,
    )  # fmt: skip


def decide(decision: str) -> DecideReview:
    """Names the review that a conflict of `t` opens, and the version at which it was opened."""
    return DecideReview(
        now=NOW, run=RUN, review="t.1", decision=decision, payload=text(1), digest=digest(1), facts="[]", version=6,
        tainted="keep", reason="looked", source="op",
    )  # fmt: skip


WORKER = {"run": RUN, "task": "t", "attempt": 1, "role": ROLE}
COMMANDS: dict[str, tuple[Callable[[], Command], set[str]]] = {
    "dispatch_task": (lambda: DispatchTask(now=NOW, run=RUN, task="t"), set()),
    "grant_lease": (lambda: GrantLease(now=NOW, **WORKER, worker="v", lease="L2"), {"queued"}),
    "renew_lease": (lambda: RenewLease(now=NOW, **WORKER, lease="L-t", progress=1, details=""), {"running"}),
    "use_budget": (lambda: UseBudget(now=NOW, **WORKER, lease="L-t", tokens=1, cost_micros=1), {"running"}),
    "send_results": (lambda: SendResults(now=NOW, **WORKER, lease="L-t", page=0), {"running"}),
    "end: succeeded": (lambda: end("succeeded"), {"running"}),
    "end: other payload": (lambda: end("succeeded", payload=3), {"running", "succeeded", "needs_review"}),
    "end: transient": (lambda: end("transient"), {"running"}),
    "end: invalid_output": (lambda: end("invalid_output"), {"running"}),
    "end: permission": (lambda: end("permission"), {"running"}),
    "end: permanent": (lambda: end("permanent"), {"running"}),
    "end: missing_input": (lambda: end("missing_input"), {"running"}),
    "end: unknown class": (lambda: end("gremlins"), {"running"}),
    "hand_back granted": (lambda: HandBack(now=NOW, **WORKER, worker="w", lease="L-t", reason="draining"), {"running"}),
    "hand_back queued": (lambda: HandBack(now=NOW, **WORKER, worker="w", lease="", reason="draining"), {"queued"}),
    "lose_queued": (lambda: LoseQueued(now=NOW, run=RUN, task="t", attempt=1), {"queued"}),
    "cancel_task": (
        lambda: CancelTask(now=NOW, run=RUN, task="t", ask="", reason="enough", source="op"),
        {"pending", "queued", "running", "awaiting"},
    ),
    "answer_task": (
        lambda: AnswerTask(now=NOW, run=RUN, task="t", question="", payload="1", digest="d", source="op"),
        {"awaiting"},
    ),
    "review: accept": (lambda: decide("accept"), {"needs_review"}),
    "review: supply": (lambda: decide("supply"), {"needs_review"}),
    "review: reject": (lambda: decide("reject"), {"needs_review"}),
    "review: rerun": (lambda: decide("rerun"), {"needs_review"}),
    "start_action": (
        lambda: StartAction(now=NOW, **WORKER, worker="w", lease="L-t", key="k", payload="", digest="", again=0),
        {"running"},
    ),
    "end_action": (
        lambda: EndAction(
            now=NOW, **WORKER, worker="w", lease="L-t", key="k", state="confirmed", payload="1", digest="d"
        ),
        set(),
    ),
    "doubt_action": (
        lambda: DoubtAction(now=NOW, **WORKER, worker="w", lease="L-t", key="k", tokens=0, cost_micros=0),
        set(),
    ),
    "record_artifact": (
        lambda: RecordArtifact(
            now=NOW, **WORKER, worker="w", lease="L-t", artifact="x", digest="sha256:1", size=1, url="file:///x"
        ),
        {"running"},
    ),
    "decide_action": (
        lambda: DecideAction(
            now=NOW, run=RUN, task="t", key="k", state="failed", payload="", digest="", reason="r", source="op"
        ),
        set(),
    ),
    "report: working": (lambda: external("working"), set()),
    "report: completed": (lambda: external("completed"), set()),
    "report: failed": (lambda: external("failed"), set()),
    "spawn_tasks": (lambda: SpawnTasks(now=NOW, run=RUN, task="t", cursor=0, children="[]", more=0), set()),
    "collect_task": (
        lambda: CollectTask(
            now=NOW, run=RUN, task="t", outcome="succeeded", payload="[]", digest="d", facts="", error=""
        ),
        set(),
    ),
    "timer too early": (lambda: FireTimer(now=NOW, run=RUN, task="t"), set()),
    "timer after a day": (lambda: FireTimer(now=NOW + 86_400_000, run=RUN, task="t"), {"running"}),
}  # fmt: skip
"""What is sent, and the states of `t` in which it takes effect. `t` is no external task and no parent."""


def everything(redis: Redis) -> dict[bytes, Any]:
    """All keys but those that record refusals, with their content; the run's clock and sequence left out."""
    found: dict[bytes, Any] = {}
    for key in redis.keys("crewline:*"):
        if key.split(b":")[1].decode() in RECORDS or key.startswith(b"crewline:reply"):
            continue
        found[key] = redis.dump(key) if key.split(b":")[1] not in (b"run", b"task") else redis.hgetall(key)
        if key == f"crewline:run:{RUN}".encode():
            for name in (b"now", b"seq"):
                found[key].pop(name, None)
    return found


@pytest.mark.parametrize("state", REACH)
@pytest.mark.parametrize("name", COMMANDS)
def test_command_in_state(redis: Redis, name: str, state: str) -> None:
    bench = Bench(redis)
    REACH[state](bench)
    assert bench.machine.read(ReadTask(RUN, "t"))["state"] == state
    make, legal = COMMANDS[name]
    entry = redis.xadd(INBOX, {"v": "1"})
    before, seq = everything(redis), int(bench.machine.read(ReadRun(RUN))["seq"])
    version = int(bench.machine.read(ReadRun(RUN))["state_version"])
    before.pop(INBOX.encode())
    command = make()
    addressed = type(command)(
        **{field: getattr(command, field) for field in ("now", *command.own_fields())},
        inbox=INBOX,
        entry=entry.decode(),
        reply_to="crewline:reply:x",
        request="q",
    )
    reply = bench.machine.apply(addressed)
    assert redis.xlen(INBOX) == 0, "the entry was applied or refused, so it is gone"
    assert redis.llen("crewline:reply:x") == 1, "one reply"
    events = bench.machine.read(ReadEvents(RUN, seq, 100))
    moves = [
        (event["from"], event["to"], event["kind"]) for event in events if event["task_id"] and event["to"]
    ]
    moves = [move for move in moves if not move[2].startswith("run_")]
    assert set(moves) <= ROWS
    after_version = int(bench.machine.read(ReadRun(RUN))["state_version"])
    assert after_version - version == len([event for event in events if event["to"]])
    if state in legal:
        assert reply.status == ReplyStatus.APPLIED, reply
    else:
        assert reply.status == ReplyStatus.REFUSED and reply.word, reply
        redis.delete(INBOX)
        assert everything(redis) == before
        assert moves == []
        recorded = isinstance(command, SendResults | FireTimer)
        assert len(events) == (0 if recorded else 1), "a refusal leaves one record (I5)"
    assert bench.machine.apply(addressed).status == ReplyStatus.REPEATED, "the same entry again does nothing"
