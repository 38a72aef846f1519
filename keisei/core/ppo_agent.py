"""PPOAgent: a policy that learns from the outcomes of its moves, by PPO.

The names are the paper's (Schulman et al., 2017).
"""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.gradient_step import GradientStep, chosen_columns
from keisei.core.learning_agent import LearningAgent
from keisei.core.sparse_policy import LegalMoves, entropy
from keisei.shogi.positions import Positions


class PPOAgent(LearningAgent):
    """An agent that learns by PPO, from each buffer in ppo_epochs passes."""

    algorithm = "ppo"

    def _minibatches(self, buffer: ExperienceBuffer) -> Iterator[Minibatch]:
        training = self.config.training
        for epoch in range(training.ppo_epochs):
            yield from buffer.minibatches(training.minibatch_size, self._random(epoch))

    def _step_of(self, minibatch: Minibatch, entropy_coef: float) -> GradientStep:
        return GradientStep.of(minibatch, entropy_coef, normalize=self.config.training.normalize_advantages)

    def _is_enough(self, metrics: Mapping[str, float]) -> bool:
        target_kl = self.config.training.target_kl
        return target_kl is not None and metrics["policy/approx_kl"] > target_kl

    def _loss(self, step: GradientStep, positions: Positions) -> tuple[Tensor, Tensor]:
        training, moves = self.config.training, step.moves
        columns = chosen_columns(positions, moves.actions)
        mb_log_probs, mb_values, mb_advantages, mb_returns, mb_columns = (
            torch.from_numpy(array).to(self.device)
            for array in (
                moves.log_probs,
                moves.values,
                moves.advantages,
                moves.returns,
                columns.astype(np.int64),
            )
        )
        legal = LegalMoves.of(positions, self._logit_of_action, self.device)
        logits, values = self._evaluate(torch.from_numpy(positions.planes))
        all_log_probs = legal.log_probs(legal.pick(logits))
        log_ratio = all_log_probs.gather(1, mb_columns[:, None])[:, 0] - mb_log_probs
        ratio = log_ratio.exp()

        clipped = ratio.clamp(1 - training.clip_coef, 1 + training.clip_coef)
        policy_loss = -torch.min(mb_advantages * ratio, mb_advantages * clipped).sum() / step.minibatch
        value_loss = mse_loss(values, mb_returns, reduction="none")
        if training.value_clip is not None:
            near = mb_values + (values - mb_values).clamp(-training.value_clip, training.value_clip)
            value_loss = torch.max(value_loss, mse_loss(near, mb_returns, reduction="none"))
        value_loss = value_loss.sum() / step.minibatch
        mean_entropy = entropy(all_log_probs).sum() / step.minibatch
        loss = policy_loss + training.value_coef * value_loss - step.entropy_coef * mean_entropy
        with torch.no_grad():
            approx_kl = (ratio - 1 - log_ratio).sum() / step.minibatch
            clip_fraction = ((ratio - 1).abs() > training.clip_coef).float().sum() / step.minibatch
            return loss, torch.stack([policy_loss, value_loss, mean_entropy, approx_kl, clip_fraction])
