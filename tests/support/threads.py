"""Owns building exported threads for tests, in the form of docs/thread-format.md."""

from __future__ import annotations

from typing import Any

START_US = 1_771_840_800_000_000
"""2026-02-23 10:00:00 UTC."""

Json = dict[str, Any]


def at_us(seconds: float) -> int:
    """A time as microseconds, from seconds after the start."""
    return START_US + round(seconds * 1_000_000)


def payload(
    name: str = "", *, done: float | None = None, steps: list[Json] | None = None, **more: Any
) -> Json:
    """A workflow payload; `done`: when it completed, in seconds after the start."""
    made: Json = {"headline": f"Work of {name}", "steps": steps or [], **more}
    if name:
        made["id"] = name
    if done is not None:
        made["completed_at"] = at_us(done)
    return made


def step(*payloads: Json, text: str = "", variant: str = "", title: str = "A step") -> Json:
    """A step with nested payloads and a text."""
    items: list[Json] = [{"type": "WORKFLOW", "payload": {"workflow_payload": inner}} for inner in payloads]
    if text:
        items.append({"type": "TEXT", "payload": {"text_payload": {"text": text, "variant": variant}}})
    return {"title": title, "items": items}


def turn(
    name: str, at: float | None, *steps: Json, status: str = "", reason: str | None = None, **more: Any
) -> Json:
    """An entry of the conversation, created `at` seconds after the start."""
    entry: Json = {"uuid": name, "query_str": f"Question of {name}", **more}
    if at is not None:
        entry["created_us"] = at_us(at)
    if reason is not None:
        entry["locked_reason"] = reason
    entry["blocks"] = [{"workflow_block": {"status": status, "steps": list(steps)}}]
    return entry


def notification(name: str, at: float | None) -> Json:
    """An entry that tells that a sub-agent has ended."""
    return turn(name, at, query_str="", trigger="subagent_result")


def background(
    *payloads: Json, updated: float | None = None, status: str = "", reason: str | None = None
) -> Json:
    """A background entry that holds payloads, last updated so many seconds after the start."""
    entry: Json = {"blocks": [{"workflow_block": {"status": status, "steps": [step(*payloads)]}}]}
    if updated is not None:
        entry["updated_us"] = at_us(updated)
    if reason is not None:
        entry["locked_reason"] = reason
    return entry


def thread(entries: list[Json], background_entries: list[Json], **more: Any) -> Json:
    """An exported thread."""
    return {"uuid": "t", "title": "T", "entries": entries, "background_entries": background_entries, **more}
