"""Reading and writing SFEN, and the errors for a bad one."""

import pytest
from conftest import random_play, table

from keisei.shogi import START_SFEN, Move, NotationError, RulesError, ShogiGame, perft

SYNTAX = [
    ("", "expected board, side, hands and move number, got 0 fields"),
    ("9/9/9/9/9/9/9/9/9", "got 1 field"),
    (START_SFEN + " extra", "got more than four fields"),
    ("lnsgkgsnl/1r5b1/pppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", "rank 3 has 8 squares, expected nine"),
    ("lnsgkgsnl/1r5b1/pppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", "rank 3 has more than nine squares"),
    ("lnsgkgsnl/1r5b1/91/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", "rank 3 has more than nine squares"),
    ("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1 b - 1", "expected nine ranks, got 8"),
    (
        "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL/9 b - 1",
        "more than nine ranks at character 58",
    ),
    ("lnsgkgsnl/1x5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", "unknown piece 'x' at character 12"),
    ("lnsgkgsnl/0r6b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", "unknown piece '0'"),
    ("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNS+GKGSNL b - 1", "'+' without a promotable piece"),
    ("lnsg+kgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", "'+' without a promotable piece"),
    ("lnsgkgsnl/1r5b1/ppppppppp/+9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", "'+' without a promotable piece"),
    ("lnsgkgsnl/1r5b1/pppp++pppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", "'+' without a promotable piece"),
    ("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL+ b - 1", "'+' without a promotable piece"),
    (START_SFEN.replace(" b ", " x "), "side to move is 'x', expected b or w"),
    ("4k4/9/9/9/9/9/9/9/4K4 b K 1", "unknown piece in hand 'K' at character 25"),
    ("4k4/9/9/9/9/9/9/9/4K4 b +P 1", "unknown piece in hand '+'"),
    ("4k4/9/9/9/9/9/9/9/4K4 b 0P 1", "number in hand not in 1 to 18"),
    ("4k4/9/9/9/9/9/9/9/4K4 b 19P 1", "number in hand not in 1 to 18"),
    ("4k4/9/9/9/9/9/9/9/4K4 b P2 1", "number without a piece"),
    ("4k4/9/9/9/9/9/9/9/4K4 b PP 1", "piece in hand 'P' given twice"),
    ("4k4/9/9/9/9/9/9/9/4K4 b PRpP 1", "piece in hand 'P' given twice at character 28"),
    ("4k4/9/9/9/9/9/9/9/4K4 b - 0", "move number is '0', expected 1 to"),
    ("4k4/9/9/9/9/9/9/9/4K4 b - -1", "move number is '-1'"),
    ("4k4/9/9/9/9/9/9/9/4K4 b - 1x", "move number is '1x'"),
    ("4k4/9/9/9/9/9/9/9/4K4 b - 99999999999999999999", "move number is '99999999999999999999'"),
    ("4k4/9/9/9/9/9/9/9/4K4 b - 1000001", "move number is '1000001', expected 1 to 1000000"),
    ("4k4/9/9/9/9/9/9/9/4K4 b - 1\0", "move number is '1?'"),
    ("4k4/9/9/9/9/9/9/9/4K4 b - 1\x7f", "move number is '1?'"),
    ("4k4/9/9/形8/9/9/9/9/4K4 b - 1", "unknown piece '形' at character 9"),
    ("4k4/9/9/9/9/9/9/9/4K4 b 2飛 1", "unknown piece in hand '飛' at character 26"),
    ("4k4/9/9/9/9/9/9/9/4K4 先 - 1", "side to move is '先'"),
]
RULES = [
    ("9/9/9/9/9/9/9/9/4K4 b - 1", "white has 0 kings, expected one"),
    ("4k4/9/9/9/9/9/9/9/9 b - 1", "black has 0 kings, expected one"),
    ("4k4/9/9/9/9/9/9/9/3KK4 b - 1", "black has 2 kings, expected one"),
    ("4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G5S 1", "more than 4 of piece S"),
    ("4k4/9/9/9/9/9/9/9/RRR1K4 b - 1", "more than 2 of piece R"),
    ("4k4/9/9/9/9/9/9/9/4K4 b 2Bb 1", "more than 2 of piece B"),
    ("4k4/9/9/9/9/9/9/9/GG2K4 b 2Gg 1", "more than 4 of piece G"),
    ("4k4/9/9/9/9/9/9/+N8/4K4 b 4n 1", "more than 4 of piece N"),
    ("4k4/9/9/9/9/9/9/9/LLL1K4 b 2l 1", "more than 4 of piece L"),
    ("4k4/9/9/9/9/9/9/+L8/4K4 b 4l 1", "more than 4 of piece L"),
    ("4k4/9/9/9/9/9/9/+S8/4K4 b 4s 1", "more than 4 of piece S"),
    ("4k4/9/9/9/9/9/9/+B8/4K4 b 2b 1", "more than 2 of piece B"),
    ("4k4/9/9/9/9/9/9/+R8/4K4 b 2r 1", "more than 2 of piece R"),
    ("4k4/9/9/9/9/9/9/+P+P+P+P+P+P+P+P1/4K4 b 11P 1", "more than 18 of piece P"),
    ("4k4/9/9/9/4P4/4P4/9/9/4K4 b - 1", "two pawns of one side on file 5"),
    ("4k4/9/8p/9/8p/9/9/9/4K4 b - 1", "two pawns of one side on file 1"),
    ("4k4/P8/9/9/9/9/9/P8/4K4 b - 1", "two pawns of one side on file 9"),
    ("P3k4/9/9/9/9/9/9/9/4K4 b - 1", "a piece that can never move on 9a"),
    ("4k4/9/9/9/9/9/9/9/L3K3p b - 1", "a piece that can never move on 1i"),
    ("1L2k4/9/9/9/9/9/9/9/4K4 b - 1", "a piece that can never move on 8a"),
    ("4k4/9/9/9/9/9/9/9/4K2l1 b - 1", "a piece that can never move on 2i"),
    ("4k3N/9/9/9/9/9/9/9/4K4 b - 1", "a piece that can never move on 1a"),
    ("4k4/N8/9/9/9/9/9/9/4K4 b - 1", "a piece that can never move on 9b"),
    ("4k4/9/9/9/9/9/9/n8/4K4 b - 1", "a piece that can never move on 9h"),
    ("4k4/4G4/9/9/9/9/9/9/4K4 b - 1", "the side to move can take the king"),
    ("4k4/9/9/9/9/9/9/9/4K3r w - 1", "the side to move can take the king"),
    ("4k4/4K4/9/9/9/9/9/9/9 b - 1", "the side to move can take the king"),
]  # fmt: skip


