"""Who won and why: Color, Reason and Outcome."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Color(IntEnum):
    """A side. Black (先手) moves first in an even game."""

    BLACK = 0
    WHITE = 1

    def __str__(self) -> str:
        """Return "black" or "white"."""
        return self.name.lower()

    def __bool__(self) -> bool:
        """Return True for Black too, so that `if outcome.winner` means "somebody won"."""
        return True

    @property
    def opponent(self) -> "Color":
        """The other side."""
        return Color(1 - self)


class Reason(StrEnum):
    """The reason a game ended. Those after RESIGNATION occur only in records of games played elsewhere."""

    CHECKMATE = "checkmate"
    NO_LEGAL_MOVE = "no legal move"
    REPETITION = "repetition"
    PERPETUAL_CHECK = "perpetual check"
    DECLARATION = "declaration"
    MAXIMUM_LENGTH = "maximum length"
    RESIGNATION = "resignation"
    TIME = "time"
    ILLEGAL_MOVE = "illegal move"
    FORFEIT = "forfeit"
    AGREED_IMPASSE = "agreed impasse"
    ADJUDICATION = "adjudication"


@dataclass(frozen=True)
class Outcome:
    """The end of a game: the winner (None for a draw) and the reason."""

    winner: Color | None
    reason: Reason

    @classmethod
    def from_native(cls, winner: int | None, reason: str) -> "Outcome":
        """Convert native code's (winner, reason)."""
        return cls(None if winner is None else Color(winner), Reason(reason))

    def __str__(self) -> str:
        """Return a phrase such as "black wins by checkmate" or "draw by repetition"."""
        return f"{'draw' if self.winner is None else f'{self.winner} wins'} by {self.reason}"
