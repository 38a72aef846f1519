"""What other sites try in a real browser: each attempt is refused, and nothing of ours is read or changed."""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from made_runs import made_run
from web_fixtures import ARGUMENTS, CHROMIUM, PATIENCE_MS, watched
from web_server import Web, children_of, web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

PAGE = "<!doctype html><title>elsewhere</title><body>elsewhere</body>"


class Elsewhere:
    """Another web server; pages: what it serves, by path."""

    def __init__(self, port: int) -> None:
        self.port, self.pages = port, {"/": PAGE}


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    """Serve pages of somebody else at another port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = known.pages.get(self.path.partition("?")[0], "").encode()
            self.send_response(200 if body else 404)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        known = Elsewhere(server.server_port)
        thread = threading.Thread(target=functools.partial(server.serve_forever, 0.05), daemon=True)
        thread.start()
        yield known
        server.shutdown()


# http://evil.test is another site, http://127.0.0.1:OTHER another origin of the same site; both are the same
# server of somebody else. http://rebound.test is a foreign name whose address is now ours.
@pytest.fixture(scope="module")
def world(playwright: "Playwright") -> "Iterator[tuple[Browser, Elsewhere]]":
    assert CHROMIUM is not None, "no chromium: make browser installs it"
    rules = "--host-resolver-rules=MAP evil.test 127.0.0.1, MAP rebound.test 127.0.0.1"
    with elsewhere() as other:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, rules])
        yield launched, other
        launched.close()


@pytest.fixture(params=["http://evil.test", "http://127.0.0.1"])
def foreign(world: "tuple[Browser, Elsewhere]", request: pytest.FixtureRequest) -> "Iterator[Page]":
    """A page of somebody else, of another site or at another port of this host."""
    launched, other = world
    context = launched.new_context()
    context.set_default_timeout(PATIENCE_MS)
    opened = context.new_page()
    opened.goto(f"{request.param}:{other.port}/")
    yield opened
    context.close()


FETCH = """async ([url, options]) => {
  try { const answer = await fetch(url, options); return [answer.type, answer.status, await answer.text()]; }
  catch (error) { return ["error", 0, String(error)]; }
}"""


@pytest.mark.parametrize("path", ["/api/site", "/", "/api/games", "/static/shell.js"])
def test_a_foreign_page_reads_nothing(foreign: "Page", site: Web, path: str) -> None:
    for options in ({}, {"mode": "no-cors"}, {"credentials": "include"}, {"headers": {"x-other": "1"}}):
        kind, status, text = foreign.evaluate(FETCH, [site.base + path, options])
        assert (kind in ("error", "opaque"), status, text[:9] == "TypeError" or text == "") == (True, 0, True)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "no-cors", "headers": {"content-type": "text/plain"}},
        {"mode": "no-cors"},
        {"headers": {"content-type": "application/json"}},
        {"headers": {"content-type": "application/json"}, "credentials": "include"},
    ],
)
def test_a_foreign_page_begins_no_game(foreign: "Page", site: Web, options: dict[str, Any]) -> None:
    before = set(children_of(site.process.pid))
    body = f'{{"opponent": "{site.player("shipped")}", "side": "white"}}'
    foreign.evaluate(FETCH, [f"{site.base}/api/tables", {**options, "method": "POST", "body": body}])
    foreign.evaluate("([url, body]) => navigator.sendBeacon(url, body)", [f"{site.base}/api/tables", body])
    assert site.get("/api/site")["version"]
    assert set(children_of(site.process.pid)) <= before  # no engine was started


def test_a_form_of_a_foreign_page_begins_no_game(foreign: "Page", site: Web) -> None:
    before = set(children_of(site.process.pid))
    with foreign.expect_navigation() as navigation:
        foreign.evaluate(
            """url => { const form = document.createElement("form"), field = document.createElement("input");
              form.method = "POST"; form.action = url; form.enctype = "text/plain";
              field.name = '{"do": "x", "y": "';
              field.value = '"}'; form.append(field); document.body.append(form); form.submit(); }""",
            f"{site.base}/api/tables",
        )
    assert navigation.value is not None
    assert navigation.value.status == 403
    assert set(children_of(site.process.pid)) <= before


def test_a_foreign_page_hears_no_events(foreign: "Page", site: Web) -> None:
    outcome = foreign.evaluate(
        """url => new Promise(resolve => { const source = new EventSource(url);
          for (const name of ["state", "curves", "games", "message", "open"])
            source.addEventListener(name, () => resolve(name));
          source.addEventListener("error", () => resolve("error")); })""",
        f"{site.base}/api/runs/{site.run()}/events?names=loss/policy",
    )
    assert outcome == "error"


@pytest.mark.parametrize("path", ["/static/theme.js", "/api/site", "/api/texts"])
def test_a_foreign_page_loads_no_script_of_ours(foreign: "Page", site: Web, path: str) -> None:
    outcome = foreign.evaluate(
        """url => new Promise(resolve => { const script = document.createElement("script");
          script.src = url;
          script.onload = () => resolve("loaded"); script.onerror = () => resolve("refused");
          document.head.append(script); })""",
        site.base + path,
    )
    assert outcome == "refused"


@pytest.mark.parametrize("path", ["/", "/play"])
def test_a_foreign_page_frames_none_of_ours(foreign: "Page", site: Web, path: str) -> None:
    foreign.evaluate(
        """url => new Promise(resolve => { const frame = document.createElement("iframe");
          frame.src = url; frame.onload = resolve; document.body.append(frame); })""",
        site.base + path,
    )
    frame = foreign.frames[-1]
    assert frame.locator("#shell").count() == 0
    assert "Keisei" not in frame.content()


def test_a_link_from_elsewhere_leads_to_our_page(foreign: "Page", site: Web) -> None:
    foreign.evaluate("url => { location.href = url; }", f"{site.base}/play")
    foreign.wait_for_url(f"{site.base}/play")
    foreign.locator("#shell a").first.wait_for()


def test_a_foreign_window_cannot_reach_into_ours(foreign: "Page", site: Web) -> None:
    with foreign.expect_popup() as opened:
        foreign.evaluate("url => { window.ours = window.open(url); }", f"{site.base}/play")
    opened.value.locator("#shell a").first.wait_for()
    foreign.wait_for_function("() => window.ours.closed")  # severed by cross-origin-opener-policy
    assert opened.value.evaluate("() => window.opener") is None


def test_a_foreign_name_that_leads_here_is_refused(world: "tuple[Browser, Elsewhere]", site: Web) -> None:
    """DNS rebinding: the page came from rebound.test, whose address is now this machine's."""
    launched, _ = world
    context = launched.new_context()
    context.set_default_timeout(PATIENCE_MS)
    try:
        opened = context.new_page()
        answer = opened.goto(f"http://rebound.test:{site.port}/")
        assert answer is not None
        assert answer.status == 403
        kind, status, text = opened.evaluate(FETCH, [f"http://rebound.test:{site.port}/api/site", {}])
        assert (kind, status) == ("basic", 403)
        assert "runs" not in text
        body = f'{{"opponent": "{site.player("shipped")}"}}'
        options = {"method": "POST", "headers": {"content-type": "application/json"}, "body": body}
        assert opened.evaluate(FETCH, [f"http://rebound.test:{site.port}/api/tables", options])[1] == 403
    finally:
        context.close()


HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("path", ["/", "/games", "/ladder", "/play"])
def test_a_run_named_as_markup_is_shown_as_text(browser: "Browser", tmp_path: Path, path: str) -> None:
    run = made_run(tmp_path / "runs" / HOSTILE)
    with (run / "train.log").open("a", encoding="utf-8") as file:
        file.write(f"2026-05-01 12:00:01  {HOSTILE}\n")
    context = browser.new_context(locale="en-GB")
    try:
        with web(tmp_path) as server, watched(context) as opened:
            opened.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
            opened.goto(server.base + path)
            opened.wait_for_function("text => document.body.textContent.includes(text)", arg=HOSTILE)
            assert opened.locator("img").count() == 0
    finally:
        context.close()


def test_inline_script_and_style_do_not_run(page: "Page", site: Web) -> None:
    page.goto(f"{site.base}/play")
    page.locator("#shell a").first.wait_for()
    ran = page.context.new_page()
    try:
        ran.goto(f"{site.base}/play")
        ran.evaluate(
            """() => { const script = document.createElement("script");
              script.textContent = "window.ran = true";
              document.head.append(script);
              document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = true'>"); }"""
        )
        ran.locator("img[src=x]").wait_for(state="attached")
        assert ran.evaluate("() => window.ran") is None
        with pytest.raises(Exception, match="eval"):
            ran.evaluate(
                """() => new Promise((yes, no) => setTimeout(
                  () => { try { yes(eval("1")); } catch (error) { no(error); } }))"""
            )
    finally:
        ran.close()
