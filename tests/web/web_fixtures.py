"""Fixtures of the tests of the web pages: a real `keisei web`, and pages in headless Chromium.

tests/conftest.py takes them over, so every test has them. Those below tests/web/browser are marked `browser`;
`make browser` installs what they need, and without it they are not even collected.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from web_server import Web, web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright

BROWSER_TESTS = Path(__file__).parent / "browser"
_NAMES = ("chromium", "chromium-browser", "google-chrome")  # as in the Makefile
CHROMIUM = os.environ.get("KEISEI_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 120_000  # for a busy machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BROWSER_TESTS in item.path.parents:
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


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server over the run "first" with metrics, games of both kinds, results and a checkpoint."""
    from made_runs import made_run  # which needs what only the whole package has

    folder = tmp_path_factory.mktemp("site")
    made_run(folder / "runs" / "first")
    with web(folder) as server:
        yield server


@contextmanager
def watched(context: "BrowserContext") -> "Iterator[Page]":
    """Yield a page of a context; errors on its console and in its scripts fail the test at the end."""
    context.set_default_timeout(PATIENCE_MS)
    page, errors = context.new_page(), list[str]()

    def note(message: "ConsoleMessage") -> None:
        if message.type == "error":
            errors.append(f"{message.text} ({message.location.get('url', '')})")

    page.on("console", note)
    page.on("pageerror", lambda error: errors.append(error.stack or str(error)))
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
