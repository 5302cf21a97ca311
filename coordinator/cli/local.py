"""Owns a whole run on this machine: Redis, coordinator and workers as processes, from the submit to the
report.

Must not decide anything about the run, and must leave nothing behind, however it ends: processes, sockets
and, unless the run can be gone on with, Redis' data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from coordinator.cli.archive import Archive, Setting
from coordinator.cli.live import QUICKEST_LOOK, Progress, follow
from coordinator.cli.options import (
    ARTIFACTS_VARIABLE,
    DEFAULT,
    NAMESPACE_VARIABLE,
    REDIS_VARIABLE,
    Installation,
    open_installation,
)
from coordinator.cli.parts import Parts
from coordinator.cli.progress import RunFeed, RunView
from coordinator.cli.report import picture
from coordinator.embedded import EmbeddedRedis
from coordinator.machine.reads import ReadLeader, text
from coordinator.run_report import RunReport, build_report, remedies
from coordinator.run_report.fields import count
from coordinator.run_report.wording import clean
from coordinator.wire.connection import check_server, connect, guard
from coordinator.wire.errors import InputFault, Unreachable
from coordinator.wire.names import FINAL

START_SECONDS = 30.0
"""How long the coordinator may take until it leads."""

WORKER_ENDS = ("--die-with-parent", "--drain-timeout", "6", "--cancel-grace", "2")
"""How workers end: never after us, and well within the grace of `Parts.stop`."""

REMOVED_AT_ONCE = 500
"""Keys that one command removes when a namespace is cleaned up."""

Begin = Callable[[Installation], None]


@dataclass(slots=True)
class Place:
    """Where a run plays. url: what its parts, and the user, connect to. done: its data is not needed any
    more.
    """

    url: str
    installation: Installation
    done: bool = False


def play(setting: Setting, archive: Archive, begin: Begin, progress: Progress) -> RunReport:
    """Starts the parts, begins the run, follows it to its rest, ends the parts, and gives the report, kept
    already.

    begin: called once, when the parts were started. Raises Unreachable when a part dies, InputFault when the
    run was refused, KeyboardInterrupt when the user ends it; what can be gone on with is kept then.
    """
    archive.create()
    archive.keep_setting(setting)
    with open_place(setting, archive) as place:
        environment = {
            REDIS_VARIABLE: place.url,
            NAMESPACE_VARIABLE: setting.namespace,
            ARTIFACTS_VARIABLE: archive.artifacts,
        }
        parts = Parts(archive.logs, environment)
        try:
            start_parts(parts, setting)
            await_leader(place.installation, parts)
            begin(place.installation)
            watch(setting, place, parts, progress)
            parts.stop()
        except KeyboardInterrupt:
            progress.say("ending the workers and the coordinator (Ctrl-C again: at once)")
            parts.stop()
            keep_report(setting, archive, place)
            raise
        finally:
            parts.kill()
        report = keep_report(setting, archive, place)
        finish(report, setting, place)
    return report


@contextmanager
def open_place(setting: Setting, archive: Archive) -> Iterator[Place]:
    """The Redis of the setting, or an embedded one whose data lies in the archive as long as it is needed."""
    if setting.redis:
        redis = connect(setting.redis)
        with guard(redis):
            check_server(redis)
        redis.close()
        with archive.at(setting.redis):
            yield Place(setting.redis, open_installation(setting.redis, setting.namespace))
        return
    with EmbeddedRedis(persist_dir=archive.redis) as server, archive.at(server.url):
        place = Place(server.url, open_installation(server.url, setting.namespace))
        yield place
    if place.done:
        archive.drop_redis()


def start_parts(parts: Parts, setting: Setting) -> None:
    """The coordinator, and one group of workers for each role that has work here."""
    parts.start("coordinator", ["coordinator"])
    for role in setting.roles:
        worker = ["worker", "--role", role, "--mode", setting.mode, "-c", str(setting.concurrency)]
        parts.start(f"worker-{role}", [*worker, "--handlers", setting.handlers, *WORKER_ENDS])


def await_leader(place: Installation, parts: Parts) -> None:
    """Waits until the coordinator leads. Raises Unreachable when it ends instead, or does not come up."""
    end = time.monotonic() + START_SECONDS
    while not is_led(place):
        parts.check()
        if time.monotonic() > end:
            raise Unreachable(f"the coordinator did not begin within {START_SECONDS:g} s")
        time.sleep(QUICKEST_LOOK)


def is_led(place: Installation) -> bool:
    """Whether a coordinator leads now, by Redis' own clock."""
    seconds, micros = place.redis.time()
    return count(place.machine.read(ReadLeader()), "until") > seconds * 1000 + micros // 1000


