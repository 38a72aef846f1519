"""Elo ratings with intervals, from the results of all games at once.

    ratings = rate([PairResult("net", "greedy", 60, 10, 30), PairResult("greedy", "random", 195, 5, 0)])
    print(format_table(ratings))

The strengths are those under which the results are most likely (`davidson` has the model); Elo is
400 · log10 of their ratio to the anchor's, whose Elo is exactly 0. Bounds are the strengths at which the
log-likelihood, maximised over everything else, has fallen by half the chi-square quantile. They need no
finite estimate: a player that has won all its games has elo +inf, a finite `low`, and `high` +inf.
Games count as independent; the two games of an opening are not quite that.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.evaluation.ratings.davidson import Davidson

ELO_PER_NAT = 400 / math.log(10)

_TRIES = 100  # about 4 are needed

Floats = npt.NDArray[np.float64]


class PairResult(NamedTuple):
    """Games between two players, both colours together, from the first one's point of view."""

    player: str
    opponent: str
    wins: int
    draws: int
    losses: int


@dataclass(frozen=True, slots=True)
class Rating:
    """A player's Elo and its bounds; score is its share of the points in all its games, NaN without games.

    elo +inf: it has scored against the anchor, perhaps through others, and never the other way round; high
    is +inf, low finite. elo -inf: the reverse. elo NaN: no results compare it with the anchor; low is -inf
    and high +inf.
    """

    player: str
    elo: float
    low: float
    high: float
    games: int
    score: float


@dataclass(frozen=True)
class Ratings:
    """Ratings, best first.

    nu: two equal players draw with probability nu / (2 + nu). confidence: of the bounds.
    covariance: float64 [n, n] in Elo², in the order of the table; NaN for players without a finite Elo.
    """

    table: tuple[Rating, ...]
    anchor: str
    confidence: float
    nu: float
    covariance: Floats
    _model: Davidson
    _numbers: Mapping[str, int]

    def __getitem__(self, player: str) -> Rating:
        """Return the rating of a player."""
        self._number(player)
        return next(rating for rating in self.table if rating.player == player)

    def superiority(self, a: str, b: str) -> float:
        """Return the likelihood of superiority: how probable it is that a is stronger than b.

        It uses the signed root of the likelihood ratio, like the bounds, so it also works for an infinite
        Elo. Players that no results compare have 0.5, as does a player with itself.
        """
        first, second = self._number(a), self._number(b)
        model = self._model
        if first == second:
            return 0.5
        fall = max(0.0, model.best.value - model.profile(first, second, 0.0).value)
        if model.comparable(first, second):
            sign = math.copysign(1, model.best.theta[first] - model.best.theta[second])
        else:
            sign = float(model.reaches[first, second]) - float(model.reaches[second, first])
        return NormalDist().cdf(sign * math.sqrt(2 * fall))

    def _number(self, player: str) -> int:
        if player not in self._numbers:
            raise ValueError(f"no player {player!r} in the table: expected one of {', '.join(self._numbers)}")
        return self._numbers[player]


def rate(results: Iterable[PairResult], anchor: str = "random", confidence: float = 0.95) -> Ratings:
    """Return the ratings of all players; rows of the same two players, in either order, add up."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, expected a number between 0 and 1")
    rows = list(results)
    names = sorted({name for row in rows for name in row[:2]})
    numbers = {name: index for index, name in enumerate(names)}
    if anchor not in numbers:
        raise ValueError(
            f"anchor {anchor!r} has no results: expected one of {', '.join(names) or 'no players'}"
        )
    wins, draws = _counts(rows, numbers)
    model = Davidson(wins, draws)
    covariance = model.covariance(numbers[anchor]) * ELO_PER_NAT**2
    drop = NormalDist().inv_cdf((1 + confidence) / 2) ** 2 / 2
    won, drawn = wins.sum(axis=1), draws.sum(axis=1)
    games = won + drawn + wins.sum(axis=0)
    ratings = []
    for name, k in numbers.items():
        elo, low, high = _estimate(model, k, numbers[anchor], drop, covariance[k, k])
        score = float(won[k] + drawn[k] / 2) / int(games[k]) if games[k] else math.nan
        ratings.append(Rating(name, elo, low, high, int(games[k]), score))
    order = _best_first(ratings, model)
    table = tuple(ratings[k] for k in order)
    nu = math.exp(model.best.log_nu)
    return Ratings(table, anchor, confidence, nu, covariance[np.ix_(order, order)], model, numbers)


def _counts(
    rows: Sequence[PairResult], numbers: Mapping[str, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return how often row has beaten column, and how often they drew, int64 [n, n] each."""
    wins = np.zeros((len(numbers), len(numbers)), np.int64)
    draws = np.zeros_like(wins)
    for row in rows:
        if row.player == row.opponent:
            raise ValueError(f"games of {row.player!r} against itself say nothing about its strength: {row}")
        if min(row.wins, row.draws, row.losses) < 0:
            raise ValueError(f"expected game counts of 0 or more, given {row}")
        a, b = numbers[row.player], numbers[row.opponent]
        wins[a, b] += row.wins
        wins[b, a] += row.losses
        draws[a, b] += row.draws
        draws[b, a] += row.draws
    return wins, draws


