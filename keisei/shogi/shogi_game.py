"""ShogiGame: a game of shogi in the game's own words, on top of the native rules.

Legal moves, check, repetition, declaration and the end of the game are decided in C++; this class adds
the words and the pictures. A finished game has no legal moves and accepts none.
"""

from collections.abc import Callable
from typing import Self

from keisei._native import Game
from keisei.shogi.bod import write_bod
from keisei.shogi.outcome import Color, Outcome, Reason
from keisei.shogi.svg import draw_svg

_COLORS = (Color.BLACK, Color.WHITE)


class ShogiGame(Game):
    """A game of shogi from a position (SFEN; None is the start position).

    max_moves: the game is a draw when `ply` reaches it; None for no limit.
    declaration: "27" or "24" points, "try" (a king on the enemy king's first square wins at once) or "off".
    kings: "both" sides must have one, or "defender": the side to move may lack its king, as in mate problems
        (tsume). It is then never in check and can never declare. Network input and all searches except the
        mate search need both kings.
    """

    @property
    def turn(self) -> Color:
        """The side to move."""
        return _COLORS[self._turn]

    def outcome(self) -> Outcome | None:
        """Return the winner and the reason if the game is over, otherwise None."""
        end = self._outcome()
        return Outcome.from_native(*end) if end else None

    def copy(self) -> Self:
        """Return an independent copy with the whole history."""
        other = type(self).__new__(type(self))  # a subclass may have another __init__
        Game.__init__(other, self)
        other.__dict__.update(self.__dict__)
        return other

    def svg(self, size: int = 480) -> str:
        """Return a drawing of the board, `size` pixels wide, with the last move marked."""
        history = self.history
        return draw_svg(self.sfen(), history[-1] if history else None, size)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        """Return the board as shogi programs print it (a BOD diagram)."""
        return write_bod(self.sfen())

    def __repr__(self) -> str:
        """Return the position, `kings` unless it is "both", and how the game ended if it is over."""
        outcome = self.outcome()
        kings = "" if self.kings == "both" else f" kings={self.kings}"
        return f"<{type(self).__name__} {self.sfen()}{kings}{f' ({outcome})' if outcome else ''}>"

    def __reduce__(self) -> tuple[Callable[..., "ShogiGame"], tuple[object, ...], dict[str, object]]:
        """Pickle the start, rules, moves and any resignation or declaration, plus a subclass's attributes."""
        outcome = self.outcome()
        ended = str(outcome.reason) if outcome else None
        rules = (self.start_sfen, self.max_moves, self.declaration)
        moves = [str(move) for move in self.history]
        return _rebuild, (type(self), *rules, moves, ended, self.kings), self.__dict__


def _rebuild(
    kind: type[ShogiGame],
    sfen: str,
    max_moves: int | None,
    declaration: str,
    moves: list[str],
    ended: str | None,
    kings: str = "both",  # missing in pickles of earlier versions
) -> ShogiGame:
    game = kind.__new__(kind)
    Game.__init__(game, sfen, max_moves=max_moves, declaration=declaration, kings=kings)
    for move in moves:
        game.push(move)
    if ended == Reason.RESIGNATION:
        game.resign()
    elif ended == Reason.DECLARATION and game.outcome() is None:  # a win by the try rule needs no declaring
        game.declare()
    return game
