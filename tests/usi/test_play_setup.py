from typing import Any

import pytest

from keisei.shogi import GameRecord, Outcome, Reason, RulesError, ShogiGame, read_usi
from keisei.shogi.outcome import Color
from keisei.usi.play_setup import HANDICAP_NAMES, PlayError, color_of, set_up, start_sfen

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
GAME = read_usi("startpos moves 7g7f 3c3d 8h2b+ 3a2b")
MATED = read_usi(f"sfen {MATE_IN_ONE} moves G*5b")


def test_handicaps_and_positions() -> None:
    for name in HANDICAP_NAMES:
        assert str(set_up(handicap=name).turn) == "white"
    assert start_sfen(None, None) == ShogiGame().sfen()
    assert set_up(sfen=MATE_IN_ONE).sfen() == MATE_IN_ONE
    assert set_up(handicap="二枚落ち").sfen() == set_up(handicap="2-piece").sfen()
    assert set_up(max_moves=7).max_moves == 7


@pytest.mark.parametrize(("moves", "played"), [(None, 4), (4, 4), (2, 2), (0, 0)])
def test_a_game_is_played_on_after_any_of_its_moves(moves: int | None, played: int) -> None:
    resigned = GameRecord(GAME.moves, outcome=Outcome(Color.BLACK, Reason.RESIGNATION))
    game = set_up(record=resigned, moves=moves, declaration="off")
    assert game.history == list(GAME.moves[:played])
    assert (game.outcome(), game.declaration) == (None, "off")


@pytest.mark.parametrize("begin", ["", "position "])
def test_a_position_may_have_moves_as_an_unsaved_game_is_told(begin: str) -> None:
    game = set_up(sfen=f"{begin}startpos moves 7g7f 3c3d", max_moves=9, declaration="off")
    assert [str(move) for move in game.history] == ["7g7f", "3c3d"]
    assert (game.max_moves, game.declaration) == (9, "off")
    assert set_up(sfen=f"{begin}sfen {MATE_IN_ONE}").sfen() == MATE_IN_ONE
    with pytest.raises(RulesError, match="illegal move 7g7e"):
        set_up(sfen=f"{begin}startpos moves 7g7e")


def test_a_finished_game_can_be_played_on_before_its_end() -> None:
    assert set_up(record=MATED, moves=0).sfen() == MATE_IN_ONE


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"sfen": MATE_IN_ONE, "handicap": "rook"}, "expected a position or a handicap, given both"),
        ({"record": GAME, "handicap": "rook"}, "expected a game, a position or a handicap, given more than"),
        ({"handicap": "queen"}, "handicap is queen, expected one of lance"),
        ({"record": GAME, "moves": 5}, "move is 5, expected 0 to 4"),
        ({"moves": 5}, "move 5 of no game"),
        ({"record": MATED}, "the game is over after 1 moves: black wins by checkmate"),
        ({"record": GAME, "max_moves": 3}, "the game is over after 3 moves: draw by maximum length"),
        ({"sfen": "nonsense"}, "bad sfen 'nonsense'"),
        ({"declaration": "99"}, "declaration is '99', expected '27', '24', 'try' or 'off'"),
    ],
)
def test_what_cannot_be_played_is_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(PlayError, match=f"^{why}"):
        set_up(**settings)


def test_colors_are_named() -> None:
    assert (color_of("black"), color_of("white")) == (Color.BLACK, Color.WHITE)
    assert {color_of("random") for _ in range(64)} == set(Color)
