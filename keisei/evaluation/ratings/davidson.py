"""Davidson's model of games with draws, and the strengths under which given results are most likely.

Players have strengths θ, in nats. With x = θᵢ − θⱼ and one ν for all players:

    P(i wins) : P(j wins) : P(draw)  =  exp(x/2) : exp(−x/2) : ν

The log-likelihood is concave in θ and log ν together. Two things differ from the textbook:
- ν alone also sees one decisive game between two equal players. Without that, a table with wins and draws but
  no losses is most likely at ν = ∞ and θ = ∞, and a table of draws says nothing at all. With it, two
  strengths are finite relative to each other exactly if each player has scored, directly or through others,
  against the other. Without any draws, ν is 0.
- Where a strength is not finite, the likelihood still has a supremum: between groups that have not scored
  against each other all results are certain, and only the games within groups count. So intervals and
  comparisons by likelihood ratio exist for everyone.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

_ITERATIONS = 200  # about 10 are needed
_LONGEST_STEP = 3.0  # nats, about 500 Elo: where everything is certain the curvature is no guide


class Fit(NamedTuple):
    """Strengths at maximum likelihood: theta float64 [n], log_nu (-inf without draws).

    value: the log-likelihood. gradient: float64 [n + 1], how it changes with each strength and log ν.
    Strengths of players in different groups are not comparable.
    """

    theta: Floats
    log_nu: float
    value: float
    gradient: Floats


class _Plan(NamedTuple):
    """Which games count and which strengths vary: games bool [p], free [f]; the others stay fixed."""

    games: Bools
    free: Indices


class Davidson:
    """The results between n players: wins int [n, n], row beat column; draws int [n, n], symmetric.

    reaches: bool [n, n], whether row has scored against column, directly or through others; all reach
    themselves.
    """

    def __init__(self, wins: npt.NDArray[np.int64], draws: npt.NDArray[np.int64]) -> None:
        self.n = len(wins)
        self.reaches = _closure(wins + draws > 0)
        played = np.triu(wins + wins.T + draws, 1) > 0
        self._i, self._j = np.nonzero(played)
        self._wins = wins[played].astype(np.float64)
        self._losses = wins.T[played].astype(np.float64)
        self._draws = draws[played].astype(np.float64)
        self._played = self._wins + self._losses + self._draws
        self._small = 1e-10 + 1e-14 * float(self._played.sum())  # rounding error of a likelihood
        self._drawn = bool(self._draws.any())
        self._plans: dict[tuple[int, int], _Plan] = {}
        self.best = self._maximise(self._plan(self.reaches), np.zeros(self.n), 0.0)

    def comparable(self, a: int, b: int) -> bool:
        """Return whether the difference of two strengths is finite."""
        return bool(self.reaches[a, b] and self.reaches[b, a])

    def profile(self, a: int, b: int, difference: float, start: Fit | None = None) -> Fit:
        """Return the best fit in which a is stronger than b by this difference; a is not b.

        Its gradient by a's strength is the slope of its value over the difference.
        """
        start = start or self.best
        theta = start.theta.copy()
        theta[a] = theta[b] + difference
        return self._maximise(self._tied(a, b), theta, start.log_nu)

    def covariance(self, origin: int) -> Floats:
        """Return the covariance of strengths relative to origin's, float64 [n, n]; NaN if not comparable.

        ν is unknown too, and its uncertainty is included.
        """
        mutual = self.reaches[origin] & self.reaches[:, origin]
        _, information = self._derivatives(self._plan(self.reaches).games, self.best.theta, self.best.log_nu)
        others = np.flatnonzero(mutual & (np.arange(self.n) != origin))
        # Other groups share ν, and their information about it counts.
        free = self._with_nu(self._plan(self.reaches, origin).free)
        inverse = np.linalg.inv(information[np.ix_(free, free)]) if len(free) else np.zeros((0, 0))
        kept = np.searchsorted(free, others)
        covariance = np.full((self.n, self.n), math.nan)
        covariance[np.ix_(others, others)] = inverse[np.ix_(kept, kept)]
        covariance[origin, mutual] = covariance[mutual, origin] = 0
        return covariance

    def _tied(self, a: int, b: int) -> _Plan:
        """Return the plan for a fixed difference between a and b, which links them as a draw would."""
        if (a, b) in self._plans:
            return self._plans[a, b]
        to_either = self.reaches[:, a] | self.reaches[:, b]
        from_either = self.reaches[a] | self.reaches[b]
        plan = self._plan(self.reaches | np.outer(to_either, from_either), b)
        self._plans[a, b] = plan._replace(free=plan.free[plan.free != a])
        return self._plans[a, b]

    def _plan(self, reaches: Bools, origin: int = 0) -> _Plan:
        """Return the plan that fixes one player of each group, origin in its own."""
        mutual = reaches & reaches.T
        staying = np.argmax(mutual, axis=1)  # the first of the group
        staying[mutual[origin]] = origin
        return _Plan(mutual[self._i, self._j], np.flatnonzero(staying != np.arange(self.n)))

    def _with_nu(self, free: Indices) -> Indices:
        return np.append(free, self.n) if self._drawn else free

    def _chances(self, theta: Floats, log_nu: float) -> tuple[Floats, Floats, Floats]:
        """Return the log-probabilities of a win, a draw and a loss in each pair, [p] each."""
        half = (theta[self._i] - theta[self._j]) / 2
        most = np.maximum(np.abs(half), log_nu)
        total = most + np.log(np.exp(half - most) + np.exp(-half - most) + np.exp(log_nu - most))
        return half - total, log_nu - total, -half - total

    def _value(self, games: Bools, theta: Floats, log_nu: float) -> float:
        win, draw, loss = self._chances(theta, log_nu)
        value = self._wins * win + self._losses * loss
        if not self._drawn:
            return float(value[games].sum())
        return float((value + self._draws * draw)[games].sum()) - float(np.logaddexp(math.log(2), log_nu))

    def _derivatives(self, games: Bools, theta: Floats, log_nu: float) -> tuple[Floats, Floats]:
        """Return the gradient [n + 1] and the negative Hessian [n + 1, n + 1]; log ν is last.

        Adds probabilities, never subtracts from 1: one loss in a thousand games keeps all its digits.
        """
        n, i, j = self.n, self._i, self._j
        win, draw, loss = map(np.exp, self._chances(theta, log_nu))
        by_x = self._wins * (draw + 2 * loss) - self._losses * (draw + 2 * win) - self._draws * (win - loss)
        by_x = np.where(games, by_x / 2, 0)
        by_nu = np.where(games, self._draws * (win + loss) - (self._wins + self._losses) * draw, 0)
        played = np.where(games, self._played, 0)
        xx = played * (draw * (win + loss) + 4 * win * loss) / 4
        xnu = played * draw * (loss - win) / 2
        share = 1 / (1 + 2 * math.exp(-log_nu)) if self._drawn else 0.0  # of draws between equals
        gradient = _sums(i, by_x, n + 1) - _sums(j, by_x, n + 1)
        gradient[n] = by_nu.sum() - share
        information = np.zeros((n + 1, n + 1))
        information[i, j] = information[j, i] = -xx
        information[:n, n] = _sums(i, xnu, n) - _sums(j, xnu, n)
        information[n, :n] = information[:n, n]
        diagonal = _sums(i, xx, n + 1) + _sums(j, xx, n + 1)
        diagonal[n] = (played * draw * (win + loss)).sum() + share * (1 - share)
        np.fill_diagonal(information, diagonal)
        return gradient, information

    def _maximise(self, plan: _Plan, theta: Floats, log_nu: float) -> Fit:
        """Return the best fit by Newton's method; a step that lowers the likelihood is halved."""
        point = np.append(theta, log_nu if self._drawn else -math.inf)
        free = self._with_nu(plan.free)
        value = self._value(plan.games, point[:-1], point[-1])
        for _ in range(_ITERATIONS):
            gradient, information = self._derivatives(plan.games, point[:-1], point[-1])
            known = information[np.ix_(free, free)]
            known[np.diag_indices(len(free))] *= 1 + 1e-12  # never singular through rounding
            step = np.linalg.solve(known, gradient[free])
            gain = float(gradient[free] @ step)  # twice what the step would gain on a parabola
            if gain < self._small:
                point[free] += step
                return Fit(point[:-1], float(point[-1]), value + gain / 2, gradient)
            step *= min(1, _LONGEST_STEP / np.abs(step).max())
            for _ in range(60):
                after = point.copy()
                after[free] += step
                new = self._value(plan.games, after[:-1], after[-1])
                if new >= value - self._small:
                    break
                step /= 2
            point, value = after, new
        raise ArithmeticError(
            f"no maximum of the likelihood after {_ITERATIONS} steps: the last gained {gain}"
        )


def _sums(indices: Indices, values: Floats, size: int) -> Floats:
    """Return the sums of the values that share an index, [size]."""
    return np.asarray(np.bincount(indices, values, size), np.float64)


def _closure(links: Bools) -> Bools:
    """Return who reaches whom through any number of links."""
    reaches = links | np.eye(len(links), dtype=np.bool_)
    while True:
        further = reaches.astype(np.float64) @ reaches > 0
        if (further == reaches).all():
            return reaches
        reaches = further
