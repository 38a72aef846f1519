import math
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from keisei.evaluation.matches.match_result import score_interval

# Probabilities of 0 to 4 half-points from a pair.
PAIRS: dict[str, list[float]] = {
    "even": [0.25, 0, 0.5, 0, 0.25],
    "many draws": [0.0625, 0.25, 0.375, 0.25, 0.0625],
    "strong": [0.0225, 0.015, 0.2425, 0.08, 0.64],
    "very strong": [0.0004, 0.0004, 0.0389, 0.0194, 0.9409],
    "the opening decides": [0.4, 0, 0, 0, 0.6],
    "the colour decides": [0.1, 0, 0.8, 0, 0.1],
    "always a win and a draw": [0, 0, 0, 1, 0],
    "always two wins": [0, 0, 0, 0, 1],
}


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def coverage(probabilities: list[float], pairs: int, confidence: float) -> float:
    """Return the probability that the interval contains the expected score, over all possible results."""
    expected = sum(p * half_points for half_points, p in enumerate(probabilities)) / 4
    possible = [half_points for half_points, p in enumerate(probabilities) if p]
    covered = 0.0
    for counts in compositions(pairs, len(possible)):
        result = [0] * 5
        probability = float(math.factorial(pairs))
        for half_points, count in zip(possible, counts, strict=True):
            result[half_points] = count
            probability *= probabilities[half_points] ** count / math.factorial(count)
        low, high = score_interval(result, confidence)
        if low - sys.float_info.epsilon <= expected <= high + sys.float_info.epsilon:
            covered += probability
    return covered


@pytest.mark.parametrize("case", PAIRS)
def test_the_interval_covers_as_often_as_it_says(case: str) -> None:
    assert coverage(PAIRS[case], 10, 0.95) > 0.93
    assert coverage(PAIRS[case], 20, 0.95) > 0.93
    assert coverage(PAIRS[case], 20, 0.8) > 0.74  # twenty coins have steps as wide as that


@pytest.mark.parametrize("case", ["even", "strong", "the opening decides", "the colour decides"])
def test_the_interval_is_not_wider_than_it_must_be(case: str) -> None:
    random = np.random.default_rng(1)
    expected = np.array(PAIRS[case]) @ np.arange(5) / 4
    intervals = [score_interval(counts) for counts in random.multinomial(200, PAIRS[case], 2000)]
    inside = [low <= expected <= high for low, high in intervals]
    assert 0.93 < np.mean(inside) < 0.97


def test_the_interval_is_agresti_and_coull_s_where_pairs_are_won_or_lost() -> None:
    low, high = score_interval([30, 0, 0, 0, 70])
    z = 1.959963984540054
    n, p = 100 + z**2, (70 + z**2 / 2) / (100 + z**2)
    half_width = z * math.sqrt(p * (1 - p) / n)
    assert (low, high) == pytest.approx((p - half_width, p + half_width), abs=1e-12)


def test_a_pair_is_one_observation() -> None:
    """A hundred pairs decided by their openings say less than two hundred games would."""
    low, high = score_interval([50, 0, 0, 0, 50])
    split_low, split_high = score_interval([0, 0, 100, 0, 0])
    assert 0.18 < high - low < 0.20
    assert 0.02 < split_high - split_low < 0.05


def test_the_interval_contains_the_score_and_has_a_width() -> None:
    for pairs in (1, 2, 5, 8):
        for counts in compositions(pairs, 5):
            score = sum(count * half_points for half_points, count in enumerate(counts)) / (4 * pairs)
            low, high = score_interval(counts)
            assert 0 <= low <= score <= high <= 1
            assert low < high
            assert score_interval(counts[::-1]) == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_the_interval_of_all_wins_ends_at_1_and_narrows_with_more_games() -> None:
    lows = [score_interval([0, 0, 0, 0, pairs])[0] for pairs in (1, 10, 100, 1000)]
    assert lows == sorted(lows)
    assert 0.95 < lows[2] < 0.97
    assert {score_interval([0, 0, 0, 0, pairs])[1] for pairs in (1, 10, 100, 1000)} == {1.0}


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, math.nan])
def test_a_confidence_that_cannot_be_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match=f"confidence is {confidence}, expected a number between 0 and 1"):
        score_interval([1, 0, 0, 0, 1], confidence)
