"""Random numbers by key: their values, and that they show no trace of the key."""

import numpy as np
import numpy.typing as npt
import pytest

from keisei.core.keyed_random import uniforms

Floats = npt.NDArray[np.float64]


def one(seed: int, number: int, ply: int) -> float:
    return float(uniforms(seed, np.array([number], np.uint64), np.array([ply], np.int64))[0])


def splitmix_uniform(seed: int, number: int, ply: int) -> float:
    """Compute the same in Python's integers: splitmix64's finaliser over seed, number and ply in turn."""
    golden, word = 0x9E3779B97F4A7C15, 2**64

    def mixed(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % word
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % word
        return z ^ (z >> 31)

    key = mixed((seed + golden) % word)
    for part in (number, ply):
        key = mixed(key ^ ((part % word * golden + golden) % word))
    return float(key >> 11) / 2**53


# A resumed checkpoint, and a worker on another machine, must draw these again.
GOLDEN = {
    (0, 0, 0): 0.9840321660442114,
    (1, 0, 0): 0.42946255706619074,
    (1, 0, 1): 0.8904429063956972,
    (1, 1, 0): 0.8338707815326396,
    (42, 123_456, 77): 0.8171602834765305,
    (2**63 - 1, 2**64 - 1, 511): 0.008455067315460418,
    (7, 9, -1): 0.01357385075948947,
}


@pytest.mark.parametrize(("key", "expected"), GOLDEN.items())
def test_the_numbers_stay_what_they_are(key: tuple[int, int, int], expected: float) -> None:
    assert one(*key) == expected == splitmix_uniform(*key)


def test_a_number_is_the_same_wherever_it_stands() -> None:
    random = np.random.default_rng(1)
    numbers, plies = random.integers(0, 2**63, 100).astype(np.uint64), random.integers(0, 512, 100)
    together = uniforms(3, numbers, plies)
    assert together.dtype == np.float64
    assert together.tolist() == [one(3, int(n), int(p)) for n, p in zip(numbers, plies, strict=True)]
    order = random.permutation(100)
    assert np.array_equal(uniforms(3, numbers[order], plies[order]), together[order])


def grid(seed: int) -> Floats:
    """[256 games, 256 plies]"""
    numbers, plies = np.meshgrid(np.arange(256, dtype=np.uint64), np.arange(256), indexing="ij")
    return uniforms(seed, numbers.ravel(), plies.ravel()).reshape(256, 256)


def test_they_are_uniform() -> None:
    for seed in (0, 1, 2**40):
        numbers = grid(seed).ravel()
        assert numbers.min() >= 0
        assert numbers.max() < 1
        assert len(np.unique(numbers)) == numbers.size
        counts = np.bincount((numbers * 100).astype(int), minlength=100)
        expected = numbers.size / 100
        assert ((counts - expected) ** 2 / expected).sum() < 149  # of 99 degrees, once in a thousand


def test_neighbours_know_nothing_of_each_other() -> None:
    first, second = grid(1), grid(2)
    limit = 4 / np.sqrt(first.size)  # four standard deviations
    neighbours = {
        "plies": (first[:, :-1], first[:, 1:]),
        "games": (first[:-1], first[1:]),
        "seeds": (first, second),
        "games and plies": (first, first.T),
        "a game's ply and the next game's next": (first[:-1, :-1], first[1:, 1:]),
    }
    for name, (a, b) in neighbours.items():
        off_diagonal = a != b
        assert off_diagonal.mean() > 0.99, name
        correlation = np.corrcoef(a[off_diagonal], b[off_diagonal])[0, 1]
        assert abs(correlation) < limit * (1.5 if name == "games and plies" else 1), name
    # No game's numbers are another's, shifted.
    assert len(np.unique(np.concatenate([first.ravel(), second.ravel()]))) == 2 * first.size
