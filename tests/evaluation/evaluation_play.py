"""What the tests of players and matches share: the greedy player's definition, a player without chance."""

import numpy as np
import numpy.typing as npt

from keisei.core.keyed_random import uniforms
from keisei.shogi import Move, ShogiGame, encoding
from keisei.shogi.vector import Batch, VectorGames

Actions = npt.NDArray[np.int32]
Slots = npt.NDArray[np.intp]

# Tanigawa's values, as most textbooks print them.
VALUES = {"P": 1, "L": 3, "N": 4, "S": 5, "G": 6, "B": 8, "R": 10}
VALUES |= {"+P": 7, "+L": 6, "+N": 6, "+S": 6, "+B": 10, "+R": 12}


def wins_at_once(game: ShogiGame, move: Move) -> bool:
    after = game.copy()
    after.push(move)
    outcome = after.outcome()
    return outcome is not None and outcome.winner is game.turn


def greedy_moves(game: ShogiGame) -> list[Move]:
    """The moves among which a greedy player draws, in the order of the legal moves."""
    legal = game.legal_moves()
    if winning := [move for move in legal if wins_at_once(game, move)]:
        return winning
    taken = [game.piece_at(move.to_square) for move in legal]
    values = [VALUES[piece.upper()] if piece else 0 for piece in taken]
    return [move for move, value in zip(legal, values, strict=True) if value == max(values)]


def drawn(moves: list[Move], game: ShogiGame, seed: int, number: int) -> int:
    """The action of the move that the random number of this game and ply points to."""
    draw = uniforms(seed, np.array([number], np.uint64), np.array([game.ply], np.int64)).item()
    return encoding.action_of(moves[int(draw * len(moves))], game.turn)


def position(sfen: str, declaration: str = "27") -> tuple[VectorGames, Batch]:
    """One game that begins with a position."""
    games, batch = VectorGames(1, starts=[sfen], declaration=declaration), Batch.empty(1)
    games.observe(batch)
    return games, batch


class FirstMovePlayer:
    """Plays the first legal move of the list, and remembers (game number, ply) of all that it was asked."""

    def __init__(self, name: str = "first move") -> None:
        self.name = name
        self.asked: list[tuple[int, int]] = []

    def choose(self, games: VectorGames, batch: Batch, slots: Slots) -> Actions:
        plies = encoding.plies(batch.packed)
        self.asked += [(games.numbers[slot], int(plies[slot])) for slot in slots.tolist()]
        return batch.actions[batch.offsets[slots]]
