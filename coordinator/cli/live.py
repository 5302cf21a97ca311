"""Owns how a run's progress looks: a table that is redrawn on a terminal, plain lines anywhere else (SPEC 9).

Draws what progress.py knows, on the standard error. Must not read anything, and must not show a team's own
words without cleaning them first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from coordinator.cli.progress import Row, RunFeed, RunView, is_of_run
from coordinator.run_report.fields import count, money, number
from coordinator.run_report.wording import clean, span, when

STYLES = {
    "succeeded": "green",
    "completed": "bold green",
    "running": "bold cyan",
    "queued": "cyan",
    "awaiting": "yellow",
    "paused": "bold yellow",
    "needs_review": "bold magenta",
    "failed": "bold red",
    "critical_failure": "bold red",
    "denied": "red",
    "blocked": "red",
    "canceled": "dim",
    "skipped": "dim",
    "pending": "dim",
}

LINES_AROUND = 9
"""Screen lines that are not task rows: heading, column names, budgets, summary, the prompt."""

FEWEST_ROWS = 3

QUICKEST_LOOK = 0.03
"""Seconds until the next look at a run in which something happened just now."""
QUICKEST_DRAWING = 0.08
DRAWING_PER_TASK = 0.00002
"""Seconds between two drawings, the more the larger the team: at 100,000 tasks two."""
SLOWEST_LOOK = 0.2
"""Seconds between two looks at a run in which nothing happens; the clock on the screen moves as often."""


class Progress:
    """Shows a run while it goes on. A context manager, because a terminal must be given back as it was."""

    def __init__(self, console: Console | None = None, *, plain: bool = False) -> None:
        """console: where to draw; the standard error by default. plain: lines alone, even on a terminal."""
        self.console = console or Console(stderr=True, highlight=False)
        self._plain = plain
        self._live: Live | None = None
        self._next_drawing = 0.0

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.console.is_dumb_terminal and not self._plain:
            self._live = Live(console=self.console, auto_refresh=False, vertical_overflow="crop")
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def show(self, view: RunView, events: Sequence[Mapping[str, str]]) -> None:
        """Draws the view, or writes a line for each new event."""
        if self._live:
            at = time.monotonic()
            if view.run and (view.is_at_rest or at >= self._next_drawing):
                self._live.update(draw(view, self.console.height), refresh=True)
                self._next_drawing = at + QUICKEST_DRAWING + len(view.rows) * DRAWING_PER_TASK
            return
        for event in events:
            line = plain_line(event)
            if line:
                self.console.print(Text(line), soft_wrap=True)

    def say(self, text: str) -> None:
        """Writes a line above the table."""
        self.console.print(Text(text), soft_wrap=True)


def follow(
    feed: RunFeed, progress: Progress, check: Callable[[RunView], None] | None = None, beyond: int = -1
) -> RunView:
    """Shows a run until it ends or parks, and gives what is known then. Raises Unreachable.

    check: called at every look; what it raises ends the following. beyond: number of a stop that does not
    count, because it is known and a person is about to move the run.
    """
    pause = QUICKEST_LOOK
    while True:
        events = feed.look()
        progress.show(feed.view, events)
        if check:
            check(feed.view)
        if feed.view.is_at_rest and count(feed.view.run, "stop_seq") > beyond:
            feed.settle()
            progress.show(feed.view, ())
            return feed.view
        pause = QUICKEST_LOOK if events else min(pause * 1.5, SLOWEST_LOOK)
        time.sleep(pause)


def draw(view: RunView, height: int) -> RenderableType:
    """The whole picture of a run, for a screen of so many lines."""
    budgets = _budgets(view.run)
    rows = view.most_interesting(max(height - LINES_AROUND - budgets.row_count, FEWEST_ROWS))
    parts: list[RenderableType] = [_heading(view), _task_table(rows)]
    hidden = len(view.rows) - len(rows)
    if hidden > 0:
        parts.append(Text(f"… and {hidden} more tasks", style="dim"))
    parts += [budgets, _summary(view)]
    return Group(*parts)


def _heading(view: RunView) -> Text:
    status = view.status
    heading = Text(no_wrap=True, overflow="ellipsis")
    heading.append(clean(view.run.get("team", ""), 60), style="bold")
    heading.append(f" · {clean(view.run.get('run', ''), 60)} · ")
    heading.append(status, style=STYLES.get(status, "bold"))
    heading.append(f" · {span(_elapsed(view.run) // 100 * 100)}")
    return heading


def _elapsed(run: Mapping[str, str]) -> int:
    ended = number(run, "ended_at") or number(run, "stop_at")
    return max((ended or int(time.time() * 1000)) - count(run, "created_at"), 0)


def _task_table(rows: Sequence[Row]) -> Table:
    """One line a task; the columns are as wide as they must be, and the note gets what is left."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    cells = [_cells(row) for row in rows]
    for title, most in (("task", 40), ("state", 12), ("attempt", 9), ("role", 20)):
        at = len(table.columns)
        width = min(max([len(title), *(len(line[at]) for line in cells)]), most)
        table.add_column(title, no_wrap=True, overflow="ellipsis", width=width)
    table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
    for line in cells:
        table.add_row(*line)
    return table


