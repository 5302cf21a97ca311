"""What the workers of a chaos run do: each attempt writes down in a file that it began and how it ended, and where.

A line is appended by one write, so it is whole even when the process is killed right after. `crewline worker
--handlers` loads this file; the folder stands in the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from workers import Context, MissingInput, Permanent, PermissionDenied, Transient, handler

FOLDER = "CREWLINE_CHAOS_EFFECTS"
SLICE_S = 0.02


@handler("play")
def play(context: Context, input: dict[str, Any]) -> Any:
    """Does what its input says, in the worker's process or in a child of it."""
    note(context, "began")
    until = time.monotonic() + input.get("ms", 0) / 1000
    while time.monotonic() < until and (input.get("deaf") or not context.canceled):
        time.sleep(SLICE_S)
    return finish(context, input)


@handler("nap")
async def nap(context: Context, input: dict[str, Any]) -> Any:
    """The same, beside others in one loop."""
    note(context, "began")
    try:
        await asyncio.sleep(input.get("ms", 0) / 1000)
    except asyncio.CancelledError:
        note(context, "ended", "cancelled")
        raise
    return finish(context, input)


def finish(context: Context, input: dict[str, Any]) -> Any:
    """Uses what it is to use, and ends the way it is to end."""
    if input.get("tokens") or input.get("cost"):
        context.use(tokens=input.get("tokens", 0), cost=input.get("cost", 0))
    how = input.get("ends", "returned") if context.attempt > input.get("fails", 0) else "transient"
    note(context, "ended", how)
    failures: dict[str, BaseException] = {
        "transient": Transient("busy"),
        "permanent": Permanent("never"),
        "permission": PermissionDenied("not yours"),
        "missing": MissingInput({"ask": "which one?"}),
        "base": GeneratorExit("odd"),
    }
    if how in failures:
        raise failures[how]
    if how == "exit":
        os._exit(0)
    if "list" in input:
        return [{"n": number} for number in range(input["list"])]
    return (
        {"task": context.task} if input.get("fixed") else {"task": context.task, "attempt": context.attempt}
    )


def note(context: Context, what: str, how: str = "") -> None:
    """Appends one line to the run's file. pid and ppid: one of them is the worker that holds the lease."""
    line = {
        "what": what, "how": how, "run": context.run, "task": context.task, "attempt": context.attempt,
        "pid": os.getpid(), "ppid": os.getppid(), "at": time.time_ns() // 1_000_000,
    }  # fmt: skip
    path = Path(os.environ[FOLDER], f"{context.run}.jsonl")
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)
