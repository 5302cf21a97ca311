"""Handlers for tests of what outlives an attempt: side effects, children, artifacts."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from workers import (
    ActionUnknown,
    ChildFailed,
    Context,
    MissingInput,
    Permanent,
    SpawnRefused,
    Transient,
    handler,
)


class Effects:
    """Lines in a file: what was really done."""

    def __init__(self, context: Context) -> None:
        self.file = Path(context.input["dir"]) / context.task
        self.context = context

    def done(self) -> list[str]:
        return self.file.read_text().split() if self.file.exists() else []

    def do(self) -> dict[str, int]:
        with self.file.open("a") as file:
            file.write(f"{self.context.attempt}\n")
        return {"by": self.context.attempt}

    async def do_async(self) -> dict[str, int]:
        await asyncio.sleep(0)
        return self.do()

    def do_and_doubt(self) -> None:
        self.do()
        raise ActionUnknown("no answer")

    def find(self) -> dict[str, Any] | None:
        return {"found": self.done()} if self.done() else None


@handler("once")
def once(context: Context) -> Any:
    receipt = context.action("pay", Effects(context).do, details={"for": context.task})
    if context.attempt < 3:
        raise Transient("after it")
    return receipt


@handler("once_async")
async def once_async(context: Context) -> Any:
    effects = Effects(context)
    first = await context.action("pay", effects.do_async)
    second = await context.action("mail", effects.do)
    if context.attempt < 2:
        raise Transient("after it")
    return [first, second]


@handler("fails_first")
def fails_first(context: Context) -> Any:
    def do() -> int:
        if context.attempt == 1:
            raise Transient("nothing was done")
        return context.attempt

    return context.action("pay", do)


@handler("checked")
def checked(context: Context) -> Any:
    effects = Effects(context)
    return context.action("pay", effects.do_and_doubt, check=effects.find)


@handler("checked_not_done")
async def checked_not_done(context: Context) -> Any:
    effects = Effects(context)

    async def do() -> Any:
        if context.attempt == 1:
            raise ActionUnknown("it never got there")
        return effects.do()

    async def find() -> Any:
        return effects.find()

    return await context.action("pay", do, check=find)


@handler("repeatable")
def repeatable(context: Context) -> Any:
    effects = Effects(context)
    return context.action("pay", effects.do if context.attempt > 1 else effects.do_and_doubt, repeatable=True)


@handler("doubtful")
def doubtful(context: Context) -> Any:
    effects = Effects(context)
    try:
        return context.action("pay", effects.do_and_doubt)
    except Exception as error:
        raise Transient(f"left for later: {error}") from error


@handler("no_json")
def no_json(context: Context) -> Any:
    return context.action("pay", lambda: [Effects(context).do(), object()])


@handler("again_in_one_attempt")
def again_in_one_attempt(context: Context) -> Any:
    effects = Effects(context)
    for _ in range(2):
        try:
            context.action("pay", effects.do_and_doubt)
        except ActionUnknown:
            continue
    return {"done": len(effects.done())}


@handler("keeps")
def keeps(context: Context) -> Any:
    file = Path(context.input["dir"]) / "page.txt"
    file.write_text("a page")
    kept = [
        context.artifact("page", file),
        context.artifact("raw", b"a page"),
        context.artifact("other", b"x"),
    ]
    return [one.digest for one in kept]


@handler("asks")
def asks(context: Context) -> Any:
    if context.answer is None:
        raise MissingInput({"ask": "which?"})
    return {"answer": context.answer}


# -- children --------------------------------------------------------------------------------------------


@handler("leaf")
def leaf(context: Context, input: dict[str, int]) -> Any:
    context.use(tokens=10)
    return {"n": input["n"] * 2, "attempt": context.attempt}


@handler("lead")
def lead(context: Context) -> Any:
    parts = [context.spawn(f"part-{n}", "leaf", {"n": n}) for n in range(3)]
    return {"parts": [part.result()["n"] for part in parts], "attempt": context.attempt}


@handler("lead_async")
async def lead_async(context: Context) -> Any:
    parts = [context.spawn(f"part-{n}", "leaf", {"n": n}) for n in range(3)]
    found = await asyncio.gather(*parts)
    async with asyncio.TaskGroup() as group:
        more = group.create_task(_one_more(context))
    return {"parts": [part["n"] for part in found], "more": more.result(), "attempt": context.attempt}


async def _one_more(context: Context) -> int:
    result = await context.spawn("late", "leaf", {"n": 21})
    return int(result["n"])


@handler("tree")
def tree(context: Context, input: dict[str, int]) -> Any:
    if input["depth"] == 0:
        return 1
    below = {"depth": input["depth"] - 1}
    both = [context.spawn(side, "tree", below) for side in ("left", "right")]
    return sum(child.result() for child in both) + 1


@handler("background")
def background(context: Context) -> Any:
    child = context.spawn("bg", "until_file", context.input, background=True)
    try:
        child.result()
    except RuntimeError as error:
        return {"attempt": context.attempt, "said": str(error)}
    return None


@handler("until_file")
def until_file(context: Context, input: dict[str, str]) -> Any:
    Path(input["dir"], "began").write_text(f"{context.attempt}")
    while not Path(input["dir"], "go").exists() and not context.canceled:
        time.sleep(0.01)
    return {"canceled": context.canceled}


@handler("fails")
def fails(context: Context) -> Any:
    raise Permanent("no such page")


@handler("catches")
def catches(context: Context) -> Any:
    try:
        context.spawn("bad", "fails").result()
    except ChildFailed as error:
        return [error.state, error.error_class, error.error_type, error.error_message, error.task]
    return None


@handler("does_not_catch")
def does_not_catch(context: Context) -> Any:
    return context.spawn("bad", "fails").result()


@handler("refused")
def refused(context: Context) -> Any:
    said = []
    for capability, keys in (("fly", {}), ("guarded", {"owner": "guard"}), ("leaf", {"max_attempts": "x"})):
        try:
            context.spawn(capability, capability, **keys)
        except SpawnRefused as error:
            said.append(str(error))
    return said


@handler("retried")
def retried(context: Context) -> Any:
    children = [context.spawn(str(n), "leaf", {"n": n}) for n in range(2)]
    if context.attempt == 1:
        raise Transient("after spawning")
    return {
        "tasks": [child.task for child in children],
        "sum": sum(child.result()["n"] for child in children),
    }


@handler("gives_up")
def gives_up(context: Context) -> Any:
    context.spawn("endless", "until_file", context.input)
    while not Path(context.input["dir"], "began").exists():
        time.sleep(0.01)
    raise Permanent("enough")


@handler("waits")
def waits(context: Context) -> Any:
    return context.spawn(
        "long", "until_file", context.input, heartbeat="1s", max_attempts=3, backoff=0
    ).result()
