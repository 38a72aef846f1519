"""The game at a table: position, moves and their texts, estimates, result. Nothing here waits or thinks."""

from dataclasses import dataclass
from typing import Any

from keisei.language import ENGLISH, JAPANESE
from keisei.shogi import Color, GameRecord, Move, Outcome, Reason, RulesError, ShogiGame
from keisei.shogi.records.kif import HANDICAPS
from keisei.web.answers import Refusal
from keisei.web.game_facts import outcome_facts

MAX_MOVES, DECLARATION = 512, "27"
_EVEN = "平手"


@dataclass(frozen=True, slots=True)
class Seat:
    """Who sits where; side: the person's."""

    side: Color
    you: str
    opponent: str


class TableGame:
    """A game from a position; moves: those played before it began here."""

    def __init__(self, seat: Seat, game: ShogiGame) -> None:
        self.seat = seat
        self._game = game
        self._ended: Outcome | None = None  # by what the position does not show: time
        self._texts: dict[str, list[str]] = {"en": [], "ja": []}
        self._percents: list[float | None] = [None] * (len(game.history) + 1)
        self._before = len(game.history)
        self._tell_moves_before()

    def _tell_moves_before(self) -> None:
        trial = ShogiGame(self._game.start_sfen, max_moves=None, declaration="off")
        for move in self._game.history:
            self._tell(trial, move)
            trial.push(move)

    def _tell(self, game: ShogiGame, move: Move) -> None:
        self._texts["en"].append(ENGLISH.move(game, move))
        self._texts["ja"].append(JAPANESE.move(game, move))

    @property
    def turn(self) -> Color:
        """The side to move."""
        return self._game.turn

    @property
    def moves(self) -> list[str]:
        """The moves in USI."""
        return [str(move) for move in self._game.history]

    @property
    def start_sfen(self) -> str:
        """The position that the moves start from."""
        return self._game.start_sfen

    @property
    def outcome(self) -> Outcome | None:
        """The result, once there is one."""
        return self._ended or self._game.outcome()

    @property
    def may_declare(self) -> bool:
        """Whether the side to move may declare a win."""
        return self._ended is None and self._game.can_declare()

    def push(self, move: str, black_percent: float | None = None) -> None:
        """Play a legal move; black_percent: what the mover thinks of the position before and after it."""
        try:
            before = self._game.copy()
            self._game.push(move)
        except ValueError as error:
            raise Refusal(409, str(error)) from error
        self._tell(before, self._game.history[-1])
        if black_percent is not None:
            self._percents[-1] = black_percent
        self._percents.append(black_percent)

    def take_back(self) -> None:
        """Take back the person's last move, and the reply to it if there is one."""
        history, ours = len(self._game.history), self.seat.side
        last_by_us = self._game.turn is not ours
        wanted = 1 if last_by_us else 2
        if history - wanted < self._before:
            raise Refusal(409, "there is no move to take back")
        self._ended = None
        for _ in range(wanted):
            self._game.pop()
            self._percents.pop()
            for texts in self._texts.values():
                texts.pop()

    def resign(self, color: Color) -> None:
        """Give up for a side, whoever is to move."""
        self._ended = Outcome(color.opponent, Reason.RESIGNATION)

    def lose_on_time(self, color: Color) -> None:
        """End the game for a side without time."""
        self._ended = Outcome(color.opponent, Reason.TIME)

    def declare(self) -> None:
        """Claim a win for the side to move."""
        try:
            self._game.declare()
        except RulesError as error:
            raise Refusal(409, str(error)) from error

    def request(self) -> dict[str, Any]:
        """Return the position as an engine gets it."""
        game = self._game
        return {
            "sfen": game.start_sfen,
            "moves": self.moves,
            "max_moves": game.max_moves,
            "declaration": game.declaration,
        }

    def record(self) -> GameRecord:
        """Return the game as a record."""
        names = {self.seat.side: self.seat.you, self.seat.side.opponent: self.seat.opponent}
        moves = tuple(self._game.history)
        return GameRecord(moves, self.start_sfen, names[Color.BLACK], names[Color.WHITE], self.outcome)

    def facts(self, *, yours: bool) -> dict[str, Any]:
        """Return what a page is told; yours: the person may move now."""
        game, outcome = self._game, self.outcome
        return {
            "side": str(self.seat.side),
            "start_sfen": game.start_sfen,
            "sfen": game.sfen(),
            "moves": self.moves,
            "texts": self._texts,
            "legal": [str(move) for move in game.legal_moves()] if yours else [],
            "check": game.is_check(),
            "may_declare": yours and self.may_declare,
            "black_percent": self._percents,
            "outcome": None if outcome is None else outcome_facts(outcome),
            "handicap": game.start_sfen in HANDICAPS.values() and game.start_sfen != HANDICAPS[_EVEN],
        }
