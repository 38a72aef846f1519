"""Sequential test between two strengths: a match goes on until it is decided, and no longer.

    sprt = Sprt(elo0=0, elo1=30)
    sprt.decision((3, 10, 40, 31, 16))  # pairs that gave 0, 1, 2, 3 and 4 half-points

The generalised sequential probability ratio test. The probabilities of a pair's five results are unknown, so
each hypothesis, which only fixes the expected score, takes those under which the results are most likely. Elo
is logistic here: the share of points is 1 / (1 + 10^(-elo / 400)), a draw counting half.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

SprtDecision = Literal["H0", "H1"]

Floats = npt.NDArray[np.float64]

_SCORES = np.arange(5) / 4
MAX_ELO = 5000  # either way; from about 6400 on, the share of the points is 1 to the last digit


def score_of_elo(elo: float) -> float:
    """Return the expected share of the points for a player stronger by elo."""
    return 1 / (1 + 10 ** (-elo / 400))


@dataclass(frozen=True, slots=True)
class Sprt:
    """A test of H0, the player is elo0 stronger, against H1, it is elo1 stronger; elo0 < elo1.

    alpha: the probability of accepting H1 when H0 is true; beta: of accepting H0 when H1 is true.
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not -math.inf < self.elo0 < self.elo1 < math.inf:
            raise ValueError(
                f"elo0 is {self.elo0} and elo1 {self.elo1}, expected elo0 below elo1, both finite"
            )
        if max(-self.elo0, self.elo1) > MAX_ELO:
            raise ValueError(f"elo0 is {self.elo0} and elo1 {self.elo1}, expected -{MAX_ELO} to {MAX_ELO}")
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0 < value < 0.5:
                raise ValueError(f"{name} is {value}, expected a number between 0 and 0.5")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which H0 and H1 are accepted."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def llr(self, pairs: Sequence[int]) -> float:
        """Return the log-likelihood ratio of H1 to H0; 0 without pairs."""
        counts = np.asarray(pairs, np.float64)
        if counts.shape != (5,) or not (counts >= 0).all():
            raise ValueError(f"expected five pair counts of 0 or more, for 0 to 4 half-points, given {pairs}")
        if not counts.any():
            return 0.0
        return _log_likelihood(counts, score_of_elo(self.elo1)) - _log_likelihood(
            counts, score_of_elo(self.elo0)
        )

    def decision(self, pairs: Sequence[int]) -> SprtDecision | None:
        """Return the accepted hypothesis, or None if the match must go on."""
        lower, upper = self.bounds
        llr = self.llr(pairs)
        return "H1" if llr >= upper else "H0" if llr <= lower else None


def _log_likelihood(counts: Floats, score: float) -> float:
    """Return the maximum log-likelihood of the results for an expected score, up to a constant.

    With shares f of the results x and a Lagrange multiplier m, the probabilities are
    f / (1 + m · (x - score)); m makes them sum to 1. If the score lies outside all results that occurred, no
    m does: m is then at the end of its range, and the remaining probability goes to the 0 or 4 half-points
    that never occurred.
    """
    seen = counts > 0
    shares, away = counts[seen] / counts.sum(), _SCORES[seen] - score
    low, high = -1 / (1 - score), 1 / score  # beyond, 4 or 0 half-points would have a negative probability
    m = _root(shares, away, low, high)
    return float(-(counts[seen] * np.log1p(m * away)).sum())


def _root(shares: Floats, away: Floats, low: float, high: float) -> float:
    """Return m between low and high where the sum of shares · away / (1 + m · away), which falls, is 0.

    Newton's method within a bracket; if no such m exists, the nearer end.
    """
    for end, sign in ((low, -1), (high, 1)):
        below = 1 + end * away
        if below.min() > 1e-9 and sign * (shares * away / below).sum() > 0:
            return end
    m = 0.0
    for _ in range(100):
        terms = away / (1 + m * away)
        excess = float((shares * terms).sum())
        if excess == 0:  # all results may equal the score
            break
        step = excess / float((shares * terms * terms).sum())
        if min(abs(step), high - low) < 1e-12:
            break
        low, high = (m, high) if excess > 0 else (low, m)
        m = m + step if low < m + step < high else (low + high) / 2
    return m
