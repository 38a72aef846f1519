"""Policy: what chooses moves. Players, self-play and searches know it by these methods, and need no torch.

NativePolicy computes the network with our own kernels, NetworkPolicy with torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from keisei.config.schema import AppConfig
from keisei.core.phase_clock import PhaseClock
from keisei.shogi.positions import Positions

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Moves for N positions. actions: int32 [N]; log_probs, values: float32 [N]."""

    actions: npt.NDArray[np.int32]
    log_probs: Floats
    values: Floats


class Policy(Protocol):
    """A network that chooses moves. Its clock counts the time, by inference and sampling."""

    config: AppConfig
    clock: PhaseClock

    def load_arrays(self, weights: Mapping[str, npt.NDArray[np.floating]]) -> None:
        """Load weights by name; ValueError if they are of another architecture."""

    def use_threads(self, threads: int) -> None:
        """Compute with this many threads of the CPU, from the calling thread."""

    def select_action(
        self, positions: Positions, uniforms: npt.NDArray[np.float64], temperature: float = 1.0
    ) -> Choice:
        """Choose a legal action in each of N positions: the one picked by its number in [0, 1).

        A temperature below 1 sharpens the choice; 0 takes the most probable move.
        """

    def evaluate(self, positions: Positions) -> tuple[Floats, Floats]:
        """Return (priors [M], values [N]): the probability of each legal action, and who is ahead.

        priors are in the order of positions.actions. A value is for the player to move, -1 to 1.
        """

    def get_value(self, planes: Floats) -> Floats:
        """Return the values [N] of positions with planes [N, 46, 9, 9], for the player to move."""
