"""Exchange: who computes the shares of a gradient step, and their sum.

A share's gradients are a pure function of (weights, moves), and shares are summed in their order, so the
result depends on how many shares there are, not on who computed them.
"""

from typing import Protocol

from torch import Tensor

from keisei.core.gradient_step import Floats, GradientStep
from keisei.core.phase_clock import PhaseClock


class Learner(Protocol):
    """What an exchange needs of a LearningAgent, which takes the steps: weights, and shares computed here."""

    clock: PhaseClock

    def flat_weights(self) -> Floats:
        """Return the weights as one flat array."""
        ...

    def gradients(self, step: GradientStep, threads: int | None = None) -> Tensor:
        """Return the gradients of all weights, then the loss's parts, as one flat tensor."""
        ...


class Exchange(Protocol):
    """Sums the shares of gradient steps."""

    def total(self, learner: Learner, step: GradientStep) -> Tensor:
        """Return the sum of all shares' gradients and loss's parts, as one flat tensor."""
        ...


class Alone:
    """An exchange that computes all shares here, one after the other."""

    def __init__(self, shares: int = 1) -> None:
        self._shares = shares

    def total(self, learner: Learner, step: GradientStep) -> Tensor:
        """Return the sum of all shares."""
        found = learner.gradients(step.share(0, self._shares))
        for number in range(1, self._shares):
            found += learner.gradients(step.share(number, self._shares))
        return found
