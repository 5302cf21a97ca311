"""Owns `simulate`: one run played in virtual time, everything in its order, from an empty private Redis.

The same scene gives the same snapshot, byte for byte. Must not write reports.
"""

from __future__ import annotations

from redis import Redis

from coordinator.machine.snapshot import RunSnapshot, snapshot
from coordinator.simulation.scene import Scene
from coordinator.simulation.stage import Stage
from coordinator.wire.errors import MachineFault


def simulate(redis: Redis, scene: Scene) -> RunSnapshot:
    """Plays the scene to its end: the run stopped, or nothing is going to happen any more.

    redis: an empty private server. Raises InputFault when the run is not accepted (inputs, for example).
    """
    stage = Stage(redis, scene)
    stage.submit()
    while not (stage.is_over or stage.is_idle):
        stage.fair_step()
    found = snapshot(stage.machine, scene.run)
    if found is None:
        raise MachineFault("the simulated run is gone")
    return found
