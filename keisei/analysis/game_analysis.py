"""The positions of a game as a network sees them, many searched at once.

    analyst = Analyst.load(find_checkpoint("runs/first"))
    analysis = analyst.analyze(read_record("game.kif"), visits=400)
    analysis.moves[0].win_rate, analysis.moves[0].loss

A move is judged by the search of the position after it, not by the few visits it had before: what it loses is
the difference between the two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from keisei.core.device import keep_freed_memory
from keisei.runs.load import load_network
from keisei.search.puct import Evaluate, Search, SearchSettings
from keisei.shogi import Color, GameRecord, Move, ShogiGame

POSITIONS_AT_ONCE = 32  # searched side by side, two leaves each: a batch for the network
SETTINGS = SearchSettings(leaves=2, candidates=16)


@dataclass(frozen=True, slots=True)
class PositionValue:
    """A position as searched.

    win_rate: of the side to move, 0 to 1; where the game is over, its result. mate: plies to a proven win,
    negative for a loss; None if neither. line: the best moves; empty where the game is over or the side to
    move may declare a win.
    """

    turn: Color
    win_rate: float
    mate: int | None = None
    line: tuple[Move, ...] = ()

    def win_rate_of(self, color: Color) -> float:
        """Return the win rate of a side."""
        return self.win_rate if color is self.turn else 1 - self.win_rate


@dataclass(frozen=True, slots=True)
class ReviewedMove:
    """A move of a game, between the positions before and after it. number: 1 for the first."""

    number: int
    move: Move
    before: PositionValue
    after: PositionValue

    @property
    def side(self) -> Color:
        """Who played it."""
        return self.before.turn

    @property
    def is_best(self) -> bool:
        """Whether the search would have played it too."""
        return self.before.line[:1] == (self.move,)

    @property
    def loss(self) -> float:
        """How much win rate the player gave away, 0 to 1; none with the best move."""
        if self.is_best:
            return 0.0
        return max(0.0, self.before.win_rate - self.after.win_rate_of(self.side))


@dataclass(frozen=True, slots=True)
class GameAnalysis:
    """The moves of a game, and its positions, of which there is one more.

    network, visits: who searched them, and how much.
    """

    network: str
    visits: int
    moves: tuple[ReviewedMove, ...]
    positions: tuple[PositionValue, ...]

    @property
    def black_win_rates(self) -> list[float]:
        """Black's win rate before each move and at the end."""
        return [position.win_rate_of(Color.BLACK) for position in self.positions]


class Analyst:
    """A network that analyzes games. max_moves: the length of game it was trained on, None for any."""

    def __init__(self, evaluate: Evaluate, name: str, max_moves: int | None) -> None:
        self.name = name
        self._evaluate = evaluate
        self._max_moves = max_moves

    @classmethod
    def load(cls, checkpoint: Path) -> "Analyst":
        """Load the network of a checkpoint; a damaged one raises CheckpointError."""
        keep_freed_memory()
        network = load_network(checkpoint, "auto")
        return cls(network.policy.evaluate, network.name, network.policy.config.env.max_moves)

    def analyze(
        self,
        record: GameRecord,
        *,
        visits: int,
        progress: Callable[[Sequence[PositionValue], int], None] = lambda _done, _all: None,
    ) -> GameAnalysis:
        """Search every position of a game; progress is called with those done, and how many there are."""
        games = self._positions(record)
        values: list[PositionValue] = []
        progress((), len(games))
        for start in range(0, len(games), POSITIONS_AT_ONCE):
            values += self._values(games[start : start + POSITIONS_AT_ONCE], visits)
            progress(tuple(values), len(games))
        pairs = zip(record.moves, values, values[1:], strict=False)
        moves = [ReviewedMove(number, *three) for number, three in enumerate(pairs, 1)]
        return GameAnalysis(self.name, visits, tuple(moves), tuple(values))

    def _positions(self, record: GameRecord) -> list[ShogiGame]:
        """Return the game before each move and after the last."""
        first = ShogiGame(record.sfen, max_moves=None)
        # The network sees the ply as a share of the length: shares as in training, and an end never near.
        longest = (
            None if self._max_moves is None else max(self._max_moves, 2 * (first.ply + len(record.moves)))
        )
        game = ShogiGame(record.sfen, max_moves=longest)
        games = [game.copy()]
        for move in record.moves:
            game.push(move)
            games.append(game.copy())
        return games

    def _values(self, games: list[ShogiGame], visits: int) -> list[PositionValue]:
        known = {index: value for index, game in enumerate(games) if (value := _value_by_the_rules(game))}
        searched = [index for index in range(len(games)) if index not in known]
        if searched:
            search = Search(
                [games[index] for index in searched], self._evaluate, settings=SETTINGS, planned_visits=visits
            )
            search.run(visits=visits)
            for row, index in enumerate(searched):
                best = search.result(row).lines[0]
                rate = (best.value + 1) / 2 if best.mate is None else float(best.mate > 0)
                known[index] = PositionValue(games[index].turn, rate, best.mate, best.pv)
        return [known[index] for index in range(len(games))]


def _value_by_the_rules(game: ShogiGame) -> PositionValue | None:
    """Return the value of a game that is over or that the side to move may declare won, otherwise None."""
    outcome = game.outcome()
    if outcome is not None:
        rate = 0.5 if outcome.winner is None else float(outcome.winner is game.turn)
        return PositionValue(game.turn, rate)
    return PositionValue(game.turn, 1.0) if game.can_declare() else None
