"""Owns random Teams with random outcome plans, for the exploration: all kinds of tasks, limits and policies.

A seed gives always the same Team. Must not know what comes of playing it.
"""

from __future__ import annotations

import random
from typing import Any

from coordinator.simulation.scene import Scene, make_scene
from coordinator.team.loader import make_team
from coordinator.wire.outcome_plan import PlannedOutcome

OUTCOMES = [str(outcome) for outcome in PlannedOutcome]
RIGHTS = [("clerk", "work")] * 3 + [("editor", "polish")] * 2 + [("editor", "work")]
"""The last one is a right that its role does not have."""

Spec = dict[str, Any]


def random_scene(seed: int) -> Scene:
    """A scene of two to seven tasks; edges point to earlier tasks, but for a rare cycle."""
    return make_scene(make_team(random_team(random.Random(seed)), allow_cycle=True), {}, seed=seed)


def random_team(rng: random.Random) -> Spec:
    """The Team as a Team file says it."""
    names = [f"t{number}" for number in range(rng.randrange(2, 8))]
    limits = _limits(rng)
    tasks = {name: _task(rng, names[:number], limits) for number, name in enumerate(names)}
    if rng.random() < 0.05:
        tasks["t0"].setdefault("requires", []).append(names[-1])
    if not any(task.get("required", True) for task in tasks.values()):
        tasks[names[-1]]["required"] = True
    team: Spec = {
        "team": "random",
        "roles": {"clerk": {"capabilities": ["work"]}, "editor": {"capabilities": ["polish"]}},
        "inputs": {"items": {"type": "array", "default": [1, 2, 3][: rng.randrange(4)]}},
        "tasks": tasks,
        "limits": limits,
    }
    for policy, value in (
        ("on_required_failure", "drain"),
        ("on_completion", "drain"),
        ("on_limit", "pause"),
    ):
        if rng.random() < 0.3:
            team[policy] = value
    return team


def _limits(rng: random.Random) -> Spec:
    choices: Spec = {
        "step_budget": rng.randrange(1, 9),
        "max_steps": rng.randrange(2, 14),
        "tokens": rng.choice([30, 60, 100]),
        "deadline": rng.choice(["30s", "2m"]),
        "no_progress": rng.choice(["20s", "70s"]),
        "no_progress_steps": rng.randrange(3, 8),
    }
    return {name: value for name, value in choices.items() if rng.random() < 0.18}


def _task(rng: random.Random, earlier: list[str], limits: Spec) -> Spec:
    task: Spec = {"priority": rng.choice([0, 0, 1, -1]), **_edges(rng, earlier)}
    kind = rng.choice(["worker", "worker", "worker", "external", "for_each"])
    if kind == "external":
        task["external"] = True
    else:
        task["owner"], task["capability"] = rng.choice(RIGHTS)
    if kind == "for_each":
        task["for_each"] = {"from": "inputs.items", "max_parallel": rng.randrange(1, 4)}
        if rng.random() < 0.3:
            task["for_each"]["min_success"] = rng.randrange(3)
    else:
        task |= _some(
            rng, {"timeout": "50s", "queue_timeout": "20s", "idempotency_key": rng.choice(["k1", "k2"])}
        )
    if kind == "worker":
        task["max_attempts"] = rng.randrange(1, 4)
        task |= _some(
            rng,
            {
                "backoff": rng.choice([0, "1s", "40s"]),
                "heartbeat": "5s",
                "progress_timeout": "15s",
                "retry_invalid": True,
            },
        )
    if "tokens" in limits:
        task["reserve"] = {"tokens": rng.choice([0, 10, 10, 30])}
    plans = [_plan(rng) for _ in range(rng.randrange(1, 4))]
    task["outcome_plan"] = plans[0] if rng.random() < 0.5 else plans
    return task


def _edges(rng: random.Random, earlier: list[str]) -> Spec:
    def some() -> list[str]:
        return rng.sample(earlier, min(len(earlier), rng.randrange(3)))

    edges: Spec = _some(rng, {"required": False, "skipped_ok": True})
    edges["requires"] = some()
    if rng.random() < 0.2:
        edges["after"] = some()
    if rng.random() < 0.2 and (members := some()):
        edges["any_of"] = {"count": rng.randrange(1, len(members) + 1), "tasks": members}
    if rng.random() < 0.15:
        rules: list[Any] = [True, False, {"input": {"name": "items", "equals": [1, 2]}}]
        rules += [{"result": {"task": name, "at": "/ok", "equals": True}} for name in edges["requires"]]
        edges["when"] = rng.choice(rules)
    return edges


def _some(rng: random.Random, choices: Spec) -> Spec:
    return {name: value for name, value in choices.items() if rng.random() < 0.25}


def _plan(rng: random.Random) -> Any:
    outcome = rng.choice(["success"] * 10 + OUTCOMES)
    if rng.random() < 0.6:
        return outcome
    return {
        "outcome": outcome,
        "tokens": rng.choice([0, 5, 20]),
        "duration": rng.choice(["100ms", "3s", "45s"]),
    }
