"""What a player is: it answers for many games at a time.

An answer depends on the game, its number and its ply alone, not on the other games, so a match is the same
however it is divided. Two random players with the same seed draw the same numbers for the same game and ply;
players that are to differ need different seeds.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from keisei.errors import UserError
from keisei.shogi import Move, Reason, ShogiGame


class PlayerError(UserError, ValueError):
    """A text that names no player, or a player that cannot be had; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A game in which a player is to move; it is not over, and the player leaves it as it is.

    number: the game's own in its match; what a player draws at random is keyed by it, and by the ply. (Only
    a player that plays itself, under one identity, has two games with a number: the same game twice.)
    """

    game: ShogiGame
    number: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Instead of a move: the player loses this game, by resigning or by a fault of its own.

    reason: RESIGNATION, TIME, ILLEGAL_MOVE or FORFEIT. detail: what happened, in words with names.
    """

    reason: Reason
    detail: str = ""


Answer = Move | Lost


class Player(ABC):
    """Whoever can take part in a match.

    name: what people call it. identity: what determines its play apart from the seed; results of two players
    with the same identity are results of one player. capacity: how many games it can play at once; None is
    any number.
    """

    name: str
    identity: str
    capacity: int | None = None

    @abstractmethod
    def choose(self, turns: Sequence[Turn]) -> Sequence[Answer]:
        """Return an answer for each of these games."""

    def end_game(self, turn: Turn) -> None:  # noqa: ARG002 - for those who care
        """Be told that a game is over; turn.game has the outcome, unless it was lost by a fault."""
        return

    def close(self) -> None:
        """Give back what the player holds; it is not asked again."""
        return

    def describe(self) -> dict[str, str]:
        """Return what a report should say about the player beyond its name, such as a checkpoint's hash."""
        return {}
