"""Pages in headless Chromium, against a real `keisei web`. Every test here is marked `browser`.

`make browser` installs what is needed; otherwise nothing here is collected.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright

HERE = Path(__file__).parent
CHROMIUM = os.environ.get("KEISEI_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000  # for a busy machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def playwright() -> "Iterator[Playwright]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: "Playwright") -> "Iterator[Browser]":
    assert CHROMIUM is not None, "no chromium: make browser installs it"
    launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    yield launched
    launched.close()


@contextmanager
def watched(context: "BrowserContext") -> "Iterator[Page]":
    """Yield a page of a context; errors on its console and in its scripts fail the test at the end."""
    context.set_default_timeout(PATIENCE_MS)
    page, errors = context.new_page(), list[str]()

    def note(message: "ConsoleMessage") -> None:
        if message.type == "error":
            errors.append(f"{message.text} ({message.location.get('url', '')})")

    page.on("console", note)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert not errors, errors


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """A page in a fresh context: English, 1280×900."""
    context = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 900})
    try:
        with watched(context) as opened:
            yield opened
    finally:
        context.close()
