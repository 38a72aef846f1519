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
        """Return True also for Black: `if outcome.winner` asks whether there is one."""
        return True

    @property
    def opponent(self) -> "Color":
        """The other side."""
        return Color(1 - self)


class Reason(StrEnum):
    """What ended a game. Those after RESIGNATION come only from records of games played elsewhere."""

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
        """Return the outcome that native code tells in numbers and words."""
        return cls(None if winner is None else Color(winner), Reason(reason))

    def __str__(self) -> str:
        """Return a phrase such as "black wins by checkmate" or "draw by repetition"."""
        return f"{'draw' if self.winner is None else f'{self.winner} wins'} by {self.reason}"
