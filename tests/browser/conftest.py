"""Owns the browser of these tests: Debian's Chromium, headless, and a watch over what it complains about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.support.api_server import Served, running_api, running_coordinator

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
KEPT = Path(__file__).parents[2] / "docs" / "screenshots"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests; CREWLINE_CHROMIUM names another than the one on the PATH."""
    path = os.environ.get("CREWLINE_CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def served(redis_url: str, tmp_path: Path) -> Iterator[Served]:
    """The API and its pages, with a coordinator that leads."""
    with running_coordinator(redis_url), running_api(redis_url, tmp_path) as served:
        yield served


Visit = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, served: Served) -> Iterator[Visit]:
    """Opens a page in a context of its own; what the browser complains about fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    def open_page(path: str = "/", token: str = "", **options: Any) -> Page:
        context = browser.new_context(base_url=served.url, locale="en-GB", timezone_id="UTC", **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", listen)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path)
        if token:
            page.fill("#token", token)
            page.press("#token", "Enter")
            page.wait_for_url(lambda url: "/login" not in url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def picture(tmp_path: Path) -> Callable[..., None]:
    """Takes a screenshot; CREWLINE_SCREENSHOTS=1 keeps it under docs/."""
    folder = KEPT if os.environ.get("CREWLINE_SCREENSHOTS") else tmp_path

    def take(page: Page, name: str, whole: bool = True) -> None:
        page.screenshot(path=folder / f"{name}.png", full_page=whole)

    return take
