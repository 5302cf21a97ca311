"""Owns `crewline run --debug`: coordinator and worker in this process, so that a breakpoint in a handler
works.

The worker runs inline in the main thread, where a debugger expects it; the coordinator and the progress have
threads of their own and go on while the handler stands still. Progress is plain lines: a table would draw
over the debugger.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from coordinator.cli.archive import Archive, Setting
from coordinator.cli.live import Progress, follow
from coordinator.cli.local import Begin, Place, finish, keep_report, open_place
from coordinator.cli.progress import RunFeed
from coordinator.run_report import RunReport
from coordinator.runtime.service import Service, Settings
from coordinator.wire.connection import connect


class Helper(threading.Thread):
    """A thread whose end, good or bad, is told once: by an error that is raised again, and by a call."""

    def __init__(self, name: str, work: Callable[[], None], at_end: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self.error: BaseException | None = None
        self._work = work
        self._at_end = at_end

    def run(self) -> None:
        """Works, keeps what was raised, tells."""
        try:
            self._work()
        except BaseException as error:
            self.error = error
        finally:
            self._at_end()


def play_debug(setting: Setting, archive: Archive, begin: Begin, progress: Progress) -> RunReport:
    """Like `local.play`, in one process. Raises what the coordinator or the following raised,
    KeyboardInterrupt too.
    """
    archive.create()
    archive.keep_setting(setting)
    with open_place(setting, archive) as place, logs_to(archive):
        service = Service(place.url, Settings(namespace=setting.namespace))
        leads = threading.Event()
        coordinator = Helper("coordinator", lambda: service.run(signals=False, ready=leads.set), leads.set)
        rested = threading.Event()

        def show() -> None:
            follow(RunFeed(place.installation.machine, setting.run), progress)
            rested.set()

        coordinator.start()
        follower = Helper("progress", show, _stop_worker)
        try:
            leads.wait()
            if coordinator.error:
                raise coordinator.error
            begin(place.installation)
            follower.start()
            _work(setting, place, archive)
        finally:
            service.stop()
            coordinator.join()
        for helper in (coordinator, follower):
            if helper.error:
                raise helper.error
        report = keep_report(setting, archive, place)
        if not rested.is_set():
            raise KeyboardInterrupt
        finish(report, setting, place)
    return report


def _work(setting: Setting, place: Place, archive: Archive) -> None:
    """One inline worker for all roles, in this thread, until the follower or Ctrl-C ends it."""
    from workers.handlers import load_handlers
    from workers.worker import WorkerOptions, serve

    handlers = load_handlers(setting.handlers) if setting.handlers else {}
    options = WorkerOptions(
        roles=setting.roles,
        namespace=setting.namespace,
        mode="inline",
        prefetch=1,
        artifacts=archive.artifacts,
    )
    serve(connect(place.url), handlers, options)


def _stop_worker() -> None:
    """The worker ends as it does for any SIGTERM: it takes nothing new and reports what it has."""
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def logs_to(archive: Archive) -> Iterator[None]:
    """What the parts log goes to the run's folder, not between the lines of the debugger."""
    with (archive.logs / "debug.log").open("a") as file:
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(file))
        try:
            yield
        finally:
            structlog.reset_defaults()
