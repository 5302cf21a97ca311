"""Handlers for worker tests; each does one thing that a handler can do."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict

from pydantic import BaseModel

from workers import Context, InvalidOutput, MissingInput, Permanent, PermissionDenied, Transient, handler


class Query(BaseModel):
    id: int


class Order(TypedDict):
    id: int
    total: str


@handler("echo")
def echo(context: Context) -> Any:
    return {
        "input": context.input,
        "task": context.task,
        "results": context.results,
        "states": context.states,
    }


@handler("typed")
def typed(context: Context, input: Query) -> Order:
    return {"id": input.id, "total": "9.99"}


@handler("async_echo")
async def async_echo(context: Context) -> Any:
    await asyncio.sleep(0)
    return {"task": context.task}


FAILURES: dict[str, BaseException] = {
    "transient": Transient("busy", retry_after=1.5),
    "missing": MissingInput({"ask": "which order?"}),
    "permission": PermissionDenied("not yours"),
    "permanent": Permanent("never"),
    "invalid": InvalidOutput("nonsense"),
    "system_exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
}
RESULTS: dict[str, Any] = {
    "nothing": None,
    "no_json": {"a": object()},
    "nan": float("nan"),
    "too_large": "x" * 2_000_000,
}


@handler("fail")
def fail(context: Context, input: dict[str, Any]) -> Any:
    kind = input["kind"]
    if kind in FAILURES:
        raise FAILURES[kind]
    if kind == "huge":
        raise ValueError("x" * 50_000_000)
    if kind == "exit":
        os._exit(0)
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return RESULTS[kind]


@handler("until_canceled")
def until_canceled(context: Context, input: dict[str, str]) -> Any:
    """Works until it sees the cancel; then says so in a file, and stops or goes on."""
    _say(input, "began")
    while not context.canceled:
        time.sleep(0.01)
    _say(input, "canceled")
    return {"canceled": True}


@handler("until_draining")
def until_draining(context: Context, input: dict[str, str]) -> Any:
    _say(input, "began")
    while not context.draining:
        time.sleep(0.01)
    return {"drained": True}


@handler("async_until_canceled")
async def async_until_canceled(context: Context, input: dict[str, str]) -> Any:
    _say(input, "began")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        _say(input, "canceled")
        raise
    return {}


@handler("until_file")
def until_file(context: Context, input: dict[str, str]) -> Any:
    _say(input, "began")
    while not Path(input["go"]).exists():
        time.sleep(0.01)
    _say(input, "ended")
    return {}


class Together:
    running = 0
    most = 0
    enough = asyncio.Event()


@handler("async_together")
async def async_together(context: Context, input: dict[str, int]) -> Any:
    """Waits until as many run at the same time as the input says."""
    Together.running += 1
    Together.most = max(Together.most, Together.running)
    if Together.most >= input["count"]:
        Together.enough.set()
    await asyncio.wait_for(Together.enough.wait(), 5)
    await asyncio.sleep(0.05)
    Together.running -= 1
    return {"most": Together.most}


@handler("stubborn")
def stubborn(context: Context, input: dict[str, str]) -> Any:
    """Never looks at anything; says so in a file when it is stopped in an orderly way."""
    _say(input, "began")
    try:
        threading.Event().wait(60)
    finally:
        _say(input, "finally")
    return {}


@handler("slow")
def slow(context: Context, input: dict[str, float]) -> Any:
    time.sleep(input["seconds"])
    return {}


@handler("spend")
def spend(context: Context) -> Any:
    first = context.use(tokens=100, cost="0.25")
    second = context.use(tokens=200, cost=Decimal("0.000001"))
    return {
        "first": first.over_budget,
        "second": second.over_budget,
        "tokens": second.tokens,
        "cost": str(second.cost),
    }


@handler("beats")
def beats(context: Context, input: dict[str, float]) -> Any:
    ends = time.monotonic() + input["seconds"]
    while time.monotonic() < ends:
        context.heartbeat({"left": round(ends - time.monotonic(), 2)})
        time.sleep(0.02)
    return {}


def _say(input: dict[str, str], word: str) -> None:
    with Path(input["file"]).open("a") as file:
        file.write(f"{word} {os.getpid()}\n")
