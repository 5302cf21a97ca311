"""Owns a plain view of a Team's requirements, from which `invariants` judges what may start and what must be
blocked.

Must not share code with the machine's own readiness rules: it is the second opinion. Written from SPEC 2 and
3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from coordinator.wire.names import ENDED, TaskState

_DEAD = ENDED - {TaskState.SUCCEEDED}


@dataclass(frozen=True, slots=True)
class Needs:
    """What one task waits for. any_count: 0 without an `any_of`."""

    requires: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    any_count: int = 0
    skipped_ok: bool = False


@dataclass(slots=True)
class GraphView:
    """The requirements of all tasks of a Team file; children of a `for_each` need nothing."""

    needs: Mapping[str, Needs] = field(default_factory=dict)

    def may_start(self, task: str, states: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """Says what forbids that `task` is queued now."""
        needs = self.needs.get(task, Needs())
        for other in needs.requires:
            if not _satisfies(states.get(other, TaskState.PENDING), needs):
                yield other, "requires"
        for other in needs.after:
            if states.get(other, TaskState.PENDING) not in ENDED:
                yield other, "after"
        reached = sum(_satisfies(states.get(other, TaskState.PENDING), needs) for other in needs.any_of)
        if reached < needs.any_count:
            yield ", ".join(needs.any_of), "any_of"

    def must_block(self, states: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """Unstarted tasks that can no longer run, each with what makes it so."""
        for task, needs in self.needs.items():
            if states.get(task) not in (TaskState.PENDING, TaskState.QUEUED):
                continue
            for other in needs.requires:
                state = states.get(other, TaskState.PENDING)
                if state == TaskState.NEEDS_REVIEW or (state in _DEAD and not _satisfies(state, needs)):
                    yield task, f"requires {other}, which is {state}"
            lost = sum(_lost(states.get(other, TaskState.PENDING), needs) for other in needs.any_of)
            if needs.any_count and len(needs.any_of) - lost < needs.any_count:
                yield task, f"any_of {', '.join(needs.any_of)}"


def _satisfies(state: str, needs: Needs) -> bool:
    return state == TaskState.SUCCEEDED or (state == TaskState.SKIPPED and needs.skipped_ok)


def _lost(state: str, needs: Needs) -> bool:
    return state == TaskState.NEEDS_REVIEW or (state in _DEAD and not _satisfies(state, needs))
