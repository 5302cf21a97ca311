"""Owns conversation.md: an exported thread for a person to read (docs/thread-format.md).

Pure: reads the outline alone, which says where everything belongs and how it stands. Must not let a text of the thread
end its own block. A thread without interruptions is rendered to the same bytes with marks and without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator.agent_threads.model import ANSWER, Item, Payload, Source, Step, Turn
from coordinator.agent_threads.outline import Outline, Section
from coordinator.agent_threads.quoting import code, fenced, in_html, link, one_line, quoted
from coordinator.agent_threads.times import shown_instant

DEEPEST_FOLD = 8
"""Nested workflows in one another that are shown; what lies deeper is counted, and stands in thread.json."""
APPENDIX_TITLE = "Background work (unassigned)"
STUB_TITLE = "Sub-agent work"
_UNTITLED = "(untitled)"
_NOTHING = "_(none)_"


def render_thread(found: Outline, *, marks: bool = True) -> str:
    """Gives the conversation as Markdown, ended by a newline. `marks`: whether headings say what was interrupted."""
    return "\n".join(_Page(found, marks).lines()) + "\n"


class _Page:
    """One conversation being written; holds what every part needs to know."""

    def __init__(self, found: Outline, marks: bool) -> None:
        self._found = found
        self._marks = marks

    def lines(self) -> Iterator[str]:
        thread = self._found.thread
        yield f"# {one_line(thread.title) or _UNTITLED}"
        facts = [("Thread", thread.id), ("Last updated", thread.last_updated)]
        if any(value for _, value in facts):
            yield ""
            yield " · ".join(f"{name} {code(value)}" for name, value in facts if value)
        for section in self._found.turns:
            yield from self._turn(section)
        if self._found.unassigned:
            yield from ["", f"## {APPENDIX_TITLE}"]
        for section in self._found.unassigned:
            yield from self._subagent(section, 3, "")

    def _turn(self, section: Section) -> Iterator[str]:
        turn = section.work
        assert isinstance(turn, Turn)
        at = shown_instant(turn.created_at)
        yield from self._heading(2, f"Turn {turn.number}" + (f" · {at}" if at else ""), section)
        if turn.query:
            yield from ["", *quoted(turn.query)]
        elif turn.notification:
            yield from ["", "_A notification that a sub-agent has ended._"]
        yield from self._steps(section, "### Work steps")
        for subagent in section.subagents:
            yield from self._subagent(subagent, 3, "Sub-agent: ")
        if section.stubs:
            yield from ["", f"### {STUB_TITLE}"]
        for stub in section.stubs:
            yield from self._subagent(stub, 4, "")
        yield from ["", "### Answer", "", *(quoted(turn.answer) if turn.answer.strip() else [_NOTHING])]
        yield from _sources(turn.sources, "### Sources")

    def _subagent(self, section: Section, level: int, what: str) -> Iterator[str]:
        payload = section.work
        assert isinstance(payload, Payload)
        yield from self._heading(level, what + (one_line(section.headline) or _UNTITLED), section)
        facts = [
            f"{name} {code(value)}"
            for name, value in (
                ("id", payload.id),
                ("status", section.status),
                ("completed", shown_instant(payload.completed_at)),
            )
            if value
        ]
        if facts:
            yield from ["", " · ".join(facts)]
        if payload.objective:
            yield from ["", "**Objective**", "", *quoted(payload.objective)]
        yield from self._steps(section, "**Steps**")
        yield from ["", "**Answer**", "", *(quoted(payload.answer) if payload.answer.strip() else [_NOTHING])]
        yield from _sources(payload.sources, "**Sources**")
        for subagent in section.subagents:
            yield from self._subagent(subagent, min(level + 1, 6), "Sub-agent: ")

    def _steps(self, section: Section, title: str, fold: int = 0) -> Iterator[str]:
        steps = section.work.steps
        if steps and title:
            yield from ["", title]
        for number, step in enumerate(steps, 1):
            yield from ["", _step_title(number, step)]
            for item in step.items:
                yield from self._item(item, section, fold)

    def _item(self, item: Item, section: Section, fold: int) -> Iterator[str]:
        if item.text.strip() and item.variant != ANSWER:
            if item.variant:
                yield from ["", f"_{one_line(item.variant)}_"]
            yield from ["", *quoted(item.text)]
        if item.payload is not None:
            nested = section.nested.get(id(item.payload))
            yield from [""]
            yield from self._fold(nested, fold) if nested else self._mention(item.payload, section)
        if item.rest is not None:
            yield from ["", *_folded(in_html(item.type or "item"), fenced(item.rest))]

    def _mention(self, payload: Payload, section: Section) -> Iterator[str]:
        """A sub-agent in the steps of its parent: its own section tells of it, in its one place."""
        where = self._found.told_at.get(payload.id, "")
        place = where.partition("/")[0]
        if not where or where.startswith(f"{section.location}/"):
            hint = "below"
        elif place.startswith("turn_"):
            hint = f"see turn {int(place[5:])}"
        else:
            hint = f"see {APPENDIX_TITLE}"
        name = one_line(payload.headline or payload.objective[:80]) or one_line(payload.id) or _UNTITLED
        yield f"→ sub-agent **{name}** ({hint})"

    def _fold(self, section: Section, fold: int) -> Iterator[str]:
        payload = section.work
        assert isinstance(payload, Payload)
        count = len(payload.steps)
        if fold >= DEEPEST_FOLD:
            yield f"_A further nested workflow of {count} step{'s' * (count != 1)}, which thread.json holds._"
            return
        name = in_html(section.headline) or _UNTITLED
        summary = f"Nested workflow: {name} ({count} step{'s' * (count != 1)}){self._mark(section)}"
        inside: list[str] = []
        if payload.objective:
            inside += ["", "**Objective**", "", *quoted(payload.objective)]
        inside += self._steps(section, "", fold + 1)
        if payload.answer.strip():
            inside += ["", "**Answer**", "", *quoted(payload.answer)]
        inside += _sources(payload.sources, "**Sources**")
        yield from _folded(summary, inside[1:] or [_NOTHING])

    def _heading(self, level: int, text: str, section: Section) -> Iterator[str]:
        yield from ["", f"{'#' * level} {text}{self._mark(section)}"]

    def _mark(self, section: Section) -> str:
        return f" {section.mark}" if self._marks and section.mark else ""


def _step_title(number: int, step: Step) -> str:
    parts = [one_line(step.title), code(step.tool) if step.tool else ""]
    text = " · ".join(part for part in parts if part)
    return f"**{number}.** {text}".rstrip()


def _sources(sources: Iterable[Source], title: str) -> list[str]:
    lines = [f"- {link(source.name, source.url)}" for source in sources]
    return ["", title, "", *lines] if lines else []


def _folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>"]
