"""Owns the look at a whole installation for `doctor` and `health`: what stands, and what of it is wrong.

Reads only, in bounded portions; needs no coordinator. Must not repair, and must not print.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from coordinator.machine import keys
from coordinator.machine.machine import Machine
from coordinator.machine.reads import DueTimers, ListRoles, ListRuns, OpenBatches, ReadLeader, ReadRun
from coordinator.runtime.outbox import workers_of
from coordinator.wire import channels
from coordinator.wire.connection import address, guard, server_faults
from coordinator.wire.names import RunStatus

ALIVE_MS = 95_000
"""A worker says that it lives every 30 s; after three misses it is taken for dead."""
STUCK_MS = 60_000
"""What has been due for so long is not merely late."""
LATE_MS = 10_000
"""An inbox entry that has lain so long is not being read."""
SKEW_MS = 2_000
MOST_RUNS = 1_000
"""Runs, newest first, that are looked at for stuck ones."""
NEWEST = 5

OK, WARNING, FAULT = "ok", "warning", "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. level: ok, warning or fault; about: redis, leader, roles, runs, inbox, ..."""

    level: str
    about: str
    text: str


@dataclass(slots=True)
class Inspection:
    """What was found. facts: numbers and names by subject, for programs; findings: the same, judged, for people."""

    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def say(self, level: str, about: str, text: str) -> None:
        """Adds a finding."""
        self.findings.append(Finding(level, about, text))


def inspect(redis: Redis, namespace: str) -> Inspection:
    """Looks at everything. Raises Unreachable."""
    found = Inspection()
    with guard(redis):
        now = _look_at_redis(redis, found)
        machine = Machine(redis, namespace)
        if not _has_library(machine):
            found.say(
                FAULT,
                "machine",
                f"the library {machine.library.hash} is not loaded: no coordinator of this version has run",
            )
            return found
        found.say(OK, "machine", f"library {machine.library.hash}")
        _look_at_leader(machine, now, found)
        roles = [role for role in machine.read(ListRoles()) if not role.startswith("~")]
        _look_at_inboxes(redis, namespace, roles, now, found)
        _look_at_roles(redis, namespace, roles, found)
        _look_at_runs(machine, now, found)
        _look_at_leftovers(redis, namespace, found)
    return found


def unhealthy(redis: Redis, namespace: str) -> str:
    """Why a process of this installation is not healthy, empty when it is: a script can be called, and somebody leads.
    Raises Unreachable."""
    with guard(redis):
        machine = Machine(redis, namespace)
        try:
            leader = machine.read(ReadLeader())
        except ResponseError as error:
            if "function not found" not in str(error).lower():
                raise
            return f"the library {machine.library.hash} is not loaded"
        now = _redis_now(redis)
    return "" if int(leader["until"]) > now else "no coordinator leads"


def living_workers(redis: Redis, namespace: str, role: str | None = None) -> list[str]:
    """Names of the workers of a role (None: of any) that said lately that they live. Raises Unreachable."""
    with guard(redis):
        now = _redis_now(redis)
        return [name for name, at in workers_of(redis, namespace, role).items() if now - at < ALIVE_MS]


def _redis_now(redis: Redis) -> int:
    seconds, micros = redis.time()
    return int(seconds) * 1000 + int(micros) // 1000


def _has_library(machine: Machine) -> bool:
    try:
        machine.read(ReadLeader())
    except ResponseError as error:
        if "function not found" not in str(error).lower():
            raise
        return False
    return True


def _look_at_redis(redis: Redis, found: Inspection) -> int:
    info: dict[str, Any] = {}
    for section in ("server", "memory", "persistence", "replication"):
        info.update(redis.info(section))
    now = _redis_now(redis)
    skew = now - time.time_ns() // 1_000_000
    version = info.get("valkey_version") or info["redis_version"]
    policy = info.get("maxmemory_policy", "noeviction")
    aof, saved = bool(info.get("aof_enabled")), info.get("rdb_last_bgsave_status", "ok")
    found.facts["redis"] = {
        "address": address(redis),
        "version": version,
        "maxmemory_policy": policy,
        "appendonly": aof,
        "last_save": saved,
        "role": info.get("role", ""),
        "used_memory": info.get("used_memory", 0),
        "maxmemory": info.get("maxmemory", 0),
        "clock_ahead_ms": skew,
    }
    faults = server_faults(info, address(redis))
    for fault in faults:
        found.say(FAULT, "redis", fault)
    if not faults:
        found.say(OK, "redis", f"{address(redis)}: version {version}, {policy}")
    if info.get("role") not in ("master", ""):
        found.say(FAULT, "redis", "this is a replica: nothing can be written here")
    if not aof:
        found.say(WARNING, "redis", "appendonly is off: a restart of Redis loses what was not saved")
    if saved != "ok" or info.get("aof_last_write_status", "ok") != "ok":
        found.say(FAULT, "redis", "the last save to disk failed")
    if abs(skew) > SKEW_MS:
        found.say(WARNING, "redis", f"its clock is {skew} ms ahead of this machine's")
    if info.get("maxmemory") and info["used_memory"] > 0.9 * info["maxmemory"]:
        found.say(WARNING, "redis", "more than nine tenths of maxmemory are used")
    return now


