"""Matches: two players, random openings, each played twice with the colours exchanged.

    result = play_match(NetworkPlayer(agent, "default", seed=1), make_opponent("greedy", seed=2), games=200)
    print(result)

Two vectors of games have the same seed and so the same openings; in the first the player is Black, in the
second White. A game depends on seed, number and players, not on how many are played side by side: all games
with a number below the number of pairs count, whichever slot they are played in, and each counts once.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from keisei.evaluation.players import GreedyPlayer, Player, RandomPlayer
from keisei.shogi import encoding
from keisei.shogi.outcome import Color
from keisei.shogi.vector import Batch, FinishedGame, VectorGames


class Tally(NamedTuple):
    """Won, drawn and lost games."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        """How many they are."""
        return sum(self)

    @property
    def score(self) -> float:
        """The share of the points, a draw being half of one; nan without games."""
        return (self.wins + self.draws / 2) / self.games if self.games else math.nan


@dataclass(frozen=True, slots=True)
class MatchResult:
    """How a match ended, as the player sees it.

    as_black, as_white: the player's results by its colour.
    pairs: how many pairs of games brought the player 0, 1, 2, 3 and 4 half-points (the pentanomial result).
    reasons: what ended the games, and how often.
    mean_length: plies of a game, those of its random opening among them; nan without games.
    stopped: the match was ended early; it has fewer games than were asked for, and rather the short ones.
    records: if kept, the games, those of pair k at 2 * k (the player is Black) and at 2 * k + 1 (White).
    """

    player: str
    opponent: str
    as_black: Tally
    as_white: Tally
    pairs: tuple[int, int, int, int, int]
    reasons: Mapping[str, int]
    mean_length: float
    seed: int
    stopped: bool = False
    records: tuple[FinishedGame, ...] = ()

    @property
    def total(self) -> Tally:
        """The results of both colours together."""
        return Tally(*(black + white for black, white in zip(self.as_black, self.as_white, strict=True)))

    @property
    def games(self) -> int:
        """How many games count."""
        return self.total.games

    @property
    def wins(self) -> int:
        """Games that the player won."""
        return self.total.wins

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return self.total.draws

    @property
    def losses(self) -> int:
        """Games that the opponent won."""
        return self.total.losses

    @property
    def score(self) -> float:
        """The player's share of the points, a draw being half of one; nan without games."""
        return self.total.score

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return bounds of the score: see `score_interval`."""
        return score_interval(self.pairs, confidence)

    def __str__(self) -> str:
        """Return the result in one line."""
        if not self.games:
            return f"{self.player} vs {self.opponent}: no games"
        low, high = self.interval()
        return (
            f"{self.player} vs {self.opponent}: {self.wins} wins, {self.draws} draws, {self.losses} losses"
            f" of {self.games} ({100 * self.score:.1f} %, 95 % interval {100 * low:.0f}–{100 * high:.0f}),"
            f" {100 * self.as_black.score:.0f} % as Black, {100 * self.as_white.score:.0f} % as White,"
            f" {self.mean_length:.0f} plies{', stopped early' if self.stopped else ''}"
        )


def score_interval(pairs: Iterable[int], confidence: float = 0.95) -> tuple[float, float]:
    """Return bounds of the expected score, given how many pairs brought 0, 1, 2, 3 and 4 half-points.

    The two games of a pair share their opening and are not independent, so a pair is one observation, its
    score x = 0, ¼, ½, ¾ or 1. The interval is Agresti and Coull's, for observations between 0 and 1: with the
    quantile z, z²/2 observations of 0 and as many of 1 are added, and then it is mean ± z · sd / √n. So it
    has a width also where all pairs ended alike, always contains the score, and is 0 to 1 without pairs.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, expected a number between 0 and 1")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    weights = np.array([*pairs], np.float64)
    weights[[0, 4]] += z * z / 2
    scores, n = np.arange(5) / 4, weights.sum()
    mean = (weights @ scores) / n
    half_width = z * math.sqrt(weights @ (scores - mean) ** 2) / n
    return max(0.0, float(mean - half_width)), min(1.0, float(mean + half_width))


def make_opponent(name: str, seed: int) -> Player:
    """Return the built-in player of that name: "random" or "greedy"."""
    if name == "random":
        return RandomPlayer(seed)
    if name == "greedy":
        return GreedyPlayer(seed)
    raise ValueError(f"opponent is {name!r}, expected 'random' or 'greedy'")


