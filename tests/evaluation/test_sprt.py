"""The sequential test: its ratio against a search, its errors and its length by simulation."""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest

from keisei.evaluation.ratings.sprt import MAX_ELO, Sprt, score_of_elo

Floats = npt.NDArray[np.float64]

SCORES = np.arange(5) / 4
# Chances of 0 to 4 half-points between equal players.
PAIRS: dict[str, list[float]] = {
    "independent games": [0.25, 0, 0.5, 0, 0.25],
    "draws": [0.0625, 0.25, 0.375, 0.25, 0.0625],
    "the colour decides": [0.1, 0, 0.8, 0, 0.1],
}


def with_score(chances: Sequence[float], score: float) -> Floats:
    """Return the probabilities, tilted to give this expected score."""
    low, high = -50.0, 50.0
    while True:
        middle = (low + high) / 2
        tilted = np.array(chances) * np.exp(middle * SCORES)
        tilted /= tilted.sum()
        if high - low < 1e-12:
            return tilted
        low, high = (middle, high) if tilted @ SCORES < score else (low, middle)


def play(sprt: Sprt, chances: Sequence[float], elo: float, seed: int, matches: int) -> tuple[float, float]:
    """Return the share of matches that end with H1, and the mean number of pairs."""
    rng = np.random.default_rng(seed)
    chances = list(with_score(chances, score_of_elo(elo)))
    accepted, length = 0, 0
    for _ in range(matches):
        pairs, decision = [0] * 5, None
        for result in rng.choice(5, 5000, p=chances):
            pairs[result] += 1
            if decision := sprt.decision(pairs):
                break
        assert decision
        accepted += decision == "H1"
        length += sum(pairs)
    return accepted / matches, length / matches


@pytest.mark.parametrize(
    ("name", "elo1"), [("independent games", 100), ("draws", 80), ("the colour decides", 70)]
)
def test_errors_are_rare_and_matches_shorter_than_a_fixed_test(name: str, elo1: float) -> None:
    sprt = Sprt(0, elo1, alpha=0.1, beta=0.1)
    wrong, length = play(sprt, PAIRS[name], 0, 1, 150)
    right, length1 = play(sprt, PAIRS[name], elo1, 2, 150)
    assert wrong < 0.13  # 150 matches have a deviation of 0.025
    assert right > 0.87
    z = NormalDist().inv_cdf(0.9)
    deviation = math.sqrt(np.array(PAIRS[name]) @ (SCORES - 0.5) ** 2)
    fixed = (2 * z * deviation / (score_of_elo(elo1) - 0.5)) ** 2
    assert length < 0.9 * fixed
    assert length1 < 0.9 * fixed


def searched(pairs: Sequence[int], score: float) -> float:
    """Return the maximum log-likelihood for a score, shifting probability between three results at a time."""
    counts = np.array(pairs, np.float64)
    chances = with_score([0.2] * 5, score)

    def value(moved: Floats) -> float:
        logs = np.log(np.maximum(moved, 1e-300))
        return float(counts @ logs)

    for _ in range(30):
        for i, j, k in combinations(range(5), 3):
            way = np.zeros(5)
            way[[i, j, k]] = k - j, i - k, j - i  # neither the sum nor the score changes
            low = max(-chances[way > 0] / way[way > 0])
            high = min(-chances[way < 0] / way[way < 0])
            for _ in range(50):
                third = (high - low) / 3
                if value(chances + (low + third) * way) < value(chances + (high - third) * way):
                    low += third
                else:
                    high -= third
            chances = np.maximum(chances + (low + high) / 2 * way, 0)
    return value(chances)


@pytest.mark.parametrize(
    ("pairs", "elo0", "elo1"),
    [
        ((3, 10, 40, 31, 16), 0, 30),
        ((0, 2, 9, 4, 0), -400, 300),
        ((5, 0, 0, 0, 7), -20, 100),
        ((0, 0, 3, 0, 1), -100, 50),
    ],
)
def test_the_ratio_is_that_of_the_likeliest_chances(pairs: tuple[int, ...], elo0: float, elo1: float) -> None:
    expected = searched(pairs, score_of_elo(elo1)) - searched(pairs, score_of_elo(elo0))
    assert Sprt(elo0, elo1).llr(pairs) == pytest.approx(expected, abs=1e-4)


