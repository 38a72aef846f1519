"""Replaying in a real browser: steps, graph, what a network thinks, lines played out, downloads."""

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from web_fixtures import PATIENCE_MS, watched
from web_server import Web

from keisei.shogi import ShogiGame
from keisei.shogi.records import read_record

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

expect.set_options(timeout=PATIENCE_MS)
# The rows of the board as a screen reader hears them.
SHOWN = """async () => {
  const { Position } = await import("/static/position.js");
  const position = new Position("9/9/9/9/9/9/9/9/9 b - 1");
  const names = { pawn: "P", lance: "L", knight: "N", silver: "S", gold: "G",
    bishop: "B", rook: "R", king: "K", dragon: "+R", horse: "+B" };
  for (const cell of document.querySelectorAll("[role=cell]")) {
    const said = cell.getAttribute("aria-label").match(/, (black|white) (promoted )?(\\w+)/);
    const [, side, promoted, kind] = said ?? [];
    if (!side) continue;
    const piece = (promoted ? "+" : "") + names[kind];
    position.squares.set(cell.dataset.at, side === "black" ? piece : piece.toLowerCase());
  }
  return position.sfen().split(" ")[0];
}"""


class ReplayPage:
    """A page with a long game of random moves."""

    def __init__(self, page: "Page", site: Web) -> None:
        self.page, self.site = page, site
        listed = site.get("/api/games?kind=training")["games"]
        self.game: Any = site.get(f"/api/games/{next(one['id'] for one in listed if one['plies'] == 60)}")

    def open(self, ply: int | None = None) -> None:
        query = "" if ply is None else f"?ply={ply}"
        self.page.goto(f"{self.site.base}/games/{self.game['id']}{query}")
        expect(self.page.locator(".moves li")).to_have_count(60)

    def sfen_after(self, ply: int) -> str:
        game = ShogiGame(self.game["sfen"], max_moves=None)
        for move in self.game["moves"][:ply]:
            game.push(move)
        return game.sfen()

    def expect_ply(self, ply: int) -> None:
        """Expect the list, the graph, the address and the board to be at a position."""
        if ply:
            expect(self.page.locator(".moves [aria-current] .number")).to_have_text(str(ply))
        else:
            expect(self.page.locator(".moves [aria-current]")).to_have_count(0)
        expect(self.graph).to_have_attribute("aria-valuenow", str(ply))
        expect(self.page).to_have_url(re.compile(rf"\?ply={ply}$"))
        assert self.page.evaluate(SHOWN) == self.sfen_after(ply).split()[0]

    @property
    def graph(self) -> "Locator":
        return self.page.get_by_role("slider")

    def ask_network(self, visits: str) -> None:
        """Have a network's candidates shown."""
        self.page.get_by_label("Network").select_option(self.site.player("shipped"))
        self.page.get_by_label("Thinking per move").select_option(visits)
        self.page.get_by_label("Show its moves").check()
        expect(self.page.locator(".line-list li").first).to_be_visible()


@pytest.fixture
def replay(page: "Page", site: Web) -> ReplayPage:
    return ReplayPage(page, site)


def test_keys_step_through_the_game(replay: ReplayPage) -> None:
    replay.open()
    replay.expect_ply(60)
    back, on = "ArrowLeft", "ArrowRight"
    for key, ply in [(back, 59), ("Home", 0), (back, 0), (on, 1), (on, 2), ("End", 60), (on, 60)]:
        replay.page.keyboard.press(key)
        replay.expect_ply(ply)
    expect(replay.page.locator("#announcements")).to_have_text(replay.game["texts"]["en"][59])


def test_buttons_and_the_list_step_too(replay: ReplayPage) -> None:
    replay.open(30)
    replay.expect_ply(30)
    for button, ply in [("back", 29), ("first", 0), ("forward", 1), ("last", 60)]:
        replay.page.locator(f"#{button}").click()
        replay.expect_ply(ply)
    replay.page.locator(".moves button").nth(16).click()
    replay.expect_ply(17)


def test_a_reload_stays_at_the_position(replay: ReplayPage) -> None:
    replay.open(12)
    replay.page.keyboard.press("ArrowRight")
    replay.page.reload()
    replay.expect_ply(13)


def test_the_address_follows_keys_that_are_held_down_now_and_then(replay: ReplayPage) -> None:
    replay.open(0)
    replay.page.evaluate(
        """() => {
          window.told = 0;
          const replace = history.replaceState;
          history.replaceState = (...how) => { window.told += 1; replace.apply(history, how); };
          const there = Array(60).fill("ArrowRight"), back = Array(60).fill("ArrowLeft");
          for (const key of [...there, ...back, ...there, ...back, "ArrowRight"])
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        }"""
    )
    replay.expect_ply(1)
    assert replay.page.evaluate("window.told") < 100  # of 241 steps: Firefox and Safari refuse so many


def test_space_plays_the_game_until_it_is_pressed_again(replay: ReplayPage) -> None:
    replay.open(0)
    replay.page.keyboard.press(" ")
    expect(replay.page.locator("#play")).to_have_attribute("aria-pressed", "true")
    replay.page.wait_for_function(
        "() => Number(document.querySelector('.moves [aria-current] .number')?.textContent) >= 3"
    )
    replay.page.keyboard.press(" ")
    expect(replay.page.locator("#play")).to_have_attribute("aria-pressed", "false")
    replay.open(58)
    replay.page.keyboard.press(" ")
    replay.expect_ply(60)
    expect(replay.page.locator("#play")).to_have_attribute("aria-pressed", "false")  # it ends by itself