def _cells(row: Row) -> tuple[Text, Text, Text, Text, Text]:
    name = Text(clean(row.name, 80))
    if not row.required:
        name.append(" (optional)", style="dim")
    return (
        name,
        Text(row.state, style=STYLES.get(row.state, "")),
        Text(f"{row.attempt}/{row.max_attempts}" if row.attempt else ""),
        Text("external" if row.external else clean(row.role, 40)),
        Text(_note(row)),
    )


def _note(row: Row) -> str:
    if row.state == "running":
        lasting = (
            f" for {span(max(int(time.time() * 1000) - row.since, 0) // 100 * 100)}" if row.since else ""
        )
        return f"{clean(row.worker, 40)}{lasting}"
    if row.state == "queued" and row.external:
        return "waits for crewline report-task"
    return row.note


def _budgets(run: Mapping[str, str]) -> Table:
    """A bar for each limit that the team sets: used, and reserved beside it."""
    table = Table.grid(padding=(0, 1))
    for name in ("step_budget", "max_steps", "tokens", "cost"):
        limit = number(run, f"limit_{name}")
        if limit is None:
            continue
        used = count(run, "reports") if name == "max_steps" else count(run, f"used_{name}")
        reserved = count(run, f"reserved_{name}")
        shown = (lambda n: money(n) or "") if name == "cost" else str
        text = f"{shown(used)} of {shown(limit)}" + (f", {shown(reserved)} reserved" if reserved else "")
        style = "red" if used + reserved >= limit else "cyan"
        bar = ProgressBar(
            total=max(limit, 1), completed=min(used + reserved, limit), width=24, complete_style=style
        )
        table.add_row(Text(name, style="dim"), bar, text)
    return table


def _summary(view: RunView) -> Text:
    counts = view.counts()
    text = Text(no_wrap=True, overflow="ellipsis")
    for state, style in STYLES.items():
        if counts.get(state):
            text.append("  " if text else "")
            text.append(f"{counts[state]} {state}", style=style)
    return text


def plain_line(event: Mapping[str, str]) -> str:
    """One event as a line of a log; empty for events that changed nothing worth a line."""
    task, kind = clean(event.get("task_id", ""), 80), event.get("kind", "")
    at = when(number(event, "at"))[11:]
    if is_of_run(event) or not task:
        decided = f" by {task}" if task else ""
        return f"{at} {kind.replace('_', ' ')}: {event.get('to') or clean(event.get('reason', ''))}{decided}"
    if kind == "task_queued" or not event.get("to"):
        return ""
    row = Row(task, event["to"], "", True, False)
    view = RunView(rows={task: row})
    view.apply({**event, "task_id": task})
    attempt = f", attempt {event['attempt']}" if count(event, "attempt") else ""
    worker = f" by {clean(event['worker'], 40)}" if event.get("worker") and event["to"] == "running" else ""
    return f"{at} {task} {event['to']}{attempt}{worker}{': ' + row.note if row.note else ''}"