def watch(setting: Setting, place: Place, parts: Parts, progress: Progress) -> None:
    """Shows the run until it rests. A run that was parked before is followed until a person has moved it."""
    feed = RunFeed(place.installation.machine, setting.run)
    hinted: set[str] = set()

    def check(view: RunView) -> None:
        parts.check()
        for row in view.external.values():
            if row.state == "queued" and row.name not in hinted:
                hinted.add(row.name)
                where = f"--redis {place.url}"
                if setting.namespace != DEFAULT:
                    where += f" --namespace {setting.namespace}"
                command = f"crewline report-task {setting.run} {clean(row.name)} completed {where}"
                progress.say(f"{clean(row.name)} waits for its outside system: {command}")

    progress.show(feed.view, feed.look())
    if not feed.view.run:
        raise InputFault(f"{setting.run}: it was ended before it was submitted; run {setting.team} again")
    parked_by = -1
    if feed.view.is_at_rest and not has_ended(feed.view.run):
        parked_by = count(feed.view.run, "stop_seq")
        progress.say(
            f"the run is {feed.view.status} until a person moves it, from this folder in another terminal:"
        )
        for command in remedies(build_report(picture(place.installation, setting.run))):
            progress.say(f"  {command}")
        progress.say("Ctrl-C keeps the run")
    follow(feed, progress, check, parked_by)


def keep_report(setting: Setting, archive: Archive, place: Place) -> RunReport:
    """Makes the report of what is known now and keeps it in the archive."""
    report = build_report(picture(place.installation, setting.run))
    archive.keep_report(report)
    return report


def finish(report: RunReport, setting: Setting, place: Place) -> None:
    """Lets go of the data of a run that has ended: everything worth keeping stands in its report."""
    place.done = has_ended(report)
    if place.done and setting.redis:
        remove_namespace(place.installation)


def command_to_go_on(archive: Archive) -> str:
    """What to type to go on with a run."""
    return f"crewline run --continue {archive.path}"


def has_ended(report: Mapping[str, Any]) -> bool:
    """Whether nothing can move the run any more."""
    return report["status"] in {str(status) for status in FINAL}


def remove_namespace(place: Installation) -> None:
    """Takes everything of an ended run's own namespace off a Redis that was only borrowed."""
    redis, queues = place.redis, f"{place.namespace}:"
    with guard(redis):
        for pattern in (f"{queues}*", f"rq:*:{queues}*"):
            keys = list(redis.scan_iter(match=pattern, count=REMOVED_AT_ONCE))
            for start in range(0, len(keys), REMOVED_AT_ONCE):
                redis.unlink(*keys[start : start + REMOVED_AT_ONCE])
        # What RQ keeps for all of its queues together: their names, and the records of workers that have ended.
        for name in redis.smembers("rq:queues"):
            if text(name).startswith(f"rq:queue:{queues}"):
                redis.srem("rq:queues", name)
        for key in redis.scan_iter(match="rq:worker:*", count=REMOVED_AT_ONCE):
            if text(redis.hget(key, "queues") or "").startswith(queues):
                redis.unlink(key)
