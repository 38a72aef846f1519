"""Moves written in Japanese: as a writer made from the rules of the Japan Shogi Association writes them."""

import pytest
from conftest import random_play
from ki2_writer import ki2_move

from keisei.shogi import ShogiGame
from keisei.shogi.japanese_moves import japanese_move


@pytest.mark.parametrize("seed", range(3))
def test_every_legal_move_is_written_by_the_fewest_words(seed: int) -> None:
    for game in random_play(seed, 160):
        last = game.history[-1].to_square if game.history else ""
        for move in game.legal_moves():
            assert japanese_move(game, move, last) == ki2_move(game, move, last), game.sfen()


def test_three_pieces_side_by_side_are_told_apart() -> None:
    game = ShogiGame("8k/9/9/9/9/3+P+P+P3/9/9/4K4 b - 1")
    texts = {str(move): japanese_move(game, move) for move in game.legal_moves() if move.to_square == "5e"}
    assert texts == {"6f5e": "５五と左", "5f5e": "５五と直", "4f5e": "５五と右"}
