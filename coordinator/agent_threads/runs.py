"""Owns the attribution of Crewline's own background work, for the report's `background` (SPEC 8, 10), and of a thread
that a handler gave as its result.

Pure: reads entries of the report's `tasks` and `events`, never a snapshot. Must not decide a task's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coordinator.agent_threads.attribution import Notice, Parent, Work, attribute
from coordinator.agent_threads.interruptions import classify_interruption, run_pair
from coordinator.agent_threads.model import InvalidThread
from coordinator.agent_threads.outline import Outline, Section, interruptions, outline
from coordinator.agent_threads.reading import is_thread, read_thread

NOTIFIED = "task_resumed"
"""The event by which a parent is told that children have ended."""

Entry = Mapping[str, Any]


def background_section(tasks: Mapping[str, Entry], events: Sequence[Entry] = ()) -> list[dict[str, Any]]:
    """Gives the report's `background`: each child task of a run in exactly one place, in the order of the tasks' ids.

    Takes the report's `tasks` and `events`. A child is a task with a `parent`, unless it says `background: false` (it
    was waited for) or its parent is a `for_each`. It is anchored where a task's `children` name it; a child that no
    task names is matched to a `task_resumed` event within 10 s of its end, else it is unassigned. `kind` is the child's
    own, whatever its parent's copy says; a state that is none of the classified ones is `other`.
    """
    children = {name: task for name, task in tasks.items() if _in_background(task, tasks)}
    works = [Work(name, name, _ended_at(task)) for name, task in children.items()]
    parents = [
        Parent(name, (0, name), list(task["children"]))
        for name, task in tasks.items()
        if task.get("children")
    ]
    places = attribute(works, parents, _notices(events))
    return [
        {
            "task": name,
            "placement": str(place.placement),
            "parent": place.parent or None,
            "state": children[name]["state"],
            "kind": str(classify_interruption(*run_pair(children[name]["state"], ""))),
            "ended_at": _at_ms(children[name]),
        }
        for name, place in places.items()
    ]


def thread_section(value: Any) -> dict[str, Any] | None:
    """Gives what a report shows of a result that is an exported thread; None for any other value.

    `background`: each top-level payload with its one place; `interruptions`: only when there are any.
    """
    if not is_thread(value):
        return None
    try:
        found = outline(read_thread(value))
    except InvalidThread:
        return None
    section: dict[str, Any] = {
        "thread": found.thread.id,
        "turns": len(found.turns),
        "background": _placed(found),
    }
    listed = interruptions(found)
    if listed:
        section["interruptions"] = listed
    return section


def _placed(found: Outline) -> list[dict[str, Any]]:
    sections = {id(section.work): section for section in found.sections()}
    placed = []
    for child in found.thread.children:
        section: Section = sections[id(child.payload)]
        placed.append(
            {
                "id": child.payload.id,
                "headline": section.headline,
                "placement": str(found.places[child.key].placement),
                "location": section.location,
                "status": section.status,
                "kind": str(section.kind),
            }
        )
    return placed


def _in_background(task: Entry, tasks: Mapping[str, Entry]) -> bool:
    parent = task.get("parent")
    if not parent or task.get("background") is False:
        return False
    return not tasks.get(parent, {}).get("for_each")


def _notices(events: Iterable[Entry]) -> list[Notice]:
    return [
        Notice(str(event["task_id"]), (int(event["seq"]), ""), int(event["at"]) * 1000)
        for event in events
        if event.get("kind") == NOTIFIED and event.get("at") is not None
    ]


def _ended_at(task: Entry) -> int | None:
    at = _at_ms(task)
    return None if at is None else at * 1000


def _at_ms(task: Entry) -> int | None:
    """When the last attempt ended; None while one is open, and for a task that never began."""
    attempts = task.get("attempts") or []
    at = attempts[-1].get("ended_at") if attempts else None
    return at if isinstance(at, int) else None
