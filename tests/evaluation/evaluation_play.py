"""Shared by the tests of players and matches: the greedy player's definition, a deterministic player."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from keisei.core.keyed_random import uniforms
from keisei.evaluation import Player, Turn
from keisei.shogi import Move, ShogiGame

Actions = npt.NDArray[np.int32]

# Tanigawa's values, as most textbooks print them.
VALUES = {"P": 1, "L": 3, "N": 4, "S": 5, "G": 6, "B": 8, "R": 10}
VALUES |= {"+P": 7, "+L": 6, "+N": 6, "+S": 6, "+B": 10, "+R": 12}


def wins_at_once(game: ShogiGame, move: Move) -> bool:
    after = game.copy()
    after.push(move)
    outcome = after.outcome()
    return outcome is not None and outcome.winner is game.turn


def greedy_moves(game: ShogiGame) -> list[Move]:
    """Return the moves a greedy player chooses from, in the order of the legal moves."""
    legal = game.legal_moves()
    if winning := [move for move in legal if wins_at_once(game, move)]:
        return winning
    taken = [game.piece_at(move.to_square) for move in legal]
    values = [VALUES[piece.upper()] if piece else 0 for piece in taken]
    return [move for move, value in zip(legal, values, strict=True) if value == max(values)]


def drawn(moves: list[Move], game: ShogiGame, seed: int, number: int) -> Move:
    """Return the move that the random number of this game and ply selects."""
    draw = uniforms(seed, np.array([number], np.uint64), np.array([game.ply], np.int64)).item()
    return moves[int(draw * len(moves))]


class FirstMovePlayer(Player):
    """A player of the first legal move in the list, which records (game number, ply) of every request."""

    def __init__(self, name: str = "first move", capacity: int | None = None) -> None:
        self.name = self.identity = name
        self.capacity = capacity
        self.asked: list[tuple[int, int]] = []
        self.most_at_once = 0
        self.ended: list[int] = []

    def choose(self, turns: Sequence[Turn]) -> list[Move]:
        self.asked += [(turn.number, turn.game.ply) for turn in turns]
        self.most_at_once = max(self.most_at_once, len(turns))
        return [turn.game.legal_moves()[0] for turn in turns]

    def end_game(self, turn: Turn) -> None:
        self.ended.append(turn.number)
