"""NativeGradients: the loss's gradients by our own kernels on the CPU, from packed positions, no torch."""

import numpy as np

from keisei._native import ppo_gradients, search_gradients
from keisei.config.schema import AppConfig
from keisei.core.gradient_step import PARTS, Floats, GradientStep, GradientWriter, chosen_columns
from keisei.core.native_tower import Evaluated, NativeTower
from keisei.core.numerics import Numerics
from keisei.core.phase_clock import PhaseClock
from keisei.shogi.positions import Positions


def gradients_on_cpu(config: AppConfig, numerics: Numerics) -> GradientWriter:
    """Return what computes a worker's shares, as the numerics say: if native, without torch. One thread."""
    if numerics.native:
        return NativeGradients(config, kernels=numerics.native)
    from keisei.core.agents import agent_of  # loads torch

    return agent_of(config, "cpu", numerics=numerics)


class NativeGradients:
    """Gradients of the config's algorithm for an ActorCriticResTower. kernels: one of usable_kernels().

    A share's gradients depend on its moves, the weights and the kernels alone, to the bit: not on the number
    of threads, nor on the process that computes them.
    """

    def __init__(
        self, config: AppConfig, *, kernels: str, threads: int = 1, clock: PhaseClock | None = None
    ) -> None:
        self._training = config.training
        self._clock = clock or PhaseClock()
        self.tower = NativeTower(config.model, kernels=kernels, threads=threads)

    @property
    def size(self) -> int:
        """The length of the flat array."""
        return self.tower.parameters + PARTS

    def load_flat(self, weights: Floats) -> None:
        """Load the weights as one flat array, in the order of the network's state_dict."""
        self.tower.load_flat(weights, learning=True)

    def use_threads(self, threads: int) -> None:
        """Compute with this many threads from now on."""
        self.tower.use_threads(threads)

    def write_gradients(self, step: GradientStep, out: Floats) -> None:
        """Write the gradients of all weights, then the loss's parts, to an array of length `size`."""
        if not len(step):
            out[:] = 0
            return
        with self._clock("encode"):
            positions = self._decode(step)
        with self._clock("update"):
            evaluated = self._forward(positions)
            d_logits, d_values, parts = self._loss(step, positions, evaluated)
            self._backward(positions, evaluated, d_logits, d_values, out[: self.tower.parameters])
            with np.errstate(over="ignore"):  # infinite in float32: the step is skipped
                out[self.tower.parameters :] = parts

    def _decode(self, step: GradientStep) -> Positions:
        return Positions.of_packed(step.moves.packed, self.tower.threads)

    def _forward(self, positions: Positions) -> Evaluated:
        return self.tower.evaluate(positions, keep=True)

    def _loss(
        self, step: GradientStep, positions: Positions, evaluated: Evaluated
    ) -> tuple[Floats, Floats, tuple[float, ...]]:
        """Return the gradients of logits and values, and the loss's parts."""
        training, moves = self._training, step.moves
        d_logits, d_values = np.empty_like(evaluated.logits), np.empty_like(evaluated.values)
        if training.algorithm == "search":
            parts = search_gradients(
                offsets=positions.offsets,
                logits=evaluated.logits,
                values=evaluated.values,
                legal=positions.actions,
                tried=moves.tried,
                gains=moves.gains,
                returns=moves.returns,
                weights=moves.weights,
                minibatch=step.minibatch,
                targets=step.targets,
                value_coef=training.value_coef,
                entropy_coef=step.entropy_coef,
                kernels=self.tower.kernels,
                d_logits=d_logits,
                d_values=d_values,
            )
            return d_logits, d_values, parts
        parts = ppo_gradients(
            offsets=positions.offsets,
            logits=evaluated.logits,
            values=evaluated.values,
            columns=chosen_columns(positions, moves.actions),
            log_probs=moves.log_probs,
            old_values=moves.values,
            advantages=moves.advantages,
            returns=moves.returns,
            minibatch=step.minibatch,
            clip=training.clip_coef,
            value_clip=training.value_clip or 0.0,
            value_coef=training.value_coef,
            entropy_coef=step.entropy_coef,
            kernels=self.tower.kernels,
            d_logits=d_logits,
            d_values=d_values,
        )
        return d_logits, d_values, parts

    def _backward(
        self, positions: Positions, evaluated: Evaluated, d_logits: Floats, d_values: Floats, out: Floats
    ) -> None:
        self.tower.write_gradients(positions, evaluated, d_logits, d_values, out)
