"""Numbers that fall over a run, down to a floor."""

import math
from typing import Literal


def scheduled(
    start: float, schedule: Literal["constant", "linear", "cosine"], floor: float, progress: float
) -> float:
    """Return the value after a share of the run: from start at 0 down to floor * start at 1."""
    progress = min(max(progress, 0.0), 1.0)
    if schedule == "constant":
        return start
    left = 1 - progress if schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2
    return start * (floor + (1 - floor) * left)
