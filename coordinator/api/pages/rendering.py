"""Owns the templates: where they stand, and the few filters that they use. Everything is escaped."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from coordinator.api.pages.sessions import Visitor
from coordinator.run_report.wording import clean, span, when
from coordinator.wire.names import RunStatus, TaskState

LONGEST_SHOWN = 20_000
"""Characters of a payload that a page shows; the report has the whole of it."""


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("coordinator.api.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        clean=clean, when=when, span=span, words=_words, pretty=_pretty, capitalize_first=_capitalize_first
    )
    environment.globals.update(
        run_statuses=[str(status) for status in RunStatus], task_states=[str(state) for state in TaskState]
    )
    return environment


def render(
    name: str, request: Request, visitor: Visitor | None, code: int = 200, **values: Any
) -> HTMLResponse:
    """A page from a template. visitor: None on pages that need no session."""
    text = _environment().get_template(name).render(visitor=visitor, path=request.url.path, **values)
    return HTMLResponse(text, code)


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def _pretty(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "\n…"


def _capitalize_first(text: str) -> str:
    return text[:1].upper() + text[1:]