def play_match(
    player: Player,
    opponent: Player,
    *,
    games: int = 200,
    random_plies: int = 4,
    max_moves: int = 512,
    declaration: str = "27",
    seed: int = 0,
    threads: int = 1,
    side_by_side: int = 100,
    keep_games: bool = False,
    progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> MatchResult:
    """Play a match and return its result.

    random_plies, max_moves, declaration: as for VectorGames. seed: of the openings.
    side_by_side: how many games are played at once; neither it nor threads changes a result.
    progress: called with the number of finished games and of all, whenever some have finished.
    should_stop: asked before every step; once it says True, the pairs that are complete are the result.
    """
    if games < 2 or games % 2:
        raise ValueError(f"games is {games}, expected an even number, at least 2: openings are played twice")
    if side_by_side < 2:
        raise ValueError(f"side_by_side is {side_by_side}, expected at least 2: both games of an opening")
    pairs = games // 2

    def seat(color: Color, black: Player, white: Player) -> _Table:
        vector = VectorGames(
            min(side_by_side // 2, pairs),
            threads=threads,
            seed=seed,
            max_moves=max_moves,
            declaration=declaration,
            random_plies=random_plies,
        )
        return _Table(color, black, white, vector, pairs, keep_games)

    tables = seat(Color.BLACK, player, opponent), seat(Color.WHITE, opponent, player)
    stopped, finished = False, 0
    while finished < games:
        if stopped := should_stop is not None and should_stop():
            break
        ended = sum([table.step() for table in tables])
        finished += ended
        if ended and progress is not None:
            progress(finished, games)
    black, white = (table.finished for table in tables)
    both = [(black[number], white[number]) for number in sorted(black.keys() & white.keys())]
    return _summed_up(player.name, opponent.name, both, seed, stopped)


class _Ended(NamedTuple):
    """What is kept of a game: the player's half-points, how it ended, how long it was, perhaps all of it."""

    half_points: int
    reason: str
    plies: int
    game: FinishedGame | None


class _Table:
    """All games of a match in which the player has the same colour; `finished` has them by number."""

    def __init__(
        self, color: Color, black: Player, white: Player, games: VectorGames, pairs: int, keep_games: bool
    ) -> None:
        self.finished: dict[int, _Ended] = {}
        self._color = color
        self._players = {Color.BLACK: black, Color.WHITE: white}
        self._games = games
        self._pairs = pairs
        self._keep_games = keep_games
        self._batch = Batch.empty(len(games))
        games.observe(self._batch)

    def step(self) -> int:
        """Play a move in every game and return how many games that count have ended."""
        batch, before = self._batch, len(self.finished)
        if before == self._pairs:
            return 0
        # A slot that has no more games to play must still move: its first legal action, and nobody is asked.
        actions = batch.actions[batch.offsets[:-1]]
        counts = np.array([number < self._pairs for number in self._games.numbers])
        turns = encoding.turns(batch.packed)
        for color, player in self._players.items():
            slots = np.flatnonzero(counts & (turns == color))
            if len(slots):
                actions[slots] = player.choose(self._games, batch, slots)
        for game in self._games.step(actions, batch):
            if game.number < self._pairs:
                self.finished[game.number] = self._ended(game)
        return len(self.finished) - before

    def _ended(self, game: FinishedGame) -> _Ended:
        winner = game.outcome.winner
        half_points = 1 if winner is None else 2 if winner == self._color else 0
        kept = game if self._keep_games else None
        return _Ended(half_points, str(game.outcome.reason), len(game.moves), kept)


def _summed_up(
    player: str, opponent: str, both: list[tuple[_Ended, _Ended]], seed: int, stopped: bool
) -> MatchResult:
    """Return the result of pairs of games, in the first of which the player was Black."""
    sums = Counter(black.half_points + white.half_points for black, white in both)
    games = [game for pair in both for game in pair]
    return MatchResult(
        player,
        opponent,
        as_black=_tally(black for black, _ in both),
        as_white=_tally(white for _, white in both),
        pairs=(sums[0], sums[1], sums[2], sums[3], sums[4]),
        reasons=dict(Counter(game.reason for game in games).most_common()),
        mean_length=float(np.mean([game.plies for game in games])) if games else math.nan,
        seed=seed,
        stopped=stopped,
        records=tuple(ended.game for ended in games if ended.game is not None),
    )


def _tally(games: Iterable[_Ended]) -> Tally:
    counts = Counter(game.half_points for game in games)
    return Tally(counts[2], counts[1], counts[0])
