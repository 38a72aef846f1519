"""NativePolicy: a network that chooses moves by our own kernels on the CPU, without torch."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from keisei._native import choose_moves, move_probabilities
from keisei.config.schema import AppConfig, validated
from keisei.core.native_tower import Evaluated, NativeTower
from keisei.core.numerics import Numerics
from keisei.core.phase_clock import PhaseClock
from keisei.core.policy import Choice, Floats, Policy
from keisei.errors import NetworkError
from keisei.shogi.positions import Positions


def policy_on_cpu(config: AppConfig, numerics: Numerics) -> Policy:
    """Return a policy for a worker, computed as the numerics say: if native, without torch. One thread."""
    if numerics.native:
        return NativePolicy(config, kernels=numerics.native, strict=False)
    import torch  # only here: whoever plays natively does without

    from keisei.core.network_policy import NetworkPolicy

    torch.set_num_threads(1)
    return NetworkPolicy(config, "cpu", numerics=numerics)


class NativePolicy:
    """A tower that plays. kernels: one of usable_kernels(), the best if not given.

    strict: weights and results that are NaN or infinite are a NetworkError. Otherwise it plays on, as torch
    does: a learner sees them by its loss.
    """

    def __init__(
        self, config: AppConfig, *, kernels: str = "", threads: int = 1, strict: bool = True
    ) -> None:
        self.config = validated(config)
        self.clock = PhaseClock()
        self._strict = strict
        self.tower = NativeTower(config.model, kernels=kernels, threads=threads)

    def load_arrays(self, weights: Mapping[str, npt.NDArray[np.floating]]) -> None:
        """Load weights by name; ValueError if they are of another architecture."""
        if self._strict and not all(np.isfinite(array).all() for array in weights.values()):
            raise NetworkError("the weights are NaN or infinite")
        self.tower.load(weights)

    def use_threads(self, threads: int) -> None:
        """Compute with this many threads."""
        self.tower.use_threads(threads)

    def select_action(
        self, positions: Positions, uniforms: npt.NDArray[np.float64], temperature: float = 1.0
    ) -> Choice:
        """Choose a legal action in each of N positions, see Policy."""
        with self.clock("inference"):
            found = self._evaluated(positions)
        with self.clock("sampling"):
            columns = np.empty(len(positions), np.int32)
            log_probs = np.empty(len(positions), np.float32)
            choose_moves(
                positions.offsets, found.logits, uniforms, temperature, self.tower.kernels, columns, log_probs
            )
            return Choice(positions.actions[positions.offsets[:-1] + columns], log_probs, found.values)

    def evaluate(self, positions: Positions) -> tuple[Floats, Floats]:
        """Return the probabilities of all legal actions, and the values, see Policy."""
        found = self._evaluated(positions)
        priors = np.empty(len(found.logits), np.float32)
        move_probabilities(positions.offsets, found.logits, self.tower.kernels, priors)
        return priors, found.values

    def get_value(self, planes: Floats) -> Floats:
        """Return the values of positions, see Policy."""
        nothing = Positions(planes, np.zeros(len(planes) + 1, np.int32), np.empty(0, np.int32))
        with self.clock("inference"):
            return self._evaluated(nothing).values

    def _evaluated(self, positions: Positions) -> Evaluated:
        found = self.tower.evaluate(positions)
        if self._strict and not (np.isfinite(found.values).all() and np.isfinite(found.logits).all()):
            raise NetworkError("the network's results are NaN or infinite: its weights are too large")
        return found
