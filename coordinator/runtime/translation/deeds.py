"""Owns what outlives the attempt that said it: children that a handler makes, and artifacts (SPEC 8).

A child is checked and compiled here, against the run's Team; whether there may be one more is the machine's word. Must
not open an artifact: the workers keep them.
"""

from __future__ import annotations

import json

from coordinator.machine import commands
from coordinator.runtime.teams import Teams
from coordinator.runtime.translation.envelope import Envelope
from coordinator.team.compile import spawned_child
from coordinator.team.models import Limits
from coordinator.team.payloads import check_child
from coordinator.wire import reports


def spawn(report: reports.Spawn, role: str, envelope: Envelope, teams: Teams) -> commands.SpawnChild:
    """A child task, or the one that was made under the key. Raises InputFault for a child that the Team cannot have."""
    team = teams.of_run(report.run)
    plan, allowed, limits = "{}", False, Limits()
    if team is not None:
        child = check_child(team, role, report.key, report.child)
        own = team.roles.get(role)
        may_spawn = [role] if own is None or own.may_spawn is None else own.may_spawn
        allowed, limits = child.owner in may_spawn, team.limits
        plan = json.dumps(spawned_child(child), ensure_ascii=False, separators=(",", ":"))
    return commands.SpawnChild(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        worker=report.worker,
        lease=report.lease,
        key=report.key,
        child=plan,
        background=report.background,
        allowed=int(allowed),
        most=limits.max_children,
        deepest=limits.max_depth,
    )


def record_artifact(report: reports.ArtifactMade, role: str, envelope: Envelope) -> commands.RecordArtifact:
    """A named output lies outside Redis."""
    return commands.RecordArtifact(
        **envelope,
        run=report.run,
        task=report.task,
        attempt=report.attempt,
        role=role,
        worker=report.worker,
        lease=report.lease,
        artifact=report.name,
        digest=report.digest,
        size=report.size,
        url=report.url,
    )
