"""Owns the live history of a run: Server-Sent Events that can be resumed after any of them.

An event's id is its sequence number in the run, so that a browser that was cut off goes on by itself. Must not hold
a thread while nothing happens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from coordinator.api.place import Place
from coordinator.machine.reads import ReadEvents, ReadRun
from coordinator.run_report.build import event_entry
from coordinator.wire.digest import canonical
from coordinator.wire.errors import InputFault, Unreachable
from coordinator.wire.names import FINAL

MEDIA_TYPE = "text/event-stream"
PAGE = 500
QUICKEST_LOOK = 0.1
SLOWEST_LOOK = 1.0
"""Seconds between two looks at a run: soon after something happened, and when nothing does."""
KEEP_ALIVE_SECONDS = 15.0
RETRY_MS = 2_000
LONGEST_ID = 16


async def event_stream(place: Place, run: str, last_id: str | None, after: int, seconds: float) -> Response:
    """The events after one of them, as they happen, until the run has ended or `seconds` have passed.

    last_id: Last-Event-ID of a client that comes back; 204 tells it that nothing more will come. Raises NotFound,
    InputFault, Unreachable.
    """
    if last_id:
        if not (last_id.isascii() and last_id.isdecimal() and len(last_id) <= LONGEST_ID):
            raise InputFault("Last-Event-ID: expected the id of an event")
        after = int(last_id)
    record = await run_in_threadpool(place.run, run)
    if last_id and record["status"] in FINAL and after >= int(record["seq"]):
        return Response(status_code=204)
    return StreamingResponse(
        _messages(place, run, after, time.monotonic() + seconds),
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _messages(place: Place, run: str, after: int, until: float) -> AsyncIterator[str]:
    """`retry` first; each event under its id; `end` with the status when the run has ended."""
    yield f"retry: {RETRY_MS}\n\n"
    pause, spoken = QUICKEST_LOOK, time.monotonic()
    while True:
        try:
            queries = [ReadRun(run=run), ReadEvents(run=run, after=after, limit=PAGE)]
            record, events = await run_in_threadpool(place.read_many, queries)
        except Unreachable:
            return  # the client comes back by itself
        for event in events:
            yield f"id: {event['seq']}\ndata: {canonical(event_entry(event))}\n\n"
        if events:
            after, pause, spoken = int(events[-1]["seq"]), QUICKEST_LOOK, time.monotonic()
        if len(events) == PAGE:
            continue
        if not record or (record["status"] in FINAL and after >= int(record["seq"])):
            yield f"event: end\ndata: {canonical({'status': record.get('status', '')})}\n\n"
            return
        left = until - time.monotonic()
        if left <= 0:
            return
        if time.monotonic() - spoken > KEEP_ALIVE_SECONDS:
            spoken = time.monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(min(pause, max(left, 0.01)))
        pause = min(pause * 1.3, SLOWEST_LOOK)
