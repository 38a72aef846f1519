"""SearchAgent: a policy that learns what small searches during its games have found.

A search says of the moves that it tried how much to add to their logits. The target of the policy is the
softmax of the network's logits of now, not of when the move was searched, with these gains: what a search
found stays true for a while, but what it knew of all other moves does not. The target of the value is the
lambda-return of the game. Moves are learned from several times, out of a window of the latest.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.gradient_step import GradientStep, tried_columns
from keisei.core.learning_agent import LearningAgent
from keisei.core.replay_window import ReplayWindow
from keisei.core.sparse_policy import LegalMoves, entropy
from keisei.shogi.positions import Positions

_WINDOW = "window"  # the group of its tensors


class SearchAgent(LearningAgent):
    """An agent that learns from searched moves; window: the moves that it learns from."""

    algorithm = "search"
    window: ReplayWindow | None = None

    def _minibatches(self, buffer: ExperienceBuffer) -> Iterator[Minibatch]:
        training, search = self.config.training, self.config.training.search
        new = buffer.all()
        if self.window is None:
            self.window = ReplayWindow(search.window, search.priority)
        before = self.window.seen
        self.window.add(new)
        # Rounded over the whole run, not for each update.
        size, reuse = training.minibatch_size, search.reuse
        steps = int(self.window.seen * reuse / size) - int(before * reuse / size)
        random = self._random(0)
        for _ in range(steps):
            yield self.window.sample(size, random)

    def _step_of(self, minibatch: Minibatch, entropy_coef: float) -> GradientStep:
        return GradientStep.of(minibatch, entropy_coef, normalize=False)

    def _loss(self, step: GradientStep, positions: Positions) -> tuple[Tensor, Tensor]:
        training, moves = self.config.training, step.moves
        legal = LegalMoves.of(positions, self._logit_of_action, self.device)
        logits, values = self._evaluate(torch.from_numpy(positions.planes))
        all_log_probs = legal.log_probs(legal.pick(logits))
        columns = tried_columns(positions, moves.tried)
        gains = np.zeros(all_log_probs.shape, np.float32)
        rows, places = np.nonzero(columns >= 0)
        gains[rows, columns[rows, places]] = moves.gains[rows, places]
        mb_gains, mb_returns, mb_weights, searched = (
            torch.from_numpy(array).to(self.device)
            for array in (gains, moves.returns, moves.weights, (columns[:, :1] >= 0).any(1))
        )
        targets = max(step.targets, 1)
        with torch.no_grad():
            log_target = torch.log_softmax(all_log_probs.detach() + mb_gains, 1)
            target = log_target.exp()
            kl = torch.where(target > 0, target * (log_target - all_log_probs), 0).sum(1)
            agreement = target.argmax(1) == all_log_probs.argmax(1)
        cross_entropy = -torch.where(target > 0, target * all_log_probs, 0).sum(1)
        policy_loss = torch.where(searched, cross_entropy, 0).sum() / targets
        value_loss = (mb_weights * mse_loss(values, mb_returns, reduction="none")).sum() / step.minibatch
        mean_entropy = entropy(all_log_probs).sum() / step.minibatch
        loss = policy_loss + training.value_coef * value_loss - step.entropy_coef * mean_entropy
        with torch.no_grad():
            of_searched = [(part * searched).sum() / targets for part in (kl, agreement.float())]
            return loss, torch.stack([policy_loss, value_loss, mean_entropy, *of_searched])

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Return the weights, the optimiser's tensors and the window, by name, on the CPU."""
        window = {} if self.window is None else self.window.arrays()
        return {**super().tensors(), _WINDOW: {name: torch.from_numpy(a) for name, a in window.items()}}

    def load_tensors(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Load what `tensors` returned; ValueError if it does not fit."""
        super().load_tensors(tensors)
        search, group = self.config.training.search, tensors.get(_WINDOW, {})
        self.window = None
        if group:
            arrays = {name: tensor.numpy() for name, tensor in group.items()}
            self.window = ReplayWindow.of_arrays(arrays, search.window, search.priority, search.candidates)