@pytest.mark.parametrize(("sfen", "what"), SYNTAX)
def test_what_cannot_be_read_is_a_notation_error(sfen: str, what: str) -> None:
    with pytest.raises(NotationError) as caught:
        ShogiGame(sfen)
    assert what in str(caught.value)
    assert str(caught.value).startswith("bad sfen '")


@pytest.mark.parametrize(("sfen", "what"), RULES)
def test_what_breaks_a_rule_is_a_rules_error(sfen: str, what: str) -> None:
    with pytest.raises(RulesError) as caught:
        ShogiGame(sfen)
    assert str(caught.value) == f"bad sfen '{sfen}': {what}"


def test_a_missing_move_number_is_one() -> None:
    assert ShogiGame("4k4/9/9/9/9/9/9/9/4K4 w R").sfen() == "4k4/9/9/9/9/9/9/9/4K4 w R 1"


def test_the_millionth_move_can_be_set_up() -> None:
    assert ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b - 1000000", max_moves=None).ply == 999_999


def test_spaces_and_the_order_of_the_hands_do_not_matter() -> None:
    game = ShogiGame("  4k4/9/9/9/9/9/9/9/4K4   b  p2PbR 7 ")
    assert game.sfen() == "4k4/9/9/9/9/9/9/9/4K4 b R2Pbp 7"


def test_an_endless_text_is_not_repeated_whole() -> None:
    with pytest.raises(NotationError) as caught:
        ShogiGame("形" * 100_000)
    assert len(str(caught.value)) < 1000
    with pytest.raises(NotationError):
        ShogiGame("9/" * 100_000 + " b - 1")


@pytest.mark.parametrize("cut", range(195, 206))
def test_a_long_text_is_cut_between_letters(cut: int) -> None:
    with pytest.raises(NotationError, match="…"):
        ShogiGame("x" * cut + "形勢" * 20)


def test_half_a_letter_is_a_notation_error() -> None:
    half = "\ud800"
    for read in (
        ShogiGame,
        Move.from_usi,
        ShogiGame().push,
        ShogiGame().piece_at,
        lambda text: perft(text, 1),
    ):
        with pytest.raises(NotationError, match="lone surrogate"):
            read(half)


def test_every_position_of_the_tables_is_written_as_it_was_read() -> None:
    for sfen in [row[0] for row in table("perft.tsv")] + [row[1] for row in table("legality.tsv")]:
        assert ShogiGame(sfen).sfen() == sfen


def test_every_position_of_random_play_is_read_back_the_same() -> None:
    for seed in range(10):
        for game in random_play(seed, 200):
            again = ShogiGame(game.sfen(), max_moves=None)
            assert (again.sfen(), again.key, again.is_check()) == (game.sfen(), game.key, game.is_check())
