"""Owns which field of an exported thread means what, and what stands in for a missing one
(docs/thread-format.md).

Must not attribute, classify or render. Must not refuse anything but a document that is no thread: unknown
fields are passed over (they stay in thread.json), and missing or unreadable ones have a fallback.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from coordinator.agent_threads.interruptions import InterruptionKind, classify_interruption
from coordinator.agent_threads.model import (
    ANSWER,
    Child,
    InvalidThread,
    Item,
    Json,
    Payload,
    Source,
    Step,
    Thread,
    Turn,
)
from coordinator.agent_threads.times import first_instant

NOTIFICATION_TRIGGER = "subagent_result"
_KNOWN = frozenset({"workflow_payload", "text_payload", "sources_payload"})


def is_thread(value: Any) -> bool:
    """Whether a JSON value can be read as an exported thread: an object with a list of entries of either
    kind.
    """
    return isinstance(value, Mapping) and (
        isinstance(value.get("entries"), list) or isinstance(value.get("background_entries"), list)
    )


def read_thread(document: Any) -> Thread:
    """Reads an exported thread. Raises InvalidThread when the value is none (`is_thread`)."""
    if not is_thread(document):
        raise InvalidThread("no exported thread: expected an object with `entries` or `background_entries`")
    try:
        return _thread(document)
    except RecursionError:
        raise InvalidThread("the workflows of this thread are nested too deeply") from None


def _thread(document: Json) -> Thread:
    meta = as_object(document.get("thread_metadata"))
    turns = _turns(as_objects(document.get("entries")))
    children = _children(as_objects(document.get("background_entries")))
    first = next((turn.query for turn in turns if turn.query), "")
    return Thread(
        id=thread_id(document),
        title=word(document, "title") or word(meta, "title") or first,
        last_updated=last_updated(document),
        turns=turns,
        children=children,
        document=document,
    )


def thread_id(document: Json) -> str:
    """The thread's `uuid` (else `id`, else that of `thread_metadata`); empty when it has none."""
    return word(document, "uuid", "id") or word(as_object(document.get("thread_metadata")), "uuid", "id")


def last_updated(document: Json) -> str:
    """The thread's `lastUpdated` (else that of `thread_metadata`) as text; empty when it has none."""
    for source in (document, as_object(document.get("thread_metadata"))):
        value = source.get("lastUpdated")
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            return str(value)
    return ""


def read_payload(raw: Json) -> Payload:
    """Reads a workflow payload, and what is nested in it."""
    steps = _steps(raw.get("steps"))
    return Payload(
        id=word(raw, "id"),
        headline=word(raw, "headline", "title"),
        objective=joined(raw.get("objective_chunks")) or word(raw, "objective", "prompt"),
        status=word(raw, "status"),
        locked_reason=word(raw, "locked_reason"),
        completed_at=first_instant(raw, "completed_at"),
        steps=steps,
        answer=word(raw, ANSWER) or _answer(steps),
        sources=_all_sources(raw, steps),
        spawned=bool(raw.get("objective_chunks") or raw.get("objective") or raw.get("is_background_anchor")),
        below=_ids_below(raw.get("steps")),
    )


def payloads_below(value: Any, *, nested: bool) -> Iterator[Json]:
    """Every object under a key `workflow_payload` below `value`, in document order; `nested`: also those
    inside one.
    """
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        elif isinstance(item, Mapping):
            found = item.get("workflow_payload")
            inner = [value for key, value in item.items() if key != "workflow_payload"]
            if isinstance(found, Mapping):
                yield found
                if nested:
                    inner.insert(0, list(found.values()))
            stack.extend(reversed(inner))


def _turns(entries: list[Json]) -> tuple[Turn, ...]:
    """In order of creation, then of id; an entry without a time stays behind the one it follows in the
    file.
    """
    ordered = []
    previous = -(10**18)
    for place, entry in enumerate(entries):
        at = first_instant(entry, "created_us", "created_at", "entry_created_datetime", "created_datetime")
        own = at is not None
        previous = previous if at is None else at
        name = word(entry, "uuid", "id")
        ordered.append(((previous, not own, name if own else "", place), at, entry))
    ordered.sort(key=lambda item: item[0])
    return tuple(_turn(number, at, entry) for number, (_, at, entry) in enumerate(ordered, 1))


def _turn(number: int, at: int | None, entry: Json) -> Turn:
    workflows = _workflows(entry)
    steps = tuple(step for workflow in workflows for step in _steps(workflow.get("steps")))
    deciding = _deciding(workflows)
    text_answer, text_sources = _from_text(entry.get("text"))
    return Turn(
        number=number,
        id=word(entry, "uuid", "id"),
        query=word(entry, "query_str", "query"),
        created_at=at,
        status=word(deciding, "status"),
        locked_reason=word(deciding, "locked_reason") or word(entry, "locked_reason"),
        steps=steps,
        answer=word(entry, ANSWER) or _answer(steps) or text_answer,
        sources=_unique([*_all_sources(entry, steps), *text_sources]),
        notification=entry.get("trigger") == NOTIFICATION_TRIGGER
        and not any(w.get("steps") for w in workflows),
        below=_ids_below([workflow.get("steps") for workflow in workflows]),
    )


def _deciding(workflows: list[Json]) -> Json:
    """The workflow whose status is the entry's: the first that did not complete, else the last one."""
    unfinished = [
        workflow
        for workflow in workflows
        if classify_interruption(word(workflow, "status"), "") is not InterruptionKind.COMPLETED
    ]
    return (unfinished or workflows[-1:] or [{}])[0]


