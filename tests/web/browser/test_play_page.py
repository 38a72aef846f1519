"""Playing in a real browser against a real server: by presses and by keys, all that one can do."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from look_probes import HIDE, TWO_FRAMES
from play_page import PlayPage, replayed, strong_move
from playwright.sync_api import expect
from web_fixtures import PATIENCE_MS, watched
from web_server import Web, children_of, wait_until

from keisei.shogi import START_SFEN
from keisei.shogi.records import read_records
from keisei.shogi.records.kif import HANDICAPS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MUCH_MORE = "2sgkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b RB 1"
MATE = re.compile("black wins by (checkmate|no legal move)")  # the latter once in 200 games
MAY_PROMOTE = "4k4/9/9/3R5/1r7/9/9/9/4K4 b 2P 1"
MUST_PROMOTE = "8k/4P4/9/9/9/9/9/9/4K4 b - 1"
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
MAY_DECLARE = "+P+P+PK+P+P+P+P+R/7+BR/9/9/9/9/9/9/1k7 b B9P 1"


@pytest.fixture
def play(page: "Page", site: Web) -> Iterator[PlayPage]:
    opened = PlayPage(page, site)
    yield opened
    opened.close()


def play_to_the_end(play: PlayPage, *, by_key: bool) -> None:
    """Play good moves against a player that plays any, until the game is over."""
    table = play.table()
    while table["state"] != "over":
        move, plies = strong_move(table), len(table["moves"])
        play.key_move(move) if by_key else play.press_move(move)
        wait_until(partial(play.has_answered, plies), "the answer")
        table = play.table()
        play.expect_moves(len(table["moves"]))


# Moves.


def test_a_game_to_mate_by_presses(play: PlayPage) -> None:
    play.start()
    play_to_the_end(play, by_key=False)
    expect(play.status).to_contain_text("You win")
    expect(play.status).to_contain_text(MATE)
    assert replayed(START_SFEN, play.table()["moves"]).outcome() is not None


def test_a_game_to_mate_by_keys_alone(play: PlayPage) -> None:
    page = play.page
    page.goto(f"{play.site.base}/play?sfen={quote(MUCH_MORE)}")
    expect(page.locator(".new-game")).to_be_visible()
    tab_to(page, "select[name=opponent]")
    page.keyboard.type("random")
    tab_to(page, "button[type=submit]")
    page.keyboard.press("Enter")
    expect(play.status).to_have_attribute("data-state", "yours")
    assert play.table()["opponent"]["name"] == "random"
    play_to_the_end(play, by_key=True)
    expect(play.status).to_contain_text("You win")
    expect(play.status).to_contain_text(MATE)
    tab_to(page, "#new")
    page.keyboard.press("Enter")
    expect(page.locator(".new-game")).to_be_visible()


def tab_to(page: "Page", selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        if page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no {selector} among 60 tab stops")


def test_dots_are_the_legal_moves_of_the_chosen_piece(play: PlayPage) -> None:
    play.start()
    play.press("2h")
    assert play.dots() == {"1h", "3h", "4h", "5h", "6h", "7h"}
    expect(play.at("2h")).to_have_attribute("aria-selected", "true")
    play.press("7g")  # another piece instead
    assert play.dots() == {"7f"}
    play.press("7g")
    assert play.dots() == set()
    play.press("8b", "5e")  # not one's own, nothing
    assert play.dots() == set()
    assert play.table()["moves"] == []


def test_the_board_marks_the_last_move_and_a_check(play: PlayPage) -> None:
    play.start("4k4/9/9/9/9/9/9/9/R3K4 b - 1", opponent="greedy")
    play.press("9i", "9a")
    play.page.locator("dialog.promotion button").first.click()
    play.expect_moves(2)
    assert play.page.locator(".mark.last").count() == 2
    play.start("4k4/9/9/9/4r4/9/9/9/R3K4 b - 1")
    expect(play.page.locator(".mark.check")).to_have_count(1)
    expect(play.status).to_contain_text("Check! Your turn")
    expect(play.at("5i")).to_have_attribute("aria-label", "5 i, black king, in check")


def test_a_drop_is_two_presses(play: PlayPage) -> None:
    play.start("4k4/9/9/9/9/9/4P4/9/4K4 b PG 1")
    play.press("P*")
    assert {dot[0] for dot in play.dots()} == set("12346789")  # a pawn is on the fifth file
    assert {dot[1] for dot in play.dots()} == set("bcdefghi")
    play.press("G*")
    assert len(play.dots()) == 78
    play.press("4d")
    play.expect_moves(2)
    assert play.table()["moves"][0] == "G*4d"
    expect(play.at("4d")).to_have_attribute("aria-label", re.compile("^4 d, black gold"))


@pytest.mark.parametrize(("answer", "move"), [("promote", "6d6c+"), ("stay", "6d6c")])
def test_a_person_chooses_whether_to_promote(play: PlayPage, answer: str, move: str) -> None:
    play.start(MAY_PROMOTE)
    play.press("6d", "6c")
    dialog = play.page.get_by_role("dialog", name="Promote?")
    expect(dialog.get_by_role("button")).to_have_count(2)
    assert play.table()["moves"] == []
    dialog.get_by_role("button", name=answer).click()
    play.expect_moves(2)
    assert play.table()["moves"][0] == move


def test_escape_leaves_the_question_of_promotion_and_the_choice(play: PlayPage) -> None:
    play.start(MAY_PROMOTE)
    play.press("6d", "6c")
    expect(play.page.locator("dialog.promotion")).to_be_visible()
    play.page.keyboard.press("Escape")
    expect(play.page.locator("dialog.promotion")).to_have_count(0)
    assert play.dots() == set()
    play.press("6d")
    assert play.dots()
    play.page.keyboard.press("Escape")
    assert play.dots() == set()
    assert play.table()["moves"] == []


def test_a_forced_promotion_is_not_asked_for(play: PlayPage) -> None:
    play.start(MUST_PROMOTE)
    play.press("5b", "5a")
    play.expect_moves(2)
    assert play.table()["moves"][0] == "5b5a+"


def test_a_move_that_cannot_promote_is_not_asked_about(play: PlayPage) -> None:
    play.start("8k/4G4/9/9/9/9/9/9/4K4 b - 1")
    play.press("5b", "5a")
    play.expect_moves(2)
    assert play.table()["moves"][0] == "5b5a"


# What else one can do.


def test_take_back_while_it_thinks_ends_its_search(play: PlayPage) -> None:
    play.set_up(opponent="shipped")
    play.page.locator("[name=visits]").select_option("20000")
    play.begin()
    play.press("7g", "7f")
    expect(play.status).to_have_attribute("data-state", "thinking")
    play.page.get_by_role("button", name="Take back").click()
    expect(play.status).to_have_attribute("data-state", "yours")
    play.expect_moves(0)
    expect(play.at("7g")).to_have_attribute("aria-label", "7 g, black pawn")
    play.page.locator(".settings select").select_option("0")
    play.press_move("2g2f")
    play.expect_moves(2)
    assert play.table()["moves"][0] == "2g2f"
    play.page.keyboard.press("u")
    play.expect_moves(0)


def test_a_chosen_piece_stays_chosen_while_settings_change(play: PlayPage) -> None:
    play.start(opponent="shipped")
    play.press("7g")
    with play.page.expect_response(f"**/api/tables/{play.id}") as answer:
        play.page.locator(".settings select").select_option("0")
    assert answer.value.json()["visits"] == 0
    play.page.evaluate(TWO_FRAMES)
    assert play.dots() == {"7f"}
    play.press("7f")
    play.expect_moves(2)


def test_a_hint_is_drawn_and_told(play: PlayPage) -> None:
    play.start(MATE_IN_ONE, opponent="shipped")
    play.page.keyboard.press("h")
    best = play.page.locator(".arrow.rank-0")
    expect(best).to_have_attribute("data-move", "G*5b")
    expect(play.page.locator(".line-list li").first).to_contain_text("G*5b")
    expect(play.page.locator("#announcements")).to_contain_text("hint: G*5b")
    play.page.keyboard.press("Escape")
    expect(play.page.locator(".arrow")).to_have_count(0)
    assert play.table()["moves"] == []


def test_its_thinking_is_shown_while_it_thinks(play: PlayPage) -> None:
    play.set_up(opponent="shipped")
    play.page.locator("[name=visits]").select_option("20000")
    play.page.get_by_label("Show its thinking").check()
    play.begin()
    play.press("7g", "7f")
    expect(play.page.locator(".arrow.rank-0")).to_have_count(1)
    expect(play.page.get_by_text("Its thinking", exact=True)).to_be_visible()
    expect(play.page.locator(".line-list li").first).to_contain_text("visits")


def test_a_built_in_player_has_no_hint_and_no_visits(play: PlayPage) -> None:
    play.set_up(opponent="greedy")
    expect(play.page.locator("[name=visits]")).to_be_hidden()
    play.begin()
    expect(play.page.locator("#hint")).to_be_hidden()
    play.press_move("7g7f")
    play.expect_moves(2)


def test_resigning_is_confirmed_and_leads_to_the_replay(play: PlayPage) -> None:
    play.start()
    play.press_move("7g7f")
    play.expect_moves(2)
    page = play.page
    page.get_by_role("button", name="Resign").click()
    page.get_by_role("button", name="Play on").click()
    assert play.table()["state"] == "yours"
    page.get_by_role("button", name="Resign").click()
    page.locator("#really-resign").click()
    expect(play.status).to_contain_text("You lose")
    expect(play.status).to_contain_text("white wins by resignation")
    moves = play.table()["moves"]
    page.locator("#replay").click()
    expect(page.locator(".moves li")).to_have_count(2)
    assert page.locator(".moves .text").all_inner_texts() == moves
    page.go_back()
    page.get_by_role("button", name="New game").click()
    expect(page.locator(".new-game")).to_be_visible()


def test_a_win_is_declared(play: PlayPage) -> None:
    play.start(MAY_DECLARE)
    play.page.get_by_role("button", name="Declare a win").click()
    expect(play.status).to_contain_text("You win")
    expect(play.status).to_contain_text("black wins by declaration")


def test_declaring_is_offered_only_where_it_is_legal(play: PlayPage) -> None:
    play.start()
    expect(play.page.locator("#declare")).to_be_hidden()


@pytest.mark.parametrize("kind", ["kif", "csa", "usi"])
def test_a_game_is_saved(play: PlayPage, tmp_path: Path, kind: str) -> None:
    play.start()
    play.press_move("7g7f")
    play.expect_moves(2)
    with play.page.expect_download() as saving:
        play.page.get_by_role("link", name=kind.upper()).click()
    saved = tmp_path / saving.value.suggested_filename
    assert saved.suffix == f".{kind}"
    saving.value.save_as(saved)
    (record,) = read_records(saved)
    assert [str(move) for move in record.moves] == play.table()["moves"]


def test_time_that_runs_out_loses(play: PlayPage) -> None:
    play.set_up()
    play.page.get_by_label("Play with a clock").check()
    play.page.get_by_label("Minutes each").fill("0")
    play.page.get_by_label("Then seconds a move").fill("1")
    play.begin()
    expect(play.status).to_contain_text("white wins by time")
    expect(play.page.locator(".player.below .clock")).to_have_text(re.compile(r"\d s$"))


def test_an_engine_that_keeps_dying_is_told(play: PlayPage) -> None:
    play.set_up(opponent="shipped")
    play.page.locator("[name=visits]").select_option("20000")
    play.begin()
    play.press("7g", "7f")

    def ended() -> bool:
        for pid in children_of(play.site.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(play.table()["state"] == "failed")

    wait_until(ended, "the end of the engine")
    expect(play.status).to_contain_text("the engine of shipped has ended twice")
    expect(play.page.get_by_role("link", name="KIF")).to_be_visible()
    play.page.get_by_role("button", name="New game").click()
    expect(play.page.locator(".new-game")).to_be_visible()


# Where a game begins, and going on with it.


def test_in_a_handicap_game_white_moves_first(play: PlayPage) -> None:
    play.set_up()
    play.page.get_by_label("Start").select_option("2-piece")
    play.begin()
    play.expect_moves(1)
    assert play.table()["start_sfen"] == HANDICAPS["二枚落ち"]
    for square in ("2b", "8b"):  # where a silver may have gone
        expect(play.at(square)).not_to_have_attribute("aria-label", re.compile("rook|bishop"))
    expect(play.page.locator("#undo")).to_be_disabled()


def test_a_position_that_is_none_is_told_and_the_form_stays(browser: "Browser", site: Web) -> None:
    context = browser.new_context(locale="en-GB")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    play = PlayPage(page, site)
    play.set_up("9/9/9 b - 1")
    page.get_by_role("button", name="Start the game").click()
    expect(page.get_by_role("alert")).to_contain_text("sfen")
    expect(page.locator(".new-game")).to_be_visible()
    context.close()


def test_a_reload_goes_on_with_the_table(play: PlayPage) -> None:
    play.start()
    play.press_move("7g7f")
    play.expect_moves(2)
    moves = play.table()["moves"]
    play.page.reload()
    play.expect_moves(2)
    expect(play.status).to_have_attribute("data-state", "yours")
    table = play.id
    play.page.get_by_role("link", name="Play", exact=True).click()
    play.page.get_by_role("link", name="Go on with your game").click()
    play.expect_moves(2)
    assert play.id == table
    play.press_move("2g2f" if "2g2f" in play.table()["legal"] else play.table()["legal"][0])
    play.expect_moves(4)
    assert play.table()["moves"][:2] == moves


def test_a_game_goes_on_from_a_replayed_position(play: PlayPage) -> None:
    site, page = play.site, play.page
    game = next(one for one in site.get("/api/games?kind=training")["games"] if one["plies"] > 20)
    page.goto(f"{site.base}/games/{game['id']}?ply=12")
    page.get_by_role("link", name="Play from here").click()
    expect(page.get_by_text("after move 12")).to_be_visible()
    page.locator("[name=opponent]").select_option(site.player("random"))
    play.begin()
    play.expect_moves(12)
    assert play.table()["moves"] == site.get(f"/api/games/{game['id']}")["moves"][:12]


def test_two_pages_at_one_table_show_the_same(play: PlayPage, browser: "Browser") -> None:
    play.start()
    context = browser.new_context(locale="en-GB")
    try:
        with watched(context) as other:
            other.goto(play.page.url)
            expect(other.locator(".status")).to_have_attribute("data-state", "yours")
            play.press_move("7g7f")
            play.expect_moves(2)
            expect(other.locator(".moves li")).to_have_count(2)
            expect(other.locator('[data-at="7f"]')).to_have_attribute("aria-label", re.compile("black pawn"))
    finally:
        context.close()


def test_a_move_that_did_not_arrive_can_be_played_again(browser: "Browser", site: Web) -> None:
    context = browser.new_context(locale="en-GB")  # whose console may have the lost request
    context.set_default_timeout(PATIENCE_MS)
    play = PlayPage(context.new_page(), site)
    play.start()
    context.route("**/api/tables/*", lambda route: route.abort())
    play.press_move("7g7f")
    expect(play.page.get_by_role("alert")).to_contain_text("does not answer")
    expect(play.at("7g")).to_have_attribute("aria-label", "7 g, black pawn")
    context.unroute("**/api/tables/*")
    play.press_move("7g7f")
    play.expect_moves(2)
    play.close()
    context.close()


def test_a_table_that_is_gone_is_told_and_a_new_game_offered(browser: "Browser", site: Web) -> None:
    context = browser.new_context(locale="en-GB")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{site.base}/play/nosuchtable1")
    expect(page.get_by_role("alert")).to_contain_text("no longer on the server")
    expect(page.locator(".new-game")).to_be_visible()
    expect(page).to_have_url(f"{site.base}/play")
    context.close()


def test_a_table_that_has_ended_while_nobody_looked_is_told(browser: "Browser", site: Web) -> None:
    context = browser.new_context(locale="en-GB")  # whose console may have the refusals
    context.set_default_timeout(PATIENCE_MS)
    play = PlayPage(context.new_page(), site)
    play.start()
    play.page.evaluate(HIDE, True)
    play.close()
    play.page.evaluate(HIDE, False)
    expect(play.page.get_by_role("alert")).to_contain_text("no longer on the server")
    play.page.get_by_role("alert").get_by_role("button").click()
    play.press_move("7g7f")
    expect(play.page.get_by_role("alert")).to_contain_text("no longer on the server")
    context.close()
