"""The interface of a player, which answers many games at once.

An answer depends only on the game, its number and its ply, not on the other games, so a match is the same
however it is batched. Two random players with the same seed draw the same numbers for the same game and ply;
players that should differ need different seeds.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from keisei.errors import UserError
from keisei.shogi import Move, Reason, ShogiGame


class PlayerError(UserError, ValueError):
    """An unknown player, or one that cannot be loaded; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An unfinished game with the player to move; the player must leave it unchanged.

    number: the game's number in its match; it and the ply key a player's random draws. (Only a player that
    plays itself, under one identity, has two games with the same number: the same game twice.)
    """

    game: ShogiGame
    number: int


@dataclass(frozen=True, slots=True)
class Lost:
    """An answer instead of a move: the player loses this game, by resigning or through its own fault.

    reason: RESIGNATION, TIME, ILLEGAL_MOVE or FORFEIT. detail: what happened, naming the player.
    """

    reason: Reason
    detail: str = ""


Answer = Move | Lost


class Player(ABC):
    """A participant in matches.

    name: for display. identity: what determines its play apart from the seed; two players with the same
    identity count as one. capacity: how many games it can play at once; None for any number.
    """

    name: str
    identity: str
    capacity: int | None = None

    @abstractmethod
    def choose(self, turns: Sequence[Turn]) -> Sequence[Answer]:
        """Return an answer for each of these games."""

    def end_game(self, turn: Turn) -> None:  # noqa: ARG002 - for players that care
        """Note that a game is over; turn.game has the outcome, unless a fault lost it."""
        return

    def close(self) -> None:
        """Release the player's resources; it is not used again."""
        return

    def describe(self) -> dict[str, str]:
        """Return what a report should say about the player beyond its name, such as a checkpoint's hash."""
        return {}