def test_r_turns_the_board_and_its_players(replay: ReplayPage) -> None:
    replay.open(10)
    upper = replay.page.locator(".stage > .player").first
    expect(upper).to_contain_text("white")
    replay.page.keyboard.press("r")
    expect(upper).to_contain_text("black")
    first, last = (replay.page.locator(f'[data-at="{square}"]').bounding_box() for square in ("9a", "1i"))
    assert first is not None
    assert last is not None
    assert first["y"] > last["y"]
    assert first["x"] > last["x"]
    replay.expect_ply(10)


def test_a_press_on_the_value_graph_goes_there(replay: ReplayPage) -> None:
    replay.open(0)
    box = replay.graph.bounding_box()
    assert box is not None
    margins = 34, 10  # left and right of the plot
    replay.graph.click(position={"x": margins[0] + (box["width"] - sum(margins)) / 2, "y": 40})
    replay.expect_ply(30)


def test_an_analysis_draws_the_graph_and_tells_losses(replay: ReplayPage) -> None:
    replay.open(20)
    assert replay.game["black_percent"] is None
    expect(replay.page.locator(".value-graph .line")).to_have_count(0)
    replay.page.get_by_label("Thinking per move").select_option("16")
    replay.page.get_by_role("button", name="Analyse the game").click()
    expect(replay.page.locator("progress")).to_be_visible()
    expect(replay.page.locator("progress")).to_be_hidden()
    expect(replay.page.locator(".value-graph .line")).to_have_count(1)
    expect(replay.graph).to_have_attribute("aria-valuetext", re.compile(r"move 20: \d+ %"))
    lost = replay.page.locator(".moves .lost")
    assert lost.count() > 3  # moves at random
    expect(replay.page.locator(".value-graph .loss")).to_have_count(lost.count())
    assert all(int(text.lstrip("−")) >= 5 for text in lost.all_inner_texts())


def test_candidates_are_arrows_with_their_percentages(replay: ReplayPage) -> None:
    replay.open(20)
    replay.ask_network("200")
    rows, arrows = replay.page.locator(".line-list li"), replay.page.locator(".arrow")
    lines = replay.page.locator(".line-list .pv").all_inner_texts()
    expect(arrows).to_have_count(len({line.split()[0][:4] for line in lines}))  # promoted or not
    best = replay.page.locator(".arrow.rank-0")
    move = str(best.get_attribute("data-move"))
    assert move in [str(legal) for legal in ShogiGame(replay.sfen_after(20)).legal_moves()]
    expect(rows.first).to_contain_text(move)
    share = replay.page.locator(".line-list .share").first.inner_text()
    expect(best.locator(".share")).to_have_text(share)
    replay.page.keyboard.press("ArrowRight")
    expect(best).not_to_have_attribute("data-move", move)
    reply = str(best.get_attribute("data-move"))
    assert reply in [str(legal) for legal in ShogiGame(replay.sfen_after(21)).legal_moves()]


def test_a_line_is_played_out_and_left(replay: ReplayPage) -> None:
    page = replay.page
    replay.open(20)
    replay.ask_network("200")
    page.locator(".line-list button").first.click()
    line = page.locator(".line-banner li button").all_inner_texts()
    assert len(line) > 1
    for count in (1, 2):
        expect(page.locator(".line-banner [aria-current]")).to_have_text(line[count - 1])
        game = ShogiGame(replay.sfen_after(20))
        for move in line[:count]:
            game.push(move)
        assert page.evaluate(SHOWN) == game.sfen().split()[0]
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    assert page.evaluate(SHOWN) == replay.sfen_after(20).split()[0]
    page.keyboard.press("Escape")
    expect(page.locator(".line-banner")).to_be_hidden()
    replay.expect_ply(20)
    page.keyboard.press("ArrowRight")
    replay.expect_ply(21)


@pytest.mark.parametrize("kind", ["kif", "csa"])
def test_the_record_is_downloaded(replay: ReplayPage, tmp_path: "Path", kind: str) -> None:
    replay.open()
    with replay.page.expect_download() as saving:
        replay.page.get_by_role("link", name=kind.upper()).click()
    saved = tmp_path / saving.value.suggested_filename
    assert saved.suffix == f".{kind}"
    saving.value.save_as(saved)
    assert [str(move) for move in read_record(saved).moves] == replay.game["moves"]


def test_in_japanese_moves_and_labels_are_japanese(browser: "Browser", site: Web) -> None:
    context = browser.new_context(locale="ja-JP")
    try:
        with watched(context) as page:
            replay = ReplayPage(page, site)
            replay.open(5)
            assert page.locator(".moves .text").all_text_contents() == replay.game["texts"]["ja"]
            expect(page.locator('[data-at="5i"]')).to_have_attribute("aria-label", re.compile("^5九 "))
            expect(page.get_by_role("link", name="ここから指す")).to_be_visible()
    finally:
        context.close()


def test_a_replay_fits_390_pixels(browser: "Browser", site: Web) -> None:
    context = browser.new_context(locale="ja-JP", viewport={"width": 390, "height": 844})
    try:
        with watched(context) as page:
            ReplayPage(page, site).open(40)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            square = page.locator('[data-at="5e"]').bounding_box()
            assert square is not None
            assert square["width"] >= 36
    finally:
        context.close()
