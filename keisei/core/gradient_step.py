"""GradientStep: what a step of learning is computed from, whole or in shares. No torch: workers use it.

The loss of a minibatch is a mean over its moves, so its gradients are the sum of its shares' gradients.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from keisei.core.experience_buffer import Minibatch
from keisei.shogi.encoding import ACTIONS
from keisei.shogi.positions import Positions

Floats = npt.NDArray[np.float32]

# What follows the gradients in the flat array of a share: its part of these means over the minibatch, for
# each algorithm.
PARTS = 5
LOSS_PARTS = {
    "ppo": ("loss/policy", "loss/value", "policy/entropy", "policy/approx_kl", "policy/clip_fraction"),
    "search": ("loss/policy", "loss/value", "policy/entropy", "search/kl", "search/agreement"),
}


@dataclass(frozen=True, slots=True, eq=False)
class GradientStep:
    """Moves to learn from in one step: a whole minibatch, or a share of it.

    moves: their advantages are those in the loss, normalised over the whole minibatch if that is wanted.
    minibatch: the number of moves in the whole minibatch. targets: how many of them a search has looked at.
    """

    moves: Minibatch
    minibatch: int
    entropy_coef: float
    targets: int = 0

    @classmethod
    def of(cls, minibatch: Minibatch, entropy_coef: float, *, normalize: bool) -> "GradientStep":
        """Return the step of a whole minibatch. normalize: scale advantages to mean 0 and deviation 1."""
        if normalize:
            with np.errstate(invalid="ignore"):  # of infinite ones; the loss shows it
                centred = minibatch.advantages - minibatch.advantages.mean(dtype=np.float64)
                scaled = (centred / (np.sqrt(np.square(centred).mean()) + 1e-8)).astype(np.float32)
            minibatch = replace(minibatch, advantages=scaled)
        targets = int((minibatch.tried[:, :1] >= 0).sum())
        return cls(minibatch, len(minibatch.actions), entropy_coef, targets)

    def __len__(self) -> int:
        """Return the number of moves."""
        return len(self.moves.actions)

    def share(self, number: int, of: int) -> "GradientStep":
        """Return one of `of` shares, counted from 0: neighbouring moves, as many in each as possible."""
        rows = slice(*self.bounds(number, of))
        return replace(self, moves=self.moves.rows(rows))

    def bounds(self, number: int, of: int) -> tuple[int, int]:
        """Return where the moves of one of `of` shares begin and end."""
        return len(self) * number // of, len(self) * (number + 1) // of


class GradientWriter(Protocol):
    """Computes shares of gradient steps on the CPU, for a worker."""

    def load_flat(self, weights: Floats) -> None:
        """Load the weights of a network of this architecture, as one flat array."""

    def write_gradients(self, step: GradientStep, out: Floats) -> None:
        """Write the gradients of all weights, then the loss's parts, to a flat array."""


def chosen_columns(positions: Positions, actions: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return which legal move of its position each action is, counted from 0; ValueError if it is none."""
    chosen = np.flatnonzero(positions.actions == np.repeat(actions, np.diff(positions.offsets)))
    if len(chosen) != len(actions):
        raise ValueError("the buffer has an action that is illegal in its position")
    return (chosen - positions.offsets[:-1]).astype(np.int32)


def tried_columns(positions: Positions, tried: npt.NDArray[np.int16]) -> npt.NDArray[np.int64]:
    """Return which legal move of its position each tried action is: int64 [B, C], -1 where there is none.

    ValueError if an action is illegal.
    """
    rows = np.repeat(np.arange(len(positions)), np.diff(positions.offsets))
    keys = rows * ACTIONS + positions.actions
    order = np.argsort(keys)
    wanted = np.arange(len(positions))[:, None] * ACTIONS + tried
    places = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    found = order[places]
    absent = tried < 0
    if ((keys[found] != wanted) & ~absent).any():
        raise ValueError("the window has an action that is illegal in its position")
    return np.where(absent, -1, found - positions.offsets[:-1, None])
