"""Owns teams in a few words for the tests of the simulation.

Must not play them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinator.simulation.scene import Scene, make_scene
from coordinator.team.loader import make_team

Report = dict[str, Any]
Play = Callable[..., Report]


def scene_of(tasks: Mapping[str, Mapping[str, Any]], **team: Any) -> Scene:
    """A scene in which one role may do everything that the tasks ask for, unless `roles` says otherwise."""
    seed = team.pop("seed", 0)
    inputs = team.pop("given", {})
    rights = [task.get("capability", name) for name, task in tasks.items() if not task.get("external")]
    roles = {"clerk": {"capabilities": sorted(set(rights))}}
    value = {"team": "test", "roles": roles, "tasks": dict(tasks), **team}
    return make_scene(make_team(value, allow_cycle=True), inputs, seed=seed)
