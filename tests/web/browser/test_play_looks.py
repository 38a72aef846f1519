"""How the play page looks and sounds: turned, in Japanese, on a phone, read aloud, with less motion."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest
from play_page import PlayPage
from playwright.sync_api import expect
from web_fixtures import watched
from web_server import Web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def play(page: "Page", site: Web) -> Iterator[PlayPage]:
    opened = PlayPage(page, site)
    yield opened
    opened.close()


def test_white_sees_the_board_turned(play: PlayPage) -> None:
    play.start(side="white")
    play.expect_moves(1)
    mine, theirs = (play.at(square).bounding_box() for square in ("5a", "5i"))
    assert mine is not None
    assert theirs is not None
    assert mine["y"] > theirs["y"]
    play.page.get_by_role("button", name="Turn the board").click()
    turned = play.at("5a").bounding_box()
    assert turned is not None
    assert turned["y"] < mine["y"]
    play.press_move("3c3d" if "3c3d" in play.table()["legal"] else play.table()["legal"][0])
    play.expect_moves(3)


def test_screen_readers_get_a_grid_and_hear_the_moves(play: PlayPage) -> None:
    play.start()
    page = play.page
    assert page.get_by_role("grid", name="shogi board").get_by_role("row").count() == 9
    assert page.get_by_role("gridcell").count() == 81
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1
    expect(play.at("7g")).to_have_attribute("aria-label", "7 g, black pawn")
    expect(play.at("5e")).to_have_attribute("aria-label", "5 e, empty")
    play.press("7g")
    expect(play.at("7f")).to_have_attribute("aria-label", "7 f, empty, can move here")
    play.press("7f")
    play.expect_moves(2)
    expect(page.locator("#announcements")).to_contain_text(play.table()["texts"]["en"][1])


def test_in_japanese_everything_is_japanese(browser: "Browser", site: Web) -> None:
    context = browser.new_context(locale="ja-JP")
    try:
        with watched(context) as page:
            play = PlayPage(page, site)
            play.set_up()
            page.get_by_role("button", name="対局開始").click()
            expect(play.status).to_contain_text("あなたの手番です")
            expect(play.at("7g")).to_have_attribute("aria-label", "7七 先手の歩")
            play.press_move("7g7f")
            play.expect_moves(2)
            expect(page.locator(".moves .text").first).to_contain_text("７六歩")
            expect(page.locator("html")).to_have_attribute("lang", "ja")
            words = page.locator("body").inner_text()
            assert not re.findall(r"[A-Za-z]{4,}", re.sub("Keisei|random|English", "", words))
            page.get_by_role("button", name="English").click()
            expect(play.status).to_contain_text("Your turn")
            play.expect_moves(2)
            play.close()
    finally:
        context.close()


def test_letters_take_the_place_of_kanji(play: PlayPage) -> None:
    play.start()
    shown = "() => getComputedStyle(document.querySelector('#piece-P-up .face.kanji')).display"
    assert play.page.evaluate(shown) != "none"
    play.page.get_by_role("button", name="show letters on the pieces").click()
    assert play.page.evaluate(shown) == "none"
    play.page.reload()
    expect(play.status).to_be_visible()
    assert play.page.evaluate(shown) == "none"


def test_a_game_on_a_screen_of_390_pixels(browser: "Browser", site: Web) -> None:
    context = browser.new_context(locale="en-GB", viewport={"width": 390, "height": 844}, has_touch=True)
    try:
        with watched(context) as page:
            play = PlayPage(page, site)
            play.start("4k4/9/9/9/9/9/4P4/9/4K4 b PG2p 1")
            square, hand = play.at("5e").bounding_box(), play.at("G*").bounding_box()
            assert square is not None
            assert hand is not None
            assert square["width"] >= 36
            assert hand["y"] > square["y"] + 4 * square["height"]  # the hand is below the board
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            play.at("G*").tap()
            play.at("4d").tap()
            play.expect_moves(2)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            play.close()
    finally:
        context.close()


COUNT_SLIDES = """
window.slides = 0;
const animate = Element.prototype.animate;
Element.prototype.animate = function (...how) { window.slides += 1; return animate.apply(this, how); };
"""


@pytest.mark.parametrize(("motion", "slides"), [("no-preference", 2), ("reduce", 0)])
def test_pieces_slide_unless_less_motion_is_wanted(
    browser: "Browser", site: Web, motion: Literal["no-preference", "reduce"], slides: int
) -> None:
    context = browser.new_context(locale="en-GB", reduced_motion=motion)
    context.add_init_script(COUNT_SLIDES)
    try:
        with watched(context) as page:
            play = PlayPage(page, site)
            play.start()
            play.press_move("7g7f")
            play.expect_moves(2)
            assert page.evaluate("window.slides") == slides  # one's own move and the answer
            play.close()
    finally:
        context.close()


def test_the_cursor_is_seen_when_keys_move_it(play: PlayPage) -> None:
    play.start()
    cursor = play.page.locator(".cursor")
    play.press("7g")
    expect(cursor).to_have_attribute("visibility", "hidden")
    play.page.keyboard.press("ArrowUp")
    expect(cursor).to_have_attribute("visibility", "visible")
    here, square = cursor.bounding_box(), play.at("7f").bounding_box()
    assert here is not None
    assert square is not None
    assert square["x"] < here["x"] < here["x"] + here["width"] < square["x"] + square["width"]
    assert square["y"] < here["y"] < here["y"] + here["height"] < square["y"] + square["height"]
    play.page.keyboard.press("Enter")
    play.expect_moves(2)
