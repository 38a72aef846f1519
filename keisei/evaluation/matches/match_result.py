"""The result of a match from the player's point of view."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np


class GameSummary(NamedTuple):
    """What counts of a game: the player's half-points, what ended it, and its plies."""

    half_points: int
    reason: str
    plies: int


class PairSummary(NamedTuple):
    """The two games of an opening: with the player as Black, and as White."""

    as_black: GameSummary
    as_white: GameSummary


class Tally(NamedTuple):
    """Won, drawn and lost games."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        """The number of games."""
        return sum(self)

    @property
    def score(self) -> float:
        """The share of the points, a draw counting half; nan without games."""
        return (self.wins + self.draws / 2) / self.games if self.games else math.nan


@dataclass(frozen=True, slots=True)
class MatchResult:
    """The result of a match from the player's point of view.

    as_black, as_white: the player's results by colour.
    pairs: how many pairs of games gave the player 0, 1, 2, 3 and 4 half-points (the pentanomial result).
    reasons: what ended the games, and how often.
    mean_length: mean plies per game, including the opening; nan without games.
    stopped: the match ended early; it has fewer games than requested, and short ones are overrepresented.
    test: the verdict of a sequential test, if there was one.
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
    test: str | None = None

    @property
    def total(self) -> Tally:
        """The results of both colours together."""
        return Tally(*(black + white for black, white in zip(self.as_black, self.as_white, strict=True)))

    @property
    def games(self) -> int:
        """The number of games that count."""
        return self.total.games

    @property
    def wins(self) -> int:
        """Games that the player won."""
        return self.total.wins

    @property
    def draws(self) -> int:
        """Games that were drawn."""
        return self.total.draws

    @property
    def losses(self) -> int:
        """Games that the opponent won."""
        return self.total.losses

    @property
    def score(self) -> float:
        """The player's share of the points, a draw counting half; nan without games."""
        return self.total.score

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the bounds of the score; see `score_interval`."""
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
            f"{f', {self.test}' if self.test else ''}"
        )


def score_interval(pairs: Iterable[int], confidence: float = 0.95) -> tuple[float, float]:
    """Return the bounds of the expected score, given how many pairs gave 0, 1, 2, 3 and 4 half-points.

    The two games of a pair share their opening and are not independent, so a pair is one observation, its
    score x = 0, ¼, ½, ¾ or 1. The interval is Agresti and Coull's, for observations between 0 and 1: with the
    quantile z, add z²/2 observations of 0 and as many of 1, then take mean ± z · sd / √n. It has a width even
    if all pairs ended alike, always contains the score, and is 0 to 1 without pairs.
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


def summed_up(
    player: str,
    opponent: str,
    pairs: Sequence[PairSummary],
    seed: int,
    *,
    stopped: bool = False,
    test: str | None = None,
) -> MatchResult:
    """Return the result of pairs of games."""
    sums = Counter(black.half_points + white.half_points for black, white in pairs)
    games = [game for pair in pairs for game in pair]
    return MatchResult(
        player,
        opponent,
        as_black=_tally(black for black, _ in pairs),
        as_white=_tally(white for _, white in pairs),
        pairs=(sums[0], sums[1], sums[2], sums[3], sums[4]),
        reasons=dict(Counter(game.reason for game in games).most_common()),
        mean_length=float(np.mean([game.plies for game in games])) if games else math.nan,
        seed=seed,
        stopped=stopped,
        test=test,
    )


def _tally(games: Iterable[GameSummary]) -> Tally:
    counts = Counter(game.half_points for game in games)
    return Tally(counts[2], counts[1], counts[0])
