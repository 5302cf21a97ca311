"""Owns the one-screen answer to "why does this run stand where it stands?" (SPEC 9, explain).

Pure. Must not say anything that the report does not hold; for an open run it adds what each open task waits
for. `Explanation.as_data` is complete; the text is cut to a screen and says how much was left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.run_report.build import RunReport, build_report
from coordinator.run_report.remedies import remedies
from coordinator.run_report.waiting import Wait, waits
from coordinator.run_report.wording import clean, error_line, names, path, span, when, why

if TYPE_CHECKING:
    from coordinator.machine.snapshot import RunSnapshot

ROWS = 8
"""Rows of one section of the text."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a run stands where it stands; `in_doubt` are (task, why), `finished` those with an accepted
    result.
    """

    report: RunReport
    why: str
    finished: tuple[str, ...]
    failed: tuple[str, ...]
    in_doubt: tuple[tuple[str, str], ...]
    waiting: tuple[Wait, ...]

    def as_data(self) -> dict[str, Any]:
        """The whole answer as JSON-ready data."""
        report, tasks = self.report, self.report["tasks"]
        return {
            "run": report["run"],
            "team": report["team"],
            "status": report["status"],
            "why": self.why,
            "stop": report["stop"],
            "first_failure": report["first_failure"],
            "blocked": [{"task": n, **t["blocked_by"]} for n, t in tasks.items() if t["blocked_by"]],
            "finished": list(self.finished),
            "failed": list(self.failed),
            "in_doubt": [{"task": task, "why": text} for task, text in self.in_doubt],
            "canceled": _canceled(report),
            "open": [
                {"task": w.task, "state": w.state, "waits_for": w.kind, "text": w.text, "on": list(w.on)}
                for w in self.waiting
            ],
            "late_results": len(report["late_results"]),
            "remedies": remedies(report),
        }

    def as_text(self) -> str:
        """The answer for one screen, ended by a newline."""
        return "\n".join(_lines(self)) + "\n"


def explain(snapshot: RunSnapshot, now: int, workers: Mapping[str, int] | None = None) -> Explanation:
    """Explains a run. now: ms. workers: live workers by role, None when that is not known."""
    return _explain(build_report(snapshot), waits(snapshot, now, workers))


def _explain(report: RunReport, waiting: Iterable[Wait]) -> Explanation:
    tasks = report["tasks"]
    return Explanation(
        report=report,
        why=why(report),
        finished=tuple(name for name, task in tasks.items() if task["state"] in ("succeeded", "skipped")),
        failed=tuple(name for name, task in tasks.items() if task["state"] in ("failed", "denied")),
        in_doubt=tuple(_doubts(report)),
        waiting=tuple(waiting),
    )


def summarize(report: RunReport) -> str:
    """The same screen for a run that rests, from its report alone; its output, if any, stands at the end."""
    text = _explain(report, ()).as_text()
    if report["output"] is None:
        return text
    return f"{text}Output: {json.dumps(report['output'], ensure_ascii=False, indent=2, sort_keys=True)}\n"


def _doubts(report: RunReport) -> Iterator[tuple[str, str]]:
    payloads: dict[str, set[str]] = {}
    for entry in report["result_conflicts"]:
        payloads.setdefault(entry["task"], set()).add(entry["digest"])
    for name, task in report["tasks"].items():
        if task["state"] == "needs_review":
            yield name, _doubt(len(payloads.get(name, ())))
        if task["tainted"]:
            yield name, "it had started from a result that is in doubt now"
    for entry in report["late_results"]:
        if entry["would_change"]:
            yield entry["task"], "a success arrived after the stop and was not taken (see late_results)"


def _doubt(results: int) -> str:
    if results:
        return f"{results} different results under one key; none is taken until a person decides"
    return "a person must say whether a side effect was done"


def _lines(said: Explanation) -> Iterator[str]:
    report = said.report
    yield f"{clean(report['run'], 80)} · team {clean(report['team'], 80)} · {report['status']}"
    yield f"  because {said.why}"
    stop = report["stop"]
    if stop:
        task = f", task {clean(stop['task'], 80)}" if stop["task"] else ""
        yield f"  decided at {when(stop['at'])} by event {stop['seq']}{task}"
        if stop["also_true"]:
            yield f"  also true then: {names([_reason(entry) for entry in stop['also_true']])}"
        if stop.get("waiting"):
            yield f"  waiting for that cycle: {names(stop['waiting'])}"
    if report["first_failure"]:
        yield from _cause(report)
    yield from _section("Failed", _failures(said))
    yield from _section(
        "Blocked", (path(t["blocked_by"]) for t in report["tasks"].values() if t["blocked_by"])
    )
    yield from _section("In doubt", (f"{clean(task, 80)}: {text}" for task, text in said.in_doubt))
    yield from _section("Open", (f"{clean(w.task, 80)} ({w.state}) {w.text}" for w in said.waiting))
    yield from _section("A person can move it", (clean(command, 300) for command in remedies(report)))
    canceled = _canceled(report)
    if canceled:
        yield f"Canceled by it: {names(canceled)}"
    yield f"Finished: {names(said.finished) if said.finished else 'nothing'}"
    if report["late_results"]:
        yield f"Late results, kept but not taken: {len(report['late_results'])}"


def _canceled(report: RunReport) -> list[str]:
    return [name for name, task in report["tasks"].items() if task["state"] == "canceled"]


def _reason(entry: Any) -> str:
    return str(entry.get("reason", entry)) if isinstance(entry, Mapping) else str(entry)


def _cause(report: RunReport) -> Iterator[str]:
    event = report["first_failure"]
    began = report["events"][0]["at"]
    after = (
        f", {span(event['at'] - began)} after the start"
        if event["at"] is not None and began is not None
        else ""
    )
    task = clean(event["task_id"], 80) or "the run"
    tried = f", attempt {event['attempt']}" if event["attempt"] else ""
    yield f"  earliest cause: event {event['seq']}, {task}{tried}: {event['kind']}{after}"
    error = event.get("error") or (report["tasks"].get(event["task_id"]) or {}).get("error")
    line = error_line(error) or clean(event["reason"])
    if line:
        yield f"    {line}"


def _failures(said: Explanation) -> Iterator[str]:
    for name in said.failed:
        task = said.report["tasks"][name]
        tries = len(task["attempts"])
        line = error_line(task["error"]) or clean(task["reason"] or "")
        count = "no attempt" if not tries else f"{tries} attempt{'s' if tries > 1 else ''}"
        yield f"{clean(name, 80)} ({task['state']}, {count}){': ' + line if line else ''}"


def _section(title: str, rows: Iterable[str]) -> Iterator[str]:
    found = list(rows)
    if not found:
        return
    yield f"{title}:"
    yield from (f"  {row}" for row in found[:ROWS])
    if len(found) > ROWS:
        yield f"  … and {len(found) - ROWS} more"
