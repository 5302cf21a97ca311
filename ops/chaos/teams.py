"""Owns the teams of a chaos run: small and varied, each drawn from the seed.

Must not choose what can only end one way: what counts is that each ends, or parks, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Document = dict[str, Any]

INLINE, FORKED = "inline", "forked"
"""Roles: for workers that run handlers in their own process, and in a child."""
ROLES = {INLINE: {"capabilities": ["play", "nap"]}, FORKED: {"capabilities": ["play"]}}
DEFAULTS = {"max_attempts": 6, "backoff": "100ms", "heartbeat": "2s", "timeout": "20s"}


def draw_team(random: Random) -> Document:
    """One team."""
    name, make = random.choice(list(KINDS.items()))
    document = make(random)
    return {"team": name, "roles": ROLES, "defaults": DEFAULTS, **document}


def _task(random: Random, **more: Any) -> Document:
    """A task of some role, short mostly; `more` are keys of the Team file, those of `input` among them."""
    role = random.choice((INLINE, FORKED))
    capability = "nap" if role == INLINE and random.random() < 0.5 else "play"
    asked: Document = {"ms": random.choice((0, 0, 30, 100, 300, 800)), **more.pop("input", {})}
    if random.random() < 0.15:
        asked["fails"] = random.randint(1, 2)
    if random.random() < 0.1:
        asked["deaf"] = True
    return {"owner": role, "capability": capability, "input": asked, **more}


def _diamond(random: Random) -> Document:
    return {
        "tasks": {
            "top": _task(random),
            "left": _task(random, requires=["top"]),
            "right": _task(random, requires=["top"]),
            "bottom": _task(random, requires=["left", "right"]),
        }
    }


def _fan_out(random: Random) -> Document:
    source = _task(random, input={"list": random.randint(0, 8)})
    each = {
        "owner": INLINE,
        "capability": "nap",
        "requires": ["source"],
        "for_each": {"from": "tasks.source.result", "max_parallel": random.randint(1, 4)},
    }
    return {"tasks": {"source": source, "each": each, "join": _task(random, requires=["each"])}}


def _retries(random: Random) -> Document:
    tasks = {f"t{n}": _task(random, input={"fails": random.randint(0, 3)}) for n in range(3)}
    return {"tasks": {**tasks, "end": _task(random, after=list(tasks))}}


def _timeouts(random: Random) -> Document:
    slow = {"ms": 3_000, "deaf": random.random() < 0.5}
    return {
        "tasks": {
            "slow": _task(random, timeout="1s", max_attempts=2, required=False, input=slow),
            "queued": _task(random, queue_timeout=random.choice(("500ms", "30s")), required=False),
            "end": _task(random, after=["slow", "queued"]),
        },
        "on_completion": "drain",
    }


def _budget(random: Random) -> Document:
    tokens, cost = random.randint(10, 30), "0.50"
    tasks = {
        f"t{n}": _task(
            random,
            reserve={"tokens": tokens, "cost": cost},
            input={"tokens": random.randint(0, tokens), "cost": "0.25"},
        )
        for n in range(random.randint(4, 8))
    }
    limits: Document = {"tokens": random.randint(tokens, 6 * tokens), "cost": 2, "step_budget": 12}
    return {"tasks": tasks, "limits": limits, "on_limit": random.choice(("stop", "pause"))}


def _overrun(random: Random) -> Document:
    tasks = {
        f"t{n}": _task(random, reserve={"tokens": 10}, input={"tokens": random.choice((5, 10, 25))})
        for n in range(5)
    }
    return {"tasks": tasks, "limits": {"tokens": random.randint(30, 90)}}


def _external(random: Random) -> Document:
    return {
        "tasks": {
            "before": _task(random),
            "outside": {"external": True, "requires": ["before"]},
            "end": _task(random, requires=["outside"]),
        }
    }


def _keyed(random: Random) -> Document:
    """A key over all attempts: a repeated answer is a duplicate, another one a conflict that a person decides."""
    fixed = random.random() < 0.7
    tasks = {
        f"t{n}": _task(random, idempotency_key=f"key-{n}", input={"fixed": fixed, "ms": 300})
        for n in range(3)
    }
    return {"tasks": {**tasks, "end": _task(random, requires=list(tasks))}}


def _failing(random: Random) -> Document:
    ways = ("permanent", "permission", "missing", "exit", "base")
    bad = _task(random, owner=FORKED, capability="play", max_attempts=2, required=random.random() < 0.5)
    bad["input"] = {"ends": random.choice(ways)}
    return {
        "tasks": {
            "bad": bad,
            "good": _task(random),
            "hangs_on": _task(random, requires=["bad"], required=False),
            "either": _task(random, any_of={"count": 1, "tasks": ["bad", "good"]}),
        },
        "on_required_failure": random.choice(("stop", "drain")),
    }


def _limited(random: Random) -> Document:
    tasks = {f"t{n}": _task(random, input={"ms": 400}) for n in range(8)}
    limits = random.choice(({"deadline": "3s"}, {"max_steps": 9}, {"no_progress": "2s"}, {"step_budget": 5}))
    return {"tasks": tasks, "limits": limits, "on_limit": random.choice(("stop", "pause"))}


KINDS: dict[str, Callable[[Random], Document]] = {
    "diamond": _diamond,
    "fan-out": _fan_out,
    "retries": _retries,
    "timeouts": _timeouts,
    "budget": _budget,
    "overrun": _overrun,
    "external": _external,
    "keyed": _keyed,
    "failing": _failing,
    "limited": _limited,
}