def _estimate(
    model: Davidson, player: int, anchor: int, drop: float, variance: float
) -> tuple[float, float, float]:
    """Return Elo, low and high of a player relative to the anchor."""
    if player == anchor:
        return 0.0, 0.0, 0.0
    above, below = bool(model.reaches[player, anchor]), bool(model.reaches[anchor, player])
    nats, reach = math.nan, 1.0
    if above and below:
        nats = float(model.best.theta[player] - model.best.theta[anchor])
        reach = min(math.sqrt(variance * 2 * drop) / ELO_PER_NAT, 3.0)  # huge if all games are drawn
    elif above or below:
        nats = math.inf if above else -math.inf
    low = _bound(model, player, anchor, drop, nats, -reach) * ELO_PER_NAT if above else -math.inf
    high = _bound(model, player, anchor, drop, nats, reach) * ELO_PER_NAT if below else math.inf
    return nats * ELO_PER_NAT, low, high


def _bound(model: Davidson, player: int, anchor: int, drop: float, estimate: float, reach: float) -> float:
    """Return the difference at which the log-likelihood has fallen by `drop`, on the side of reach's sign.

    reach: a first guess at the bound's distance from the estimate, or from 0 if that is infinite. The fall is
    convex in the difference and nearly a parabola, so Newton's method is applied to its square root, within a
    bracket.
    """
    inside = estimate if math.isfinite(estimate) else math.nan
    outside = math.nan
    at = reach if math.isnan(inside) else inside + reach
    fit = model.best
    for _ in range(_TRIES):
        fit = model.profile(player, anchor, at, fit)
        fall, slope = max(0.0, model.best.value - fit.value), -float(fit.gradient[player])
        further = math.nan  # within rounding there is no fall, so no direction
        if fall > 0 and slope * reach > 0:
            further = 2 * (math.sqrt(drop * fall) - fall) / slope
            if abs(fall - drop) < 1e-4 * drop:
                return at + further
        if fall > drop:
            outside = at
        else:
            inside = at
        if math.isnan(outside):
            at, reach = at + reach, 2 * reach
        elif math.isnan(inside):
            at, reach = at - reach, 2 * reach
        elif min(inside, outside) < at + further < max(inside, outside):
            at += further
        else:
            at = (inside + outside) / 2
    raise ArithmeticError(f"no bound of a rating after {_TRIES} steps: between {inside} and {outside} nats")


def _best_first(ratings: Sequence[Rating], model: Davidson) -> list[int]:
    """Return the order of the table: by Elo, and players without a finite one by comparable groups.

    Groups with an infinite Elo are ordered by their best bound; players without any Elo come last.
    """

    def group(k: int) -> list[int]:
        return [other for other in range(len(ratings)) if model.comparable(k, other)]

    def key(k: int) -> tuple[float, ...]:
        rating = ratings[k]
        if math.isnan(rating.elo):
            return 1, 0, 0, group(k)[0], -model.best.theta[k]
        if math.isfinite(rating.elo):
            return 0, -rating.elo, 0, 0, 0
        bounds = [ratings[m].low if rating.elo > 0 else ratings[m].high for m in group(k)]
        return 0, -rating.elo, -max(bounds), group(k)[0], -model.best.theta[k]

    return sorted(range(len(ratings)), key=key)
