"""PolicyOutputMapper: moves to indices in the policy's 13,527 actions, and back."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from keisei.shogi import Move, encoding
from keisei.shogi.outcome import Color
from keisei.shogi.shogi_game import ShogiGame

_T = TypeVar("_T")


class PolicyOutputMapper:
    """The meaning of each action index, which is from the mover's view: naming a move takes a side too."""

    total_actions = encoding.ACTIONS

    def move_to_index(self, move: Move | str, turn: Color) -> int:
        """Return the index of a move, given as a Move or in USI, made by that side."""
        return encoding.action_of(move, turn)

    def index_to_move(self, index: int, turn: Color) -> Move:
        """Return the move that an index, 0 to 13526, means for that side."""
        return encoding.move_of(index, turn)

    def moves_to_indices(self, moves: Iterable[Move | str], turns: Iterable[Color]) -> npt.NDArray[np.int32]:
        """Return the index of each move, int32 [N]; turns has one side per move."""
        pairs = _pairs(list(moves), list(turns))
        return np.array([encoding.action_of(move, turn) for move, turn in pairs], np.int32)

    def indices_to_moves(self, indices: npt.ArrayLike, turns: Iterable[Color]) -> list[Move]:
        """Return the move of each index; turns has one side per index."""
        pairs = _pairs(np.asarray(indices).tolist(), list(turns))
        return [encoding.move_of(index, turn) for index, turn in pairs]

    def legal_indices(self, game: ShogiGame) -> npt.NDArray[np.int32]:
        """Return the indices of the legal moves, in the order of game.legal_moves(), int32 [k]."""
        turn = game.turn
        return np.array([encoding.action_of(move, turn) for move in game.legal_moves()], np.int32)

    def legal_mask(self, game: ShogiGame) -> npt.NDArray[np.bool_]:
        """Return True for the legal moves, bool [13527]; all False once the game is over."""
        mask = np.zeros(self.total_actions, np.bool_)
        mask[self.legal_indices(game)] = True
        return mask

    def legal_masks(self, packed: npt.NDArray[np.uint8], *, threads: int = 1) -> npt.NDArray[np.bool_]:
        """Return the mask of each packed position, bool [N, 13527]."""
        return encoding.legal_mask(packed, threads=threads)


def _pairs(things: list[_T], turns: list[Color]) -> list[tuple[_T, Color]]:
    if len(things) != len(turns):
        raise ValueError(f"{len(turns)} turns, expected {len(things)}, one side each")
    return list(zip(things, turns, strict=True))
