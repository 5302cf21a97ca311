"""Owns a run's document: the report as data, bytes, Markdown, and its one-screen explanation. Pure."""

from coordinator.run_report.build import RunReport, build_report
from coordinator.run_report.encode import canonical_bytes
from coordinator.run_report.explain import Explanation, explain, summarize
from coordinator.run_report.markdown import render_markdown
from coordinator.run_report.remedies import remedies

__all__ = [
    "Explanation",
    "RunReport",
    "build_report",
    "canonical_bytes",
    "explain",
    "remedies",
    "render_markdown",
    "summarize",
]