def _look_at_leader(machine: Machine, now: int, found: Inspection) -> None:
    leader = machine.read(ReadLeader())
    left = int(leader["until"]) - now
    found.facts["leader"] = {
        "holder": leader["holder"] if left > 0 else "",
        "epoch": int(leader["epoch"]),
        "ends_in_ms": max(left, 0),
    }
    if left > 0:
        found.say(OK, "leader", f"{leader['holder']} leads under epoch {leader['epoch']}")
    else:
        found.say(FAULT, "leader", "no coordinator leads: start one with `crewline coordinator`")


def _look_at_inboxes(redis: Redis, namespace: str, roles: list[str], now: int, found: Inspection) -> None:
    streams = {scope: channels.scope_inbox(namespace, scope) for scope in channels.SCOPES}
    streams |= {f"role:{role}": channels.inbox(namespace, role) for role in roles}
    facts = {}
    for name, stream in streams.items():
        first: Any = redis.xrange(stream, count=1)
        age = now - int(first[0][0].split(b"-")[0]) if first else 0
        facts[name] = {"entries": redis.xlen(stream), "oldest_ms": age}
        if age > LATE_MS:
            found.say(
                WARNING,
                "inbox",
                f"{name}: {facts[name]['entries']} entries, the oldest waits for {age // 1000} s",
            )
    found.facts["inboxes"] = facts
    total = sum(int(fact["entries"]) for fact in facts.values())
    if not any(finding.about == "inbox" for finding in found.findings):
        found.say(OK, "inbox", f"{total} entries wait")


def _look_at_roles(redis: Redis, namespace: str, roles: list[str], found: Inspection) -> None:
    facts = {}
    for role in roles:
        living = living_workers(redis, namespace, role)
        jobs = redis.llen(f"rq:queue:{channels.queue_name(namespace, role)}")
        dispatched = redis.zcard(f"{namespace}:queued:{role}")
        facts[role] = {"workers": living, "jobs": jobs, "dispatched": dispatched}
        if not living:
            waiting = f": {dispatched} attempts wait" if dispatched else ""
            found.say(WARNING, "roles", f"{role} has no worker{waiting}")
        else:
            found.say(
                OK, "roles", f"{role}: {len(living)} workers, {jobs} jobs, {dispatched} attempts not begun"
            )
    found.facts["roles"] = facts


def _look_at_runs(machine: Machine, now: int, found: Inspection) -> None:
    stuck: dict[str, str] = {}
    for run, task in machine.read(DueTimers(now=now - STUCK_MS, limit=MOST_RUNS)):
        stuck[run] = f"a timer of {task or 'the run'} has been due for more than a minute"
    for run, _, _ in machine.read(OpenBatches(limit=MOST_RUNS)):
        if now - _changed_at(machine, run) > STUCK_MS:
            stuck[run] = "an open batch has not moved for a minute"
    running = 0
    for run in _running(machine):
        running += 1
        record = machine.read(ReadRun(run=run))
        idle = int(record.get("ready") or 0) > 0 and int(record.get("in_flight") or 0) == 0
        if idle and now - int(record.get("now") or 0) > STUCK_MS:
            stuck.setdefault(run, "work is ready and nothing is in flight")
    found.facts["runs"] = {"running": running, "stuck": stuck}
    for run, why in sorted(stuck.items()):
        found.say(WARNING, "runs", f"{run} is stuck: {why}")
    if not stuck:
        found.say(OK, "runs", f"{running} running, none stuck")


def _changed_at(machine: Machine, run: str) -> int:
    return int(machine.read(ReadRun(run=run)).get("now") or 0)


def _running(machine: Machine) -> Iterator[str]:
    page = machine.read(ListRuns(offset=0, limit=MOST_RUNS))
    return (run["run"] for run in page if run["status"] == RunStatus.RUNNING)


def _look_at_leftovers(redis: Redis, namespace: str, found: Inspection) -> None:
    outbox = redis.llen(keys.outbox(namespace))
    found.facts["outbox"] = outbox
    found.say(OK, "outbox", f"{outbox} attempts are not yet jobs")
    ledger = f"{namespace}:ledger"
    newest: Any = redis.lrange(ledger, 0, NEWEST - 1)
    lines = [json.loads(line) for line in newest]
    reasons = [{name: line[name] for name in ("at", "inbox", "reason")} for line in lines]
    count = redis.llen(ledger)
    found.facts["ledger"] = {"entries": count, "newest": reasons}
    if reasons:
        newest_reason = reasons[0]["reason"][:200]
        found.say(WARNING, "ledger", f"{count} entries could not be applied; the newest: {newest_reason}")
