"""Owns where async handlers run in inline mode: one event loop in a thread, and a thread that reports their ends.

Must not know attempts: it runs what it is given and sends the reports that it gets.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable

from workers.link import Report


class AsyncLane:
    """One event loop in a thread, and a thread that reports the ends of what ran in it."""

    def __init__(self, send: Callable[[list[Report]], None]) -> None:
        self._send = send
        self._loop = asyncio.new_event_loop()
        self._ends: queue.SimpleQueue[Report | None] = queue.SimpleQueue()
        self._sending: list[Report] = []
        self._threads = [
            threading.Thread(target=self._loop.run_forever, name="crewline-loop", daemon=True),
            threading.Thread(target=self._report, name="crewline-reporter", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def call(self, act: Callable[[], object]) -> None:
        """Calls something in the loop, soon; does not wait."""
        self._loop.call_soon_threadsafe(act)

    def report(self, end: Report) -> None:
        """Has an end reported, soon and with others."""
        self._ends.put(end)

    def unreported(self) -> list[Report]:
        """Ends that nobody has reported yet, for a process that must end at once."""
        left = list(self._sending)
        while not self._ends.empty():
            end = self._ends.get_nowait()
            if end is not None:
                left.append(end)
        return left

    def close(self) -> None:
        """Reports what is left, and ends both threads."""
        self._ends.put(None)
        self._threads[1].join()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._threads[0].join(timeout=5)
        if not self._loop.is_running():
            self._loop.close()

    def _report(self) -> None:
        while True:
            end = self._ends.get()
            ends: list[Report | None] = [end]
            while not self._ends.empty():
                ends.append(self._ends.get_nowait())
            self._sending = [item for item in ends if item is not None]
            if self._sending:
                self._send(self._sending)
            self._sending = []
            if None in ends:
                return
