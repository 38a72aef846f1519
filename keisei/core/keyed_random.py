"""Random numbers by key: each depends only on (seed, game number, ply), so there is no state to keep."""

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniforms(
    seed: int, numbers: npt.NDArray[np.uint64], plies: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return one number in [0, 1) for each game number and ply: float64 [N].

    The result is the same on every machine, whichever worker and slot plays the game.
    """
    with np.errstate(over="ignore"):
        key = _mixed(np.array([seed], np.uint64) + _GOLDEN)
        key = _mixed(key ^ (numbers.astype(np.uint64) * _GOLDEN + _GOLDEN))
        key = _mixed(key ^ (plies.astype(np.uint64) * _GOLDEN + _GOLDEN))
    return (key >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply splitmix64's finaliser to each word."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