def test_won_or_lost_pairs_have_the_ratio_of_coins() -> None:
    s0, s1 = score_of_elo(0), score_of_elo(50)
    expected = 70 * math.log(s1 / s0) + 30 * math.log((1 - s1) / (1 - s0))
    assert Sprt(0, 50).llr((30, 0, 0, 0, 70)) == pytest.approx(expected, abs=1e-9)


def test_one_sided_results_decide_after_a_sensible_number_of_pairs() -> None:
    sprt = Sprt(0, 50)
    needed = math.ceil(sprt.bounds[1] / math.log(score_of_elo(50) / 0.5))
    assert needed == 23
    for pairs in range(needed):
        assert sprt.decision((0, 0, 0, 0, pairs)) is None
    assert sprt.decision((0, 0, 0, 0, needed)) == "H1"
    lost = [pairs for pairs in range(50) if sprt.decision((pairs, 0, 0, 0, 0)) == "H0"]
    assert 15 < lost[0] <= 23
    assert lost == list(range(lost[0], 50))
    # Draws alone are evidence of equality.
    assert sprt.decision((0, 0, 60, 0, 0)) == "H0"


def test_the_test_is_symmetric() -> None:
    rng = np.random.default_rng(4)
    for pairs in rng.integers(0, 20, (50, 5)).tolist():
        mirrored = Sprt(-30, 10).llr(pairs[::-1])
        assert Sprt(-10, 30).llr(pairs) == pytest.approx(-mirrored, abs=1e-9)
        assert Sprt(-30, 30).llr(pairs) == pytest.approx(-Sprt(-30, 30).llr(pairs[::-1]), abs=1e-9)


def test_nothing_is_decided_without_pairs() -> None:
    for sprt in (Sprt(0, 1), Sprt(-3000, 3000, 0.49, 0.49)):
        assert sprt.llr([0] * 5) == 0
        assert sprt.decision([0] * 5) is None


def test_bounds_are_wald_s() -> None:
    assert Sprt(0, 5).bounds == pytest.approx((-math.log(19), math.log(19)))
    assert Sprt(0, 5, alpha=0.01, beta=0.1).bounds == pytest.approx((math.log(0.1 / 0.99), math.log(90)))


def test_elo_and_score_are_one_curve() -> None:
    assert score_of_elo(0) == 0.5
    assert score_of_elo(400) == pytest.approx(10 / 11)
    for elo in (-700, -3, 0, 250):
        assert score_of_elo(elo) + score_of_elo(-elo) == pytest.approx(1)
        score = score_of_elo(elo)
        assert 400 * math.log10(score / (1 - score)) == pytest.approx(elo)


@pytest.mark.parametrize("pairs", [(0, 0, 0, 0, 5), (1, 2, 3, 4, 5), (5, 0, 0, 0, 0)])
def test_the_strengths_furthest_apart_can_be_tested(pairs: Sequence[int]) -> None:
    assert math.isfinite(Sprt(-MAX_ELO, MAX_ELO).llr(pairs))


def test_what_cannot_be_tested_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^elo0 is 5 and elo1 5, expected elo0 below elo1, both finite$"):
        Sprt(5, 5)
    with pytest.raises(ValueError, match=r"^elo0 is 0 and elo1 nan"):
        Sprt(0, math.nan)
    with pytest.raises(ValueError, match=r"^alpha is 0.5, expected a number between 0 and 0.5$"):
        Sprt(0, 5, alpha=0.5)
    with pytest.raises(ValueError, match=r"^beta is 0, expected"):
        Sprt(0, 5, beta=0)
    for elo0, elo1 in ((0, 5001), (-5001, 0), (-1e308, 1e308)):
        with pytest.raises(ValueError, match=r"expected -5000 to 5000$"):
            Sprt(elo0, elo1)
    for pairs in ((1, 2, 3), (1, 2, 3, 4, -1), (1, 2, 3, 4, 5, 6)):
        with pytest.raises(ValueError, match=r"^expected five pair counts of 0 or more, for 0 to 4"):
            Sprt(0, 5).llr(pairs)
