"""How every view looks: light and dark, narrow, in both languages, offline, by keyboard."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from look_probes import FOCUSABLE, FOCUSED, LABELS, MISSED, NAMELESS, OUTSIDE, PALE, SHARP
from PIL import Image
from web_fixtures import CHROMIUM, watched
from web_server import Web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

SCRIPT = Path(__file__).parents[3] / "scripts" / "photograph_page.py"
NARROW, USUAL = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
VIEWS = ("live", "games", "replay", "play", "ladder")
SHOWN = {
    "live": "main[data-step='204800']",
    "games": ".list tbody tr",
    "replay": "main svg.board",
    "play": "main button",
    "ladder": ".ladders tbody tr",
}
KANA = re.compile(r"[\u3040-\u30ff]")

BACKGROUND = "() => getComputedStyle(document.body).backgroundColor"


def path(site: Web, view: str) -> str:
    game = site.get("/api/games?reason=checkmate")["games"][0]["id"]
    return {"live": "/", "games": "/games", "replay": f"/games/{game}", "play": "/play", "ladder": "/ladder"}[
        view
    ]


def open_view(page: "Page", site: Web, view: str) -> None:
    page.goto(site.base + path(site, view))
    page.locator(SHOWN[view]).first.wait_for()
    if view == "live":
        page.locator(".live-board").first.wait_for()
        page.locator("#strength .elo").wait_for()


@pytest.fixture
def look(browser: "Browser", site: Web) -> Callable[..., Any]:
    """Return a function that opens a view under some conditions and gives the page to another function."""

    def opened(
        view: str, what: "Callable[[Page, BrowserContext], Any]", lang: str = "en", **conditions: Any
    ) -> Any:
        context = browser.new_context(locale={"en": "en-GB", "ja": "ja-JP"}[lang], **conditions)
        try:
            with watched(context) as page:
                open_view(page, site, view)
                return what(page, context)
        finally:
            context.close()

    return opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_texts_are_legible(look: Callable[..., Any], view: str, scheme: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        assert page.evaluate(PALE) == []
        red, green, blue = map(int, re.findall(r"\d+", page.evaluate(BACKGROUND)))
        assert (red + green + blue < 200) == (scheme == "dark")

    look(view, check, color_scheme=scheme, viewport=USUAL)


@pytest.mark.parametrize("view", VIEWS)
def test_a_chosen_theme_outlasts_a_reload(look: Callable[..., Any], view: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        light = page.evaluate(BACKGROUND)
        page.locator("#theme").click()  # light
        page.locator("#theme").click()  # dark
        dark = page.evaluate(BACKGROUND)
        assert dark != light
        page.reload()
        page.locator("#theme").wait_for()
        assert page.evaluate(BACKGROUND) == dark

    look(view, check, color_scheme="light", viewport=USUAL)


@pytest.mark.parametrize("lang", ["en", "ja"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_narrow_page_does_not_scroll_sideways(look: Callable[..., Any], view: str, lang: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        assert page.evaluate("() => document.documentElement.scrollWidth") == NARROW["width"]
        assert page.evaluate(OUTSIDE) == []

    look(view, check, lang, viewport=NARROW, is_mobile=True, has_touch=True)


@pytest.mark.parametrize("view", VIEWS)
def test_both_languages(look: Callable[..., Any], view: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        assert page.evaluate("() => document.documentElement.lang") == "ja"
        japanese = page.locator("#shell nav").inner_text(), page.locator("main").inner_text()
        assert all(KANA.search(text) or re.search(r"[\u4e00-\u9fff]", text) for text in japanese), japanese
        assert not re.search(r"[A-Za-z]{2,}(?: [A-Za-z]{2,}){4}", page.locator("main").inner_text())
        labels = page.evaluate(LABELS)
        assert [label for label in labels if re.search(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}", label)] == []
        page.locator("#language").click()
        page.wait_for_function(
            "() => document.documentElement.lang === 'en' && document.querySelector('nav')"
        )
        page.locator(SHOWN[view]).first.wait_for()
        assert not KANA.search(page.locator("main").inner_text())

    look(view, check, "ja", viewport=USUAL)


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_asked_of_another_host(browser: "Browser", site: Web, view: str) -> None:
    context = browser.new_context(locale="en-GB")
    asked: list[str] = []
    try:
        with watched(context) as page:
            page.on("request", lambda request: asked.append(request.url))
            open_view(page, site, view)
            page.wait_for_function("() => document.readyState === 'complete'")
    finally:
        context.close()
    assert len(asked) > 5
    assert {urlsplit(url).netloc for url in asked if not url.startswith("data:")} == {
        urlsplit(site.base).netloc
    }


@pytest.mark.parametrize("view", VIEWS)
def test_the_keyboard_reaches_everything_visibly(look: Callable[..., Any], view: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        wanted = page.evaluate(FOCUSABLE)
        assert wanted > 7
        unseen = list[str]()
        page.locator("body").evaluate(
            "body => { body.tabIndex = -1; body.focus(); body.removeAttribute('tabindex'); }"
        )
        for _press in range(wanted + 10):  # a browser may add areas that scroll
            page.keyboard.press("Tab")
            if (now := page.evaluate(FOCUSED)) is None:
                break
            if not now[0]:
                unseen.append(now[1])
        assert page.evaluate(MISSED) == []
        assert unseen == []

    look(view, check, viewport=USUAL, reduced_motion="reduce")


@pytest.mark.parametrize("view", VIEWS)
def test_everything_has_a_name(look: Callable[..., Any], view: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        assert page.evaluate(NAMELESS) == []
        assert page.locator("h1").count() >= 1

    look(view, check, viewport=USUAL)


def test_a_resized_chart_is_drawn_in_the_screens_own_pixels(look: Callable[..., Any]) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        page.wait_for_function(SHARP)
        before = page.evaluate(SHARP)
        page.set_viewport_size({"width": 900, "height": 900})
        page.wait_for_function(f"before => ({SHARP})() && ({SHARP})() !== before", arg=before)

    look("live", check, viewport=USUAL, device_scale_factor=2)


def test_the_script_takes_a_picture_of_few_colours(site: Web, tmp_path: Path) -> None:
    out, chosen = tmp_path / "page.png", tmp_path / "chosen"
    chosen.write_text(f'#!/bin/sh\ntouch "$0.started"\nexec {CHROMIUM} "$@"\n', encoding="utf-8")
    chosen.chmod(0o755)
    command = [sys.executable, str(SCRIPT), site.base, str(out), "--seconds", "0.5", "--width", "800"]
    environment = {**os.environ, "KEISEI_CHROMIUM": str(chosen)}
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    assert Path(f"{chosen}.started").exists()
    with Image.open(out) as picture:
        assert picture.size == (1280, 1872)
        colors = picture.getcolors(256)
        background = picture.convert("RGB").getpixel((4, 400))
    assert colors is not None
    assert len(colors) > 20
    assert isinstance(background, tuple)
    assert max(abs(one - other) for one, other in zip(background, (245, 244, 240), strict=True)) <= 2
    assert told == f"{out}: {out.stat().st_size / 1000:.0f} kB\n"
