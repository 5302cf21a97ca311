"""conversation.md: two whole ones to compare, and that no text of a thread leaves its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coordinator.agent_threads import outline, read_thread, render_thread, thread_document
from coordinator.agent_threads.quoting import code, link, one_line, quoted
from tests.support.threads import background, notification, payload, step, thread, turn

GOLDEN = Path(__file__).parent / "golden"


def rendered(document: Any) -> str:
    return render_thread(outline(read_thread(document)))


@pytest.mark.parametrize("name", ["five-kinds", "healthy"])
def test_whole_conversations(name: str) -> None:
    """When the rendering was changed on purpose: `crewline thread render NAME.thread.json --out DIR`, look, copy."""
    document = json.loads((GOLDEN / f"{name}.thread.json").read_text())
    assert rendered(document) == (GOLDEN / f"{name}.conversation.md").read_text()


def test_five_kinds_at_four_levels_are_listed() -> None:
    document = json.loads((GOLDEN / "five-kinds.thread.json").read_text())
    expected = json.loads((GOLDEN / "five-kinds.interruptions.json").read_text())
    assert thread_document(outline(read_thread(document))) == document | {"interruptions": expected}


def test_a_thread_without_interruptions_has_no_trace_of_the_feature() -> None:
    document = json.loads((GOLDEN / "healthy.thread.json").read_text())
    found = outline(read_thread(document))
    assert render_thread(found, marks=False) == (GOLDEN / "healthy.conversation.md").read_text()
    assert thread_document(found) == document


def test_a_notification_keeps_its_own_answer_empty() -> None:
    child = payload("a", done=0, steps=[step(text="The child's answer.", variant="answer")])
    page = rendered(thread([notification("n", 0)], [background(child)]))
    own = page.split("\n### Answer\n")[1]
    assert own == "\n_(none)_\n"
    assert page.count("The child's answer.") == 1
    assert page.index("### Sub-agent work") < page.index("The child's answer.") < page.index("\n### Answer\n")


def test_an_item_of_an_unknown_kind_is_shown_whole() -> None:
    item = {"type": "A <b>KIND</b>", "payload": {"code": "print('```')"}}
    page = rendered(thread([turn("e", 0, {"items": [item]})], []))
    assert "<summary>A &lt;b&gt;KIND&lt;/b&gt;</summary>" in page
    assert "````json\n" in page
    assert "print('```')" in page


def test_very_deep_folds_are_counted_and_not_shown() -> None:
    inner = payload("w20", steps=[step(text="deepest")])
    for number in range(19, 0, -1):
        inner = payload(f"w{number}", steps=[step(inner)])
    page = rendered(thread([turn("e", 0, step(inner))], []))
    assert page.count("<details>") == page.count("</details>") == 8
    assert "A further nested workflow of 1 step" in page


EVIL = "# A title\n## Turn 99\n</details>\n<!-- <script>\n```\n</details>\r\n\u2028## Turn 98\x1b[2J\n<b>x</b> <https://a.example/>"


def test_no_text_leaves_its_place() -> None:
    inner = payload(
        "wf", headline=EVIL, steps=[step(text=EVIL, title=EVIL), step(text=EVIL, variant=EVIL)], answer=EVIL
    )
    child = payload(
        "a", headline=EVIL, objective_chunks=[EVIL], status=EVIL, answer=EVIL, steps=[step(inner)]
    )
    sources = [{"name": EVIL, "url": "javascript:alert(1)"}, {"name": EVIL, "url": "https://x.example/)](y"}]
    entry = turn("e", 0, step(inner, payload("a")), query_str=EVIL, answer=EVIL, sources=sources)
    page = rendered(thread([entry], [background(child)], title=EVIL, uuid=EVIL))
    lines = page.split("\n")
    assert [line for line in lines if line.startswith("#")] == [
        "# " + one_line(EVIL),
        "## Turn 1 · 2026-02-23 10:00:00 UTC",
        "### Work steps",
        "### Sub-agent: " + one_line(outline_headline(EVIL)),
        "### Answer",
        "### Sources",
    ]
    assert lines.count("<details>") == lines.count("</details>") == 2
    outside_code = re.sub(r"(`+)[^`].*?[^`]\1(?!`)", "", page)
    assert not any(
        word in outside_code for word in ("<!--", "<script", "\x1b", "\u2028", "\r", "](javascript")
    )
    assert "<https://a.example/>" in page


def outline_headline(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:79] + "…"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\n\n  b", ["> a", ">", ">   b"]),
        ("1 < 2 <b>", ["> 1 < 2 &lt;b>"]),
        ("`<b>` and ``a`<i>`` <b>", ["> `<b>` and ``a`<i>`` &lt;b>"]),
        ("```html\n<b>\n```\n<b>", ["> ```html", "> <b>", "> ```", "> &lt;b>"]),
        ("~~~\n```\n<b>\n~~~~\n<b>", ["> ~~~", "> ```", "> <b>", "> ~~~~", "> &lt;b>"]),
        ("```a`b\n<b>", ["> ```a`b", "> &lt;b>"]),
        ("```\n</details>\n<!--", ["> ```", "> &lt;/details>", "> &lt;!--"]),
        ("`</details>`", ["> `&lt;/details>`"]),
    ],
)
def test_quotes_keep_markdown_and_show_tags(text: str, lines: list[str]) -> None:
    assert quoted(text) == lines


def test_words_in_a_line() -> None:
    assert code("a``b") == "```a``b```"
    assert code("`x") == "`` `x ``"
    assert link("n", "ftp://x") == "n (ftp://x)"
    assert link("a]b", "https://x.example/(1)") == r"[a\]b](https://x.example/%281%29)"
