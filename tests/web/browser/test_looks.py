"""How every view looks: light and dark, narrow, in both languages, offline, by keyboard."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from conftest import watched
from web_server import Web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

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

# Texts that are in sight and not large enough, or not different enough from what is behind them: WCAG AA.
PALE = """() => {
  const channels = color => (color.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a)); };
  const behind = node => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      layers.push(color);
      if ((color[3] ?? 1) === 1) break;
    }
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255]);
  };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || node.closest("svg, option, .unseen, [hidden], :disabled, [aria-pressed=false]") || !node.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(node), back = behind(node), fore = over(channels(style.color), back);
    const [light, dark] = [luminance(fore), luminance(back)].sort((a, b) => b - a), ratio = (light + 0.05) / (dark + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.5 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5) || parseFloat(style.fontSize) < 11) found.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}, ${style.fontSize}`);
  }
  return found;
}"""

# What can be reached by Tab: of the radio buttons of a group, one.
FOCUSABLE = """() => {
  const names = new Set(), wanted = [];
  for (const node of document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")) {
    if (node.tabIndex < 0 || node.disabled || !node.checkVisibility({ visibilityProperty: true })) continue;
    if (node.type === "radio") { if (names.has(node.name)) continue; names.add(node.name); }
    wanted.push(node);
  }
  window.wanted = wanted;
  return wanted.length;
}"""

MISSED = """() => window.wanted.filter(node => !window.reached.has(node.type === "radio" ? node.name : node)).map(node => node.outerHTML.slice(0, 80))"""

# Where the focus is, noted, and whether that can be seen.
FOCUSED = """() => {
  const node = document.activeElement;
  window.reached ??= new Set();
  if (node === document.body) return null;
  const key = node.type === "radio" ? node.name : node;
  window.reached.add(key);
  const rings = [node, node.nextElementSibling, node.parentElement].flatMap(one => one ? [getComputedStyle(one), getComputedStyle(one, "::after")] : []);
  const box = node.getBoundingClientRect();
  return [rings.some(style => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || box.width === 0,
    `${node.tagName} ${node.id} ${node.getAttribute("class")} ${(node.getAttribute("aria-label") ?? node.textContent).slice(0, 40)}`];
}"""


def path(site: Web, view: str) -> str:
    game = site.get("/api/games?reason=checkmate")["games"][0]["id"]
    return {"live": "/", "games": "/games", "replay": f"/games/{game}", "play": "/play", "ladder": "/ladder"}[view]


def open_view(page: "Page", site: Web, view: str) -> None:
    page.goto(site.base + path(site, view))
    page.locator(SHOWN[view]).first.wait_for()
    if view == "live":
        page.locator(".live-board").first.wait_for()
        page.locator("#strength .elo").wait_for()


@pytest.fixture
def look(browser: "Browser", site: Web) -> Callable[..., Any]:
    """Return a function that opens a view under some conditions and gives the page to another function."""

    def opened(view: str, what: "Callable[[Page, BrowserContext], Any]", lang: str = "en", **conditions: Any) -> Any:
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
        red, green, blue = map(int, re.findall(r"\d+", page.evaluate("() => getComputedStyle(document.body).backgroundColor")))
        assert (red + green + blue < 200) == (scheme == "dark")

    look(view, check, color_scheme=scheme, viewport=USUAL)


@pytest.mark.parametrize("view", VIEWS)
def test_a_chosen_theme_outlasts_a_reload(look: Callable[..., Any], view: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        background = "() => getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(background)
        page.locator("#theme").click()  # light
        page.locator("#theme").click()  # dark
        dark = page.evaluate(background)
        assert dark != light
        page.reload()
        page.locator("#theme").wait_for()
        assert page.evaluate(background) == dark

    look(view, check, color_scheme="light", viewport=USUAL)


@pytest.mark.parametrize("lang", ["en", "ja"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_narrow_page_does_not_scroll_sideways(look: Callable[..., Any], view: str, lang: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        assert page.evaluate("() => document.documentElement.scrollWidth") == NARROW["width"]
        outside = page.evaluate(
            """() => [...document.querySelectorAll("main *")].filter(node => !node.closest("svg, .scroll, .unseen, thead") && node.checkVisibility()
              && (node.getBoundingClientRect().right > innerWidth + 1 || node.getBoundingClientRect().left < -1)).map(node => node.outerHTML.slice(0, 80))"""
        )
        assert outside == []

    look(view, check, lang, viewport=NARROW, is_mobile=True, has_touch=True)


@pytest.mark.parametrize("view", VIEWS)
def test_both_languages(look: Callable[..., Any], view: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        assert page.evaluate("() => document.documentElement.lang") == "ja"
        japanese = page.locator("#shell nav").inner_text(), page.locator("main").inner_text()
        assert all(KANA.search(text) or re.search(r"[\u4e00-\u9fff]", text) for text in japanese), japanese
        labels = page.evaluate(
            "() => [...document.querySelectorAll('main [aria-label], main [title]')].map(node => node.getAttribute('aria-label') ?? node.title)"
        )
        assert [label for label in labels if re.search(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}", label)] == []
        page.locator("#language").click()
        page.wait_for_function("() => document.documentElement.lang === 'en' && document.querySelector('#shell nav')")
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
    assert {urlsplit(url).netloc for url in asked if not url.startswith("data:")} == {urlsplit(site.base).netloc}


@pytest.mark.parametrize("view", VIEWS)
def test_the_keyboard_reaches_everything_visibly(look: Callable[..., Any], view: str) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        wanted = page.evaluate(FOCUSABLE)
        assert wanted > 7
        unseen = list[str]()
        page.locator("body").evaluate("body => { body.tabIndex = -1; body.focus(); body.removeAttribute('tabindex'); }")
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
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, a[href], input, select, canvas, svg[role=img], [role=application], [role=img]")]
              .filter(node => node.checkVisibility() && !node.getAttribute("aria-label") && !node.textContent.trim() && !node.labels?.length && !node.closest("label") && !node.closest("[aria-hidden=true]")
                && !node.getAttribute("aria-labelledby")).map(node => node.outerHTML.slice(0, 100))"""
        )
        assert nameless == []
        assert page.locator("h1").count() >= 1

    look(view, check, viewport=USUAL)


def test_a_resized_chart_is_drawn_in_the_screens_own_pixels(look: Callable[..., Any]) -> None:
    def check(page: "Page", _: "BrowserContext") -> None:
        sharp = "() => { const canvas = document.querySelector('.chart canvas'); return canvas.width === Math.round(canvas.clientWidth * 2) && canvas.width > 0 && canvas.clientWidth; }"
        page.wait_for_function(sharp)
        before = page.evaluate(sharp)
        page.set_viewport_size({"width": 900, "height": 900})
        page.wait_for_function(f"before => ({sharp})() && ({sharp})() !== before", arg=before)

    look("live", check, viewport=USUAL, device_scale_factor=2)
