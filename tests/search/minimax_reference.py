"""The definitions in native/alpha_beta.h, written to be read: nothing is pruned or cached.

The rules of shogi come from ShogiGame, which has its own tests.
"""

import re

from keisei.shogi import Color, Move, ShogiGame

WIN_SCORE = 100_000

# As in keisei/core/material.py. A king is never taken.
VALUES = {"P": 1, "L": 3, "N": 4, "S": 5, "G": 6, "B": 8, "R": 10, "K": 0}
VALUES |= {"+P": 7, "+L": 6, "+N": 6, "+S": 6, "+B": 10, "+R": 12}
SIGNED = VALUES | {piece.lower(): -value for piece, value in VALUES.items()}


class TooManyPositionsError(Exception):
    """A tree too large for a test."""


class Minimax:
    """Values by definition. positions: the most to visit in all. ends: how games ended on the way."""

    def __init__(self, quiet_plies: int, positions: int) -> None:
        self._quiet_plies = quiet_plies
        self._left = positions
        self.ends: set[str] = set()

    def values(self, game: ShogiGame, depth: int) -> dict[Move, int]:
        """Return the value of each legal move for the side to move."""
        return {move: self._after(game, move, depth, 0) for move in game.legal_moves()}

    def _after(self, game: ShogiGame, move: Move, depth: int, height: int) -> int:
        game.push(move)
        value = -self._value(game, depth - 1, height + 1)
        game.pop()
        return value

    def _value(self, game: ShogiGame, depth: int, height: int) -> int:
        self._count()
        end = game.outcome()
        if end is not None:
            self.ends.add(end.reason.value)
            if end.winner is None:
                return 0
            return WIN_SCORE - height if end.winner == game.turn else height - WIN_SCORE
        if game.can_declare():
            self.ends.add("declaration")
            return WIN_SCORE - height
        if depth == 0:
            # From here on no rule ends the game: continue in one without history and without those rules.
            return self._quiet(ShogiGame(game.sfen(), max_moves=None, declaration="off"), self._quiet_plies)
        return max(self._after(game, move, depth, height) for move in game.legal_moves())

    def _quiet(self, game: ShogiGame, plies: int) -> int:
        self._count()
        best = balance(game)
        if plies > 0:
            for move in game.legal_moves():
                if move.promotes or captured(game, move):
                    game.push(move)
                    best = max(best, -self._quiet(game, plies - 1))
                    game.pop()
        return best

    def _count(self) -> None:
        if self._left == 0:
            raise TooManyPositionsError
        self._left -= 1


def captured(game: ShogiGame, move: Move) -> bool:
    return move.dropped is None and game.piece_at(move.to_square) is not None


def balance(game: ShogiGame) -> int:
    """Return the material advantage of the side to move, in pawns."""
    board, _, hands, _ = game.sfen().split()
    black = sum(SIGNED[piece] for piece in re.findall(r"\+?[A-Za-z]", board))
    black += sum(SIGNED[piece] * int(count or 1) for count, piece in re.findall(r"(\d*)([A-Za-z])", hands))
    return black if game.turn == Color.BLACK else -black


def material_moves(game: ShogiGame) -> set[Move]:
    """Return the moves from which the player without lookahead draws."""
    turn = game.turn
    wins, balances = set(), {}
    for move in game.legal_moves():
        game.push(move)
        end = game.outcome()
        if end is not None and end.winner == turn:
            wins.add(move)
        balances[move] = -balance(game)
        game.pop()
    most = max(balances.values())
    return wins or {move for move, value in balances.items() if value == most}
