"""The position that the page keeps equals the rules' own, after every move of many games."""

from random import Random
from typing import TYPE_CHECKING

import pytest
from web_server import Web

from keisei.shogi import START_SFEN, ShogiGame
from keisei.shogi.records.kif import HANDICAPS

if TYPE_CHECKING:
    from playwright.sync_api import Page

PLAY = """async games => {
  const { sfensOf } = await import("/static/position.js");
  return games.map(([sfen, moves]) => sfensOf(sfen, moves));
}"""
LATE = "l1+R3knl/4g1gs1/2npppppp/p8/5N3/PP1+bP1P1P/3P1P1P1/2SK1G3/L6NL w BGSrsp 72"
STARTS = [START_SFEN] * 24 + [LATE] * 8 + list(HANDICAPS.values())[1:]


def random_game(sfen: str, seed: int, plies: int = 200) -> tuple[list[str], list[str]]:
    """Return the moves and the position before each and at the end; captures and promotions are preferred."""
    choose, game = Random(seed), ShogiGame(sfen, max_moves=None)
    moves, sfens = list[str](), [game.sfen()]
    while len(moves) < plies and game.outcome() is None:
        legal = [str(move) for move in game.legal_moves()]
        lively = [move for move in legal if move.endswith("+") or game.piece_at(move[2:4]) is not None]
        moves.append(choose.choice(lively if lively and choose.random() < 0.5 else legal))
        game.push(moves[-1])
        sfens.append(game.sfen())
    return moves, sfens


@pytest.fixture(scope="module")
def games() -> list[tuple[str, list[str], list[str]]]:
    return [(sfen, *random_game(sfen, seed)) for seed, sfen in enumerate(STARTS)]


def test_the_games_have_everything_that_changes_a_position(
    games: list[tuple[str, list[str], list[str]]],
) -> None:
    moves = [move for _, played, _ in games for move in played]
    assert len(moves) > 5000
    assert sum(move[1] == "*" for move in moves) > 500
    assert sum(move.endswith("+") for move in moves) > 500
    taken_back = [  # a promoted piece is taken, and is then in hand as what it was
        move
        for sfen, played, _ in games
        for move, piece in zip(played, _pieces_taken(sfen, played), strict=True)
        if piece.startswith("+")
    ]
    assert len(taken_back) > 100


def _pieces_taken(sfen: str, moves: list[str]) -> list[str]:
    game, taken = ShogiGame(sfen, max_moves=None), []
    for move in moves:
        taken.append(str(game.piece_at(move[2:4]) or ""))
        game.push(move)
    return taken


def test_the_pages_position_equals_the_rules_after_every_move(
    page: "Page", site: Web, games: list[tuple[str, list[str], list[str]]]
) -> None:
    page.goto(f"{site.base}/play")
    shown = page.evaluate(PLAY, [[sfen, moves] for sfen, moves, _ in games])
    for (sfen, moves, expected), positions in zip(games, shown, strict=True):
        assert len(positions) == len(expected)
        for ply, (one, other) in enumerate(zip(positions, expected, strict=True)):
            assert one == other, (sfen, moves[:ply])


@pytest.mark.parametrize(("move", "what"), [("P*5e", "no P in hand"), ("5e5d", "no piece to move")])
def test_a_move_that_cannot_be_is_refused(page: "Page", site: Web, move: str, what: str) -> None:
    page.goto(f"{site.base}/play")
    error = page.evaluate(
        """async move => {
          const { Position } = await import("/static/position.js");
          try { new Position().play(move); return ""; } catch (error) { return error.message; }
        }""",
        move,
    )
    assert what in error
    assert START_SFEN in error
