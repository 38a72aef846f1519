"""What a game in the terminal needs of an opponent: its moves and, if it has values, its advice."""

from dataclasses import dataclass
from typing import Protocol

from keisei.language import Speaker
from keisei.shogi import Move, ShogiGame


@dataclass(frozen=True, slots=True)
class Resignation:
    """An answer instead of a move; detail: what to tell the person, if anything."""

    detail: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """The best move of a position, as an opponent sees it.

    win_rate: of the side to move, 0 to 1. mate: plies to a proven win, negative for a loss; None if neither.
    line: the moves expected, the best one first.
    """

    win_rate: float
    mate: int | None
    line: tuple[Move, ...]

    def told(self, speaker: Speaker, game: ShogiGame) -> str:
        """Return a phrase such as "7g7f, win rate 54 %; line: 7g7f 3c3d", for the position of a game."""
        if self.mate is None:
            chance = speaker("win rate", percent=f"{self.win_rate:.0%}".replace("%", " %"))
        else:
            chance = speaker("mate" if self.mate > 0 else "mated", plies=abs(self.mate))
        move, line = speaker.move(game, self.line[0]), speaker.line(game, self.line)
        return speaker("play.hint", move=move, chance=chance, line=line)


class Opponent(Protocol):
    """A player in the terminal; it leaves the games unchanged."""

    @property
    def name(self) -> str:
        """For display and in records."""
        ...

    def decide(self, game: ShogiGame) -> Move | Resignation:
        """Return what it plays in a game that is not over."""
        ...

    def advise(self, game: ShogiGame) -> Advice | None:
        """Return what it would play and expects; None if it has no values."""
        ...

    def end(self, game: ShogiGame) -> None:
        """Note that the person leaves; it is not used again."""
        ...
