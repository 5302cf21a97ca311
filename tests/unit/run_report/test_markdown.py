"""Markdown holds the same facts, and nobody's text can break out of its place."""

from __future__ import annotations

from typing import Any

from markdown_it import MarkdownIt

from coordinator.run_report import build_report, render_markdown


def test_tells_the_whole_report(refund: Any) -> None:
    text = render_markdown(build_report(refund))
    for part in (
        "# r1: critical_failure",
        "## Stop",
        "## Budgets",
        "## Tasks",
        "## Blocked",
        "## Errors",
        "## Events",
    ):
        assert part in text
    assert "policy → reply" in text
    assert "12345678901234567890123" in text


def test_the_same_report_gives_the_same_text(refund: Any) -> None:
    assert render_markdown(build_report(refund)) == render_markdown(build_report(refund))


def test_texts_stay_in_their_cells_and_fences(new_snapshot: Any) -> None:
    snapshot = new_snapshot("failed")
    error = '{"class":"permanent","type":"E","message":"a | b\\n# Title <script> `x`"}'
    snapshot.task("a", "failed", error=error, reason="| x |")
    digest = snapshot.result("sha256:1", '"```\\n# Broken out"')
    snapshot.task("b", "succeeded", digest=digest)
    tokens = MarkdownIt("commonmark").enable("table").parse(render_markdown(build_report(snapshot)))
    headings = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    assert "Title" not in " ".join(headings)
    assert "Broken out" not in " ".join(headings)
    assert not [token for token in tokens if token.type == "html_block"]


def test_a_long_payload_is_cut_and_says_so(new_snapshot: Any) -> None:
    snapshot = new_snapshot("completed")
    snapshot.task("a", "succeeded", digest=snapshot.result("sha256:1", f'"{"x" * 9000}"'))
    assert "more characters stand in the JSON report" in render_markdown(build_report(snapshot))
