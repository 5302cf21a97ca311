"""Owns how a review looks on a screen: a head, the payloads side by side, what differs, and what can be decided.

Draws what `run_report.reviews` gathered. Must not hide a difference: everything that a terminal would obey or leave out
is written as an escape; what is too long for a screen is cut with a mark, and stands whole in `--json`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from coordinator.cli.output import columns
from coordinator.run_report.reviews import differences, pretty, visible
from coordinator.run_report.wording import clean, names, when
from coordinator.wire.digest import canonical

LINES = 200
"""Longest payload or difference shown."""
SIDES = 3
"""Payloads that stand side by side; more stand below each other, two and two."""
SHORT = 19
"""Characters of a digest that a heading shows: the scheme and twelve digits."""

STYLES = {"+": "green", "-": "red", "@": "cyan"}


def draw_review(view: Mapping[str, Any]) -> str:
    """The whole picture as text, with colours where the standard output is a terminal."""
    screen = Console(highlight=False)
    with screen.capture() as drawn:
        for part in _parts(view):
            screen.print(part, soft_wrap=not isinstance(part, Table))
    return drawn.get()


def _parts(view: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield Text("\n".join(_head(view)))
    candidates = view["candidates"]
    if candidates:
        yield Text("\nWho sent what", style="bold")
        yield Text(_senders(view["evidence_list"]).rstrip())
        yield Text("\nSide by side", style="bold")
        width = SIDES if len(candidates) <= SIDES else 2
        for start in range(0, len(candidates), width):
            yield _sides(candidates[start : start + width])
        yield from _compared(candidates)
    if view["tainted"]:
        yield Text("\nStarted from the doubtful result: " + names(_states(view["tainted"]), 20))
    if view["blocked"]:
        yield Text("\nWaits for the decision: " + names(view["blocked"], 20))
    if view["actions"]:
        yield Text("\nSide effects already begun", style="bold")
        yield Text(_actions(view["actions"]).rstrip())
    if view["status"] == "open":
        yield Text("\nDecide by one of", style="bold")
        yield Text("\n".join(f"  {command}" for command in _commands(view)))


def _head(view: Mapping[str, Any]) -> Iterator[str]:
    yield f"{clean(view['name'], 300)} · {view['kind']} · {view['status']}"
    yield f"  task {clean(view['task'], 80)} of run {view['run']} ({view['run_status']})"
    yield f"  opened at {when(view['opened_at'])}, state version {view['state_version']}, evidence {view['evidence']}"
    if view["first"]:
        first = view["first"]
        yield f"  {clean(first['source'], 80)} decided {first['decision']}; somebody else must say the same"
    if view["decision"]:
        chosen = f" of {view['digest']}" if view["digest"] else ""
        yield f"  {clean(view['source'] or '', 80)} decided at {when(view['decided_at'])}: {view['decision']}{chosen}"
        if view["reason"]:
            yield f"  because {clean(view['reason'], 500)}"


def _senders(evidence: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            str(entry["arrival"]),
            when(entry["at"]),
            clean(entry["worker"] or "", 40),
            clean(entry["lease"] or "none", 60),
            str(entry["attempt"] or ""),
            str(entry["state_version"]),
            entry["digest"] + (" (was accepted)" if entry["accepted"] else ""),
        ]
        for entry in evidence
    ]
    return columns(["#", "AT", "BY", "LEASE", "ATTEMPT", "VERSION", "DIGEST"], rows)


def _sides(candidates: Sequence[Mapping[str, Any]]) -> Table:
    """Payloads in columns; a line that not all of them have is coloured."""
    table = Table(show_header=True, header_style="bold", expand=True)
    lines = [pretty(candidate["payload"]) for candidate in candidates]
    shared = set(lines[0]).intersection(*lines)
    for candidate in candidates:
        arrivals = ", ".join(f"#{number}" for number in candidate["arrivals"])
        table.add_column(f"{arrivals} {candidate['digest'][:SHORT]}", ratio=1, overflow="fold")
    cells = [_payload(of_one, shared if len(lines) > 1 else set(of_one)) for of_one in lines]
    table.add_row(*cells)
    return table


def _payload(lines: Sequence[str], shared: set[str]) -> Text:
    text = Text()
    for line in lines[:LINES]:
        text.append(line + "\n", style="" if line in shared else "yellow")
    return text.append(f"… {len(lines) - LINES} more lines", style="dim") if len(lines) > LINES else text


def _compared(candidates: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """The first payload against each other one."""
    for other in candidates[1:]:
        lines = differences(candidates[0], other)
        shown = [Text(line, style=STYLES.get(line[:1], "")) for line in lines[:LINES]]
        if len(lines) > LINES:
            shown.append(Text(f"… {len(lines) - LINES} more lines", style="dim"))
        yield Group(Text("\nWhat differs", style="bold"), *shown)


def _states(tainted: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{entry['task']} ({entry['state']})" for entry in tainted]


def _actions(actions: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            clean(action["task"], 80),
            clean(action["key"], 80),
            action["state"],
            when(action["at"]),
            *(
                "" if action[name] is None else visible(canonical(action[name]))[:200]
                for name in ("details", "receipt")
            ),
        ]
        for action in actions
    ]
    return columns(["TASK", "KEY", "STATE", "AT", "DETAILS", "RECEIPT"], rows)


def _commands(view: Mapping[str, Any]) -> Iterator[str]:
    name = shlex.quote(view["name"])
    if view["action"]:
        what = f"{view['run']} {shlex.quote(view['task'])} {shlex.quote(view['action'])}"
        yield f"crewline actions confirm {what} --receipt FILE"
        yield f"crewline actions fail {what} --reason WHY"
    for candidate in view["candidates"]:
        yield f"crewline review accept {name} --digest {candidate['digest']}"
    yield f"crewline review supply {name} FILE"
    yield f"crewline review reject {name} --reason WHY"
    yield f"crewline review rerun {name}"
