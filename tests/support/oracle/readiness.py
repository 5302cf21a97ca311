"""Owns which tasks can run, which never will, and why: derived from the states of all tasks, each time anew.

Must not move anything.
"""

from __future__ import annotations

from coordinator.wire.names import TaskState as S
from tests.support.oracle.state import Run, Task

DEAD = frozenset({S.FAILED, S.DENIED, S.CANCELED})
STARTED = frozenset({S.RUNNING, S.AWAITING, S.SUCCEEDED, S.FAILED, S.DENIED, S.NEEDS_REVIEW})
WAITING = frozenset({S.PENDING, S.QUEUED, S.BLOCKED})

Roots = dict[str, set[str]]


def fulfils(member: Task, task: Task) -> bool:
    """`member` has what a requirement of `task` asks for."""
    if member.state is S.SKIPPED:
        return bool(task.number("skipped_ok"))
    return member.state is S.SUCCEEDED and not doubtful(member)


def doubtful(task: Task) -> bool:
    """A person must decide first: it is in review, or built on a result that is."""
    return task.state is S.NEEDS_REVIEW or (bool(task.tainted_by) and task.state in STARTED - DEAD)


def ended_for_good(run: Run, task: Task) -> bool:
    """Ended, and not merely blocked until a review is decided."""
    return task.ended and (task.state is not S.BLOCKED or task.id in lost(run))


def requirements_met(run: Run, task: Task) -> bool:
    tasks = run.tasks
    if held_back(run, task):
        return False
    if not all(fulfils(tasks[name], task) for name in task.requires):
        return False
    if not all(ended_for_good(run, tasks[name]) for name in task.after):
        return False
    count = task.number("any_count")
    return count == 0 or sum(fulfils(tasks[name], task) for name in task.any_of) >= count


def held_back(run: Run, task: Task) -> bool:
    """A child that must wait until a sibling has ended (max_parallel), or until all children are made."""
    return bool(task.spec.get("parent")) and not task.let_in


def children_decided(run: Run, parent: Task) -> bool:
    """All its children ended, or so many did without success that `min_success` is out of reach."""
    states = [run.tasks[name] for name in parent.children]
    ended = [child for child in states if child.ended]
    wanted = parent.number("min_success", -1)
    possible = len(states) - sum(child.state is not S.SUCCEEDED for child in ended)
    out_of_reach = possible < (len(states) if wanted == -1 else wanted)
    return parent.closed and (len(ended) == len(states) or out_of_reach)


def ready(run: Run) -> list[Task]:
    """Pending, requirements met, no timer (SPEC 4); in dispatch order."""
    found = [
        t for t in run.tasks.values() if t.state is S.PENDING and t.due is None and requirements_met(run, t)
    ]
    return sorted(found, key=lambda t: (-t.number("priority"), t.index))


def in_flight(run: Run) -> bool:
    """Queued, running, or waiting for a backoff timer; or the run is still being written down (SPEC 4)."""
    return run.loading or any(
        t.state in (S.QUEUED, S.RUNNING) or (t.state is S.PENDING and t.due is not None)
        for t in run.tasks.values()
    )


def lost(run: Run) -> Roots:
    """Tasks that can never run, whatever reviewers decide, each with all possible root causes."""
    found: Roots = {}

    def causes(member: Task, task: Task) -> set[str]:
        if member.state in DEAD or (member.state is S.SKIPPED and not task.number("skipped_ok")):
            return {member.id}
        return found.get(member.id, set())

    _fixpoint(run, found, causes, set())
    return found


def held_by_review(run: Run, lost_tasks: Roots) -> Roots:
    """Tasks that cannot run unless a review is decided, each with the tasks in review."""
    found: Roots = {}

    def causes(member: Task, task: Task) -> set[str]:
        if doubtful(member):
            return {member.id} if member.state is S.NEEDS_REVIEW else set(member.tainted_by)
        if member.state is S.SKIPPED and not task.number("skipped_ok"):
            return {member.id}
        own = {member.id} if member.state in DEAD else set()
        return own | found.get(member.id, set()) | lost_tasks.get(member.id, set())

    _fixpoint(run, found, causes, set(lost_tasks))
    return found


def _fixpoint(run: Run, found: Roots, causes: object, leave: set[str]) -> None:
    assert callable(causes)
    changed = True
    while changed:
        changed = False
        for task in run.tasks.values():
            if task.state not in WAITING or task.id in leave:
                continue
            roots: set[str] = set()
            for name in (*task.requires, *_about_to_collect(run, task)):
                roots |= causes(run.tasks[name], task)
            count = task.number("any_count")
            bad = [causes(run.tasks[name], task) for name in task.any_of]
            if count and sum(not each for each in bad) < count:
                roots = roots.union(*bad)
            if roots != found.get(task.id, set()):
                found[task.id] = roots
                changed = True


def _about_to_collect(run: Run, task: Task) -> list[str]:
    """A parent whose children were decided cannot collect the result of one that came into review meanwhile."""
    if not task.closed or task.state is S.AWAITING:
        return []
    return [name for name in task.children if run.tasks[name].state is S.NEEDS_REVIEW]


def taint(run: Run) -> None:
    """Marks what had started from a result that is in review, or from a tainted one (SPEC 6)."""
    changed = True
    while changed:
        changed = False
        for task in run.tasks.values():
            if task.state not in STARTED or run.effective(task) is S.CANCELED:
                continue
            for name in task.based_on:
                source = run.tasks[name]
                new = {name} if source.state is S.NEEDS_REVIEW else set(source.tainted_by)
                if not new <= task.tainted_by:
                    task.tainted_by |= new
                    changed = True


def results_at_hand(run: Run, task: Task) -> set[str]:
    """Requirements whose results an attempt gets when it starts now."""
    return {n for n in (*task.requires, *task.any_of) if run.tasks[n].state is S.SUCCEEDED}
