"""The policy over the legal moves only: some 80 numbers per position instead of 13,527.

Positions differ in their number of legal moves, so a batch is padded to the widest row; the padding has
probability 0 and gets no gradient.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from keisei.shogi.positions import Positions

# Instead of minus infinity, which would give NaN in 0 * log 0 and its gradient.
_NEVER = -1e9


@dataclass(frozen=True, slots=True, eq=False)
class LegalMoves:
    """The logits that belong to the legal moves of each position.

    logits: int64 [B, W], the index of each move's logit, 0 in the padding.
    legal: bool [B, W], false in the padding.
    """

    logits: Tensor
    legal: Tensor

    @classmethod
    def of(
        cls, positions: Positions, logit_of_action: npt.NDArray[np.int64], device: torch.device
    ) -> "LegalMoves":
        """Pad the lists of legal actions of B positions."""
        counts = np.diff(positions.offsets)
        legal = np.arange(counts.max(initial=1)) < counts[:, None]
        logits = np.zeros(legal.shape, np.int64)
        logits[legal] = logit_of_action[positions.actions]
        return cls(torch.from_numpy(logits).to(device), torch.from_numpy(legal).to(device))

    def pick(self, logits: Tensor) -> Tensor:
        """Return the legal moves' logits [B, W] out of all logits [B, P]."""
        return logits.gather(1, self.logits)

    def log_probs(self, chosen: Tensor, temperature: float = 1.0) -> Tensor:
        """Return the log-probabilities [B, W] of the legal moves, given their logits [B, W]."""
        if temperature != 1:
            # Shift the best move to 0, so that no temperature can push it down to the padding.
            best = chosen.masked_fill(~self.legal, _NEVER).amax(1, keepdim=True)
            chosen = ((chosen - best) / temperature).clamp_min(_NEVER)
        return torch.log_softmax(chosen.masked_fill(~self.legal, _NEVER), 1)


def entropy(log_probs: Tensor) -> Tensor:
    """Return the entropy [B] of log-probabilities [B, W]."""
    return -(log_probs.exp() * log_probs).sum(1)


def sample(log_probs: Tensor, uniforms: Tensor) -> Tensor:
    """Return the column [B] picked by a number in [0, 1) in each row of log-probabilities [B, W].

    A move of probability 0 is never picked, and so neither is the padding.
    """
    cumulated = log_probs.double().exp().cumsum(1)
    target = uniforms[:, None] * cumulated[:, -1:]
    return (cumulated <= target).sum(1).clamp_max(log_probs.shape[1] - 1)
