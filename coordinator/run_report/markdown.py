"""Owns the run report as Markdown: the same facts as the JSON, for a person (SPEC 10).

Pure: reads the report alone, never a snapshot. Must not let a payload or an error text end its own table
cell, code block or heading. Long payloads are cut; the JSON has them whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coordinator.run_report.wording import clean, error_line, path, when, why

PAYLOAD_CHARACTERS = 4000
"""Longest payload shown."""

LISTS = ("awaiting", "reviews", "actions", "cancellations", "interruptions", "artifacts", "background")
"""Lists of the report that are shown as tables, in this order."""


def render_markdown(report: Mapping[str, Any]) -> str:
    """Gives the report as Markdown, ended by a newline."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {_cell(report['run'])}: {report['status']}"
    yield ""
    yield f"Team {_cell(report['team'])}. The status is `{report['status']}` because {_cell(why(report), 500)}."
    yield from _stop(report)
    yield from _budgets(report)
    yield from _tasks(report)
    yield from _blocked(report)
    yield from _failures(report)
    yield from _doubts(report)
    for name in LISTS:
        yield from _entries(name, report.get(name) or [])
    yield from _results(report)
    yield from _events(report["events"])
    yield from [
        "",
        f"Digest `{report['digest']}` · state version {report['state_version']} · `{report['schema']}`",
    ]


def _stop(report: Mapping[str, Any]) -> Iterator[str]:
    stop, first = report["stop"], report["first_failure"]
    rows = []
    if stop:
        rows += [
            [name, _value(stop[name])] for name in ("reason", "rule", "limit", "task", "seq") if stop[name]
        ]
        rows.append(["at", when(stop["at"])])
        names = ("cause", "also_true", "cycle", "waiting")
        rows += [[name, _value(stop[name])] for name in names if stop.get(name)]
    if first:
        text = f"event {first['seq']} ({first['kind']}) of {first['task_id'] or 'the run'} at {when(first['at'])}"
        rows.append(["first failure", text])
        if first.get("error"):
            rows.append(["its error", error_line(first["error"])])
    yield from _section("Stop", ["", "what"], rows)


def _budgets(report: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        [
            name,
            _value(b["used"]),
            _value(b["reserved"]),
            _value(b["limit"]) or "none",
            "yes" if b["overrun"] else "",
        ]
        for name, b in report["budgets"].items()
    ]
    yield from _section("Budgets", ["limit", "used", "reserved", "of", "overrun"], rows)


def _tasks(report: Mapping[str, Any]) -> Iterator[str]:
    rows = []
    for name, task in report["tasks"].items():
        notes = [
            word
            for word, holds in (("optional", not task["required"]), ("tainted", task["tainted"]))
            if holds
        ]
        notes += [f"was {task['was']}"] if task["was"] else []
        notes += [task["reason"]] if task["reason"] else []
        outcomes = ", ".join(f"{a['number']}: {a['outcome'] or 'open'}" for a in task["attempts"])
        rows.append([name, task["state"], task["role"] or "(external)", outcomes, ", ".join(notes)])
    yield from _section("Tasks", ["task", "state", "role", "attempts", "notes"], rows)


def _blocked(report: Mapping[str, Any]) -> Iterator[str]:
    blocked = {name: task["blocked_by"] for name, task in report["tasks"].items() if task["blocked_by"]}
    rows = [[name, by["root"], path(by)] for name, by in blocked.items()]
    yield from _section("Blocked", ["task", "root cause", "path"], rows)


def _failures(report: Mapping[str, Any]) -> Iterator[str]:
    rows = []
    for name, task in report["tasks"].items():
        for attempt in task["attempts"]:
            if attempt["error"]:
                rows.append([name, attempt["number"], attempt["outcome"], error_line(attempt["error"])])
        if task["error"] and not any(attempt["error"] for attempt in task["attempts"]):
            rows.append([name, "", task["state"], error_line(task["error"])])
    yield from _section("Errors", ["task", "attempt", "outcome", "error"], rows)


def _doubts(report: Mapping[str, Any]) -> Iterator[str]:
    for title, name in (("Result conflicts", "result_conflicts"), ("Late results", "late_results")):
        if report[name]:
            yield from ["", f"## {title}"]
        for entry in report[name]:
            facts = {
                key: value
                for key, value in entry.items()
                if key not in ("payload", "lease") and value is not None
            }
            yield from ["", ", ".join(f"{key}: {_value(value)}" for key, value in facts.items()), ""]
            yield from _payload(entry["payload"])


def _entries(name: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if entries:
        columns = [name for name in entries[0] if any(entry.get(name) is not None for entry in entries)]
        rows = [[_fact(column, entry.get(column)) for column in columns] for entry in entries]
        yield from _section(name.capitalize(), columns, rows)


def _fact(name: str, value: Any) -> str:
    """A time of an entry (`at`, `decided_at`, `since`) as a time, everything else as it is."""
    is_time = (name in ("at", "since") or name.endswith("_at")) and isinstance(value, int)
    return when(value) if is_time else _value(value)


def _results(report: Mapping[str, Any]) -> Iterator[str]:
    if report["output"] is not None:
        yield from ["", "## Output", ""]
        yield from _payload(report["output"])
    with_result = [(name, task) for name, task in report["tasks"].items() if task["result_digest"]]
    if with_result:
        yield from ["", "## Results"]
    for name, task in with_result:
        yield from ["", f"### {_cell(name)}", ""]
        yield from _payload(task["result"])


def _events(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    columns = ["seq", "at", "kind", "task_id", "attempt", "state_version", "from", "to", "reason"]
    rows = [[when(e["at"]) if name == "at" else _value(e[name]) for name in columns] for e in events]
    yield from _section("Events", columns, rows)


def _section(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    if not rows:
        return
    yield from ["", f"## {title}", "", _row(columns), _row(["---"] * len(columns))]
    yield from (_row([_cell(value, 1000) for value in row]) for row in rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any, limit: int = 200) -> str:
    """A text that stays what it is inside a table or a line: no markup, no line break, no cell end."""
    text = clean("" if value is None else value, limit)
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


def _value(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _payload(payload: Any) -> Iterator[str]:
    text = json.dumps(payload, ensure_ascii=False, sort_keys=True, indent=2)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    yield f"{fence}json"
    yield text[:PAYLOAD_CHARACTERS]
    yield fence
    if len(text) > PAYLOAD_CHARACTERS:
        yield f"({len(text) - PAYLOAD_CHARACTERS} more characters stand in the JSON report.)"