def _children(entries: list[Json]) -> tuple[Child, ...]:
    """One Child for each id; of several copies of an id the one of the entry that was updated last is the
    child.
    """
    newest: dict[str, tuple[tuple[int, str], Child]] = {}
    nameless: list[tuple[tuple[int, str], Child]] = []
    for child, text in (found for entry in entries for found in _children_of(entry)):
        rank = (-1 if child.updated_at is None else child.updated_at, text)
        if not child.payload.id:
            nameless.append((rank, child))
        elif child.key not in newest or newest[child.key][0] < rank:
            newest[child.key] = (rank, child)
    children = [child for _, child in newest.values()]
    nameless.sort(key=lambda item: item[0])
    for number, (_, child) in enumerate(nameless, 1):
        children.append(replace(child, key=f"nameless:{number:04d}"))
    return tuple(sorted(children, key=_child_order))


def _child_order(child: Child) -> tuple[bool, int, str]:
    return (child.done_at is None, child.done_at or 0, child.key)


def _children_of(entry: Json) -> Iterator[tuple[Child, str]]:
    updated = first_instant(entry, "entry_updated_datetime", "updated_datetime", "updated_at", "updated_us")
    for workflow in _workflows(entry):
        raws = list(payloads_below(workflow.get("steps"), nested=False))
        if not raws and (workflow.get("steps") or workflow.get("status")):
            raws = [_entry_as_payload(entry, workflow)]
        for raw in raws:
            payload = read_payload(raw)
            reason = payload.locked_reason or word(workflow, "locked_reason") or word(entry, "locked_reason")
            child = Child(
                key=f"child:{payload.id}",
                payload=payload,
                workflow_status=word(workflow, "status"),
                alone=len(raws) == 1,
                locked_reason=reason,
                updated_at=updated,
            )
            yield child, json.dumps([raw, child.workflow_status, reason, child.alone], sort_keys=True)


def _entry_as_payload(entry: Json, workflow: Json) -> Json:
    """A background entry that holds no payload is itself the work."""
    return {
        "id": word(entry, "uuid", "id"),
        "headline": word(entry, "headline", "title"),
        "objective": word(entry, "query_str", "query"),
        "status": word(workflow, "status"),
        "completed_at": entry.get("completed_at"),
        "steps": workflow.get("steps"),
        ANSWER: word(entry, ANSWER),
        "sources": entry.get("sources"),
    }


def _workflows(entry: Json) -> list[Json]:
    found = [block.get("workflow_block") for block in as_objects(entry.get("blocks"))]
    return [workflow for workflow in found if isinstance(workflow, Mapping)]


def _steps(raw: Any) -> tuple[Step, ...]:
    return tuple(
        Step(
            title=word(step, "title"),
            tool=word(step, "tool_name"),
            items=tuple(_item(item) for item in as_objects(step.get("items"))),
        )
        for step in as_objects(raw)
    )


def _item(raw: Json) -> Item:
    content = raw.get("payload")
    known = as_object(content)
    text = as_object(known.get("text_payload"))
    payload = known.get("workflow_payload")
    return Item(
        type=word(raw, "type"),
        variant=word(text, "variant"),
        text=word(text, "text") or joined(text.get("chunks")),
        sources=_sources(as_object(known.get("sources_payload")).get("sources")),
        payload=read_payload(payload) if isinstance(payload, Mapping) else None,
        rest=content if content and not _KNOWN & set(known) else None,
    )


def _ids_below(steps: Any) -> tuple[str, ...]:
    ids = (word(payload, "id") for payload in payloads_below(steps, nested=True))
    return tuple(dict.fromkeys(name for name in ids if name))


def _answer(steps: Iterable[Step]) -> str:
    """The last answer that the steps themselves hold; never one of a nested workflow."""
    found = [i.text for step in steps for i in step.items if i.variant == ANSWER and i.text.strip()]
    return found[-1] if found else ""


def _from_text(text: Any) -> tuple[str, tuple[Source, ...]]:
    """An entry's older form: `text` holds the answer, or a JSON list of steps whose last FINAL one
    holds it.
    """
    if not isinstance(text, str) or not text.strip():
        return "", ()
    steps = _parsed(text)
    if not isinstance(steps, list):
        return ("" if isinstance(steps, Mapping) else text), ()
    for step in reversed(as_objects(steps)):
        if word(step, "step_type", "type") == "FINAL":
            answer = as_object(step.get("content")).get(ANSWER)
            inner = _parsed(answer) if isinstance(answer, str) else answer
            if isinstance(inner, Mapping):
                return word(inner, ANSWER), _sources(inner.get("web_results"))
            if isinstance(answer, str) and answer:
                return answer, ()
    return "", ()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _all_sources(owner: Json, steps: Iterable[Step]) -> tuple[Source, ...]:
    inside = [source for step in steps for item in step.items for source in item.sources]
    return _unique([*_sources(owner.get("sources")), *inside])


def _sources(raw: Any) -> tuple[Source, ...]:
    found = (
        Source(word(s, "name", "title") or word(s, "url", "link"), word(s, "url", "link"))
        for s in as_objects(raw)
    )
    return tuple(source for source in found if source.name)


def _unique(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Each address once, under the first name for it."""
    found: dict[str, Source] = {}
    for source in sources:
        found.setdefault(source.url or f"name:{source.name}", source)
    return tuple(found.values())


def word(source: Json, *names: str) -> str:
    """The first of the named fields that holds text; a number counts as its text."""
    for name in names:
        value = source.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def joined(chunks: Any) -> str:
    """A text that came in pieces."""
    if isinstance(chunks, str):
        return chunks
    return "".join(chunk for chunk in chunks if isinstance(chunk, str)) if isinstance(chunks, list) else ""


def as_object(value: Any) -> Json:
    """The value, or an empty object for anything else."""
    return value if isinstance(value, Mapping) else {}


def as_objects(value: Any) -> list[Json]:
    """The objects in a list; anything else is passed over."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
