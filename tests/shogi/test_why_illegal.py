import re

import pytest
from conftest import random_play
from reference import flip_sfen, flip_usi

from keisei.shogi import Move, ShogiGame
from keisei.shogi.why_illegal import why_illegal

START = ShogiGame().sfen()
# A position, a move that is illegal there, and a part of the reason.
ILLEGAL = [
    (START, "7f7e", "there is no piece on 7f"),
    (START, "7c7d", "the piece on 7c is not yours"),
    (START, "8h7g", "your own piece is on 7g"),
    (START, "7g7e", "a P on 7g cannot go to 7e"),
    (START, "8h2b", "a B on 8h cannot go to 2b"),  # a pawn is between
    (START, "2h2d", "a R on 2h cannot go to 2d"),
    (START, "8i7h", "a N on 8i cannot go to 7h"),
    (START, "9i8h", "your own piece is on 8h"),
    (START, "7g7f+", "a piece promotes only when it enters"),
    (START, "P*5e", "you have no P in hand"),
    ("4k4/9/9/4G4/9/9/9/9/4K4 b - 1", "5d5c+", "a G does not promote"),
    ("4k4/9/4P4/9/9/9/9/9/K8 b G 1", "5c5a", "a P on 5c cannot go to 5a"),
    ("k8/4P4/9/9/9/9/9/9/4K4 b - 1", "5b5a", "it must promote (5b5a+)"),
    ("k8/9/4N4/9/9/9/9/9/4K4 b - 1", "5c4a", "it must promote (5c4a+)"),
    ("k8/9/9/9/9/9/9/9/4K4 b N 1", "N*5b", "a N could never move from there"),
    ("k8/9/9/9/9/9/4P4/9/4K4 b P 1", "P*5d", "you have a pawn on file 5 already (二歩)"),
    ("k8/9/9/9/9/9/4P4/9/4K4 b S 1", "S*5g", "there is a piece on 5g"),
    ("k3r4/9/9/9/9/9/4S4/9/4K4 b - 1", "5g6f", "your king would be in check"),
    ("4k4/9/9/9/9/9/9/9/r3K4 b G 1", "G*1a", "your king is in check and would still be"),
    ("7nk/R8/p8/9/9/9/9/9/4K4 b P 1", "P*1b", "打ち歩詰め"),
]


def turned(text: str) -> str:
    """Return a text with its squares as the other side sees them."""
    return re.sub("[1-9][a-i]", lambda square: flip_usi(f"P*{square[0]}")[2:], text)


@pytest.mark.parametrize("flip", [False, True], ids=["black", "white"])
@pytest.mark.parametrize(("sfen", "usi", "reason"), ILLEGAL)
def test_the_reason_is_told(sfen: str, usi: str, reason: str, flip: bool) -> None:
    game = ShogiGame(flip_sfen(sfen) if flip else sfen)
    move = Move.from_usi(flip_usi(usi) if flip else usi)
    assert move not in game.legal_moves()
    assert (turned(reason) if flip else reason) in str(why_illegal(game, move))


def test_a_legal_move_is_never_explained_by_how_pieces_move() -> None:
    for game in random_play(7, 120):
        for move in game.legal_moves():
            assert str(why_illegal(game, move)).startswith(("your king", "a pawn dropped to give mate")), move


def test_a_game_that_is_over() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1")
    game.push("G*5b")
    assert str(why_illegal(game, Move.from_usi("5a4a"))) == "the game is over: black wins by checkmate"
