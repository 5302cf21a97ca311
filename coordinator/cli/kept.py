"""Owns finding the installation that a person's command is meant for: the one that was named, a local run that plays
in another terminal, or the kept data of one that parked.

Kept data is served for the time of the command, with a coordinator that applies what is said and no workers: so
`answer`, `review`, `actions` and `resume` work on a parked `crewline run` as they do on an installation, and `run
--continue` goes on from there. Must not decide what a command says.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redis.exceptions import RedisError

from coordinator.cli.archive import HOME, Archive, Setting, find_archive
from coordinator.cli.debug import Helper, logs_to
from coordinator.cli.local import (
    START_SECONDS,
    command_to_go_on,
    finish,
    has_ended,
    is_led,
    keep_report,
    open_place,
)
from coordinator.cli.options import REDIS_VARIABLE, Installation, address_of, open_installation
from coordinator.cli.output import say
from coordinator.runtime.service import Service, Settings
from coordinator.wire.connection import connect
from coordinator.wire.errors import InputFault, Unreachable


@dataclass(frozen=True, slots=True)
class Target:
    """A run, and where it is."""

    place: Installation
    run: str


@contextmanager
def open_run(run: str, redis: str | None, namespace: str, *, reads: bool = False) -> Iterator[Target]:
    """Finds a run by its id, a prefix of it, or - for the latest: in the Redis that is named, else in `.crewline`.

    reads: nothing is to be applied, so no coordinator is needed. Raises InputFault when there is none, Unreachable.
    """
    if redis or os.environ.get(REDIS_VARIABLE):
        place = open_installation(address_of(redis), namespace)
        yield Target(place, place.find(run))
        return
    archive, setting = _kept(run)
    live = _live(archive, setting)
    if live is not None:
        yield Target(live, setting.run)
        return
    if reads:
        with open_place(setting, archive) as kept:
            yield Target(kept.installation, setting.run)
        return
    with _served(archive, setting) as place:
        yield Target(place, setting.run)


def _kept(run: str) -> tuple[Archive, Setting]:
    try:
        archive = find_archive(run)
        setting = archive.setting()
    except InputFault as fault:
        raise InputFault(
            [
                f"which Redis? Give --redis URL, or set {REDIS_VARIABLE}; in {HOME} there is none:",
                *fault.faults,
            ]
        ) from None
    if not setting.redis and not archive.redis.exists():
        raise InputFault(f"{setting.run} has ended; all that is left of it is its report: {archive.report}")
    return archive, setting


def _live(archive: Archive, setting: Setting) -> Installation | None:
    """The place of a run that plays now; None when it plays no more at the address that it had."""
    if not (url := archive.address()):
        return None
    redis = connect(url)
    try:
        redis.ping()
    except RedisError:
        return None
    finally:
        redis.close()
    place = open_installation(url, setting.namespace)
    # A private Redis ends with its run, also a killed one; a borrowed one tells nothing.
    return place if not setting.redis or is_led(place) else None


@contextmanager
def _served(archive: Archive, setting: Setting) -> Iterator[Installation]:
    """Serves what was kept, with a coordinator; keeps the report anew and says how to go on."""
    with logs_to(archive), open_place(setting, archive) as place:
        service = Service(place.url, Settings(namespace=setting.namespace, idle_ms=100))
        leads = threading.Event()
        coordinator = Helper("coordinator", lambda: service.run(signals=False, ready=leads.set), leads.set)
        coordinator.start()
        try:
            if not leads.wait(START_SECONDS) or coordinator.error:
                raise coordinator.error or Unreachable("another coordinator leads, and does not end")
            yield place.installation
        finally:
            service.stop()
            coordinator.join()
        report = keep_report(setting, archive, place)
        finish(report, setting, place)
    if has_ended(report):
        say(f"the run is {report['status']}; report: {archive.path / 'report.md'}")
    else:
        say(f"go on with: {command_to_go_on(archive)}")
