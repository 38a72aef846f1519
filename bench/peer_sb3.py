"""sb3-contrib's MaskablePPO as a peer: our games behind its interface, our network inside its policy."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import gymnasium
import numpy as np
import torch
from contest import TakeTurn, measured
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from settings import Scale, config_of
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from keisei.config.schema import AppConfig
from keisei.core.models import model_factory
from keisei.shogi.encoding import ACTIONS, PLANES
from keisei.shogi.vector import Batch, VectorGames


class Games(VecEnv):
    """VectorGames behind stable-baselines3's interface, with nothing in between that costs time."""

    def __init__(self, count: int, max_moves: int) -> None:
        space = gymnasium.spaces.Box(0, 1, (PLANES, 9, 9), np.float32)
        super().__init__(count, space, gymnasium.spaces.Discrete(ACTIONS))
        self._games, self._batch = VectorGames(count, max_moves=max_moves), Batch.empty(count, mask=True)
        self._games.observe(self._batch)
        assert self._batch.planes is not None
        self._planes = self._batch.planes

    def reset(self) -> Any:
        """Return the planes."""
        return self._planes.copy()

    def step_async(self, actions: Any) -> None:
        """Store the actions."""
        self._actions = actions.astype(np.int32)

    def step_wait(self) -> Any:
        """Play them."""
        self._games.step(self._actions, self._batch)
        infos = [{"terminal_observation": self._planes[0]} if end else {} for end in self._batch.ended]
        return self._planes.copy(), self._batch.rewards.copy(), self._batch.ended.copy(), infos

    def env_method(self, method_name: str, *_args: Any, **_options: Any) -> list[Any]:
        """Return the masks, the only thing MaskablePPO asks for."""
        assert method_name == "action_masks"
        assert self._batch.mask is not None
        return list(self._batch.mask)

    def has_attr(self, attr_name: str) -> bool:
        """Return True for masks only."""
        return attr_name == "action_masks"

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:  # noqa: ARG002
        """Return None for every game: nothing is rendered."""
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise: not supported."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:  # noqa: ARG002
        """Return False for every game: nothing is wrapped."""
        return [False] * self.num_envs

    def close(self) -> None:
        """Do nothing."""


class Policy(MaskableActorCriticPolicy):
    """A policy with our network in place of theirs: 2,187 logits are expanded to 13,527 actions."""

    config: AppConfig  # set by open_training

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        self.network = model_factory(self.config.model).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.register_buffer("table", torch.from_numpy(self.network.logit_of_action).clamp_min(0))
        self.action_dist = MaskableCategoricalDistribution(ACTIONS)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=lr_schedule(1), eps=1e-5, fused=True)

    def _evaluated(self, obs: Tensor, masks: Any) -> tuple[Any, Tensor]:
        logits, values = self.network(obs)
        distribution = self.action_dist.proba_distribution(logits[:, self.table])
        if masks is not None:
            distribution.apply_masking(masks)
        return distribution, values[:, None]

    def forward(self, obs: Any, deterministic: bool = False, action_masks: Any = None) -> Any:
        """Return actions, values and log-probabilities."""
        distribution, values = self._evaluated(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(self, obs: Any, actions: Tensor, action_masks: Any = None) -> Any:
        """Return values, log-probabilities and entropies."""
        distribution, values = self._evaluated(obs, action_masks)
        return values, distribution.log_prob(actions), distribution.entropy()

    def predict_values(self, obs: Any) -> Tensor:
        """Return values."""
        return self._evaluated(obs, None)[1]


def open_training(scale: Scale, _stack: ExitStack) -> TakeTurn:
    """Return a turn that trains for an epoch, on all threads."""
    config = config_of(scale)
    training = config.training
    Policy.config = config
    model = MaskablePPO(
        Policy,
        Games(training.games, config.env.max_moves),
        learning_rate=training.learning_rate,
        n_steps=training.steps_per_epoch // training.games,
        batch_size=training.minibatch_size,
        n_epochs=training.ppo_epochs,
        gamma=training.gamma,
        gae_lambda=training.gae_lambda,
        clip_range=training.clip_coef,
        ent_coef=training.entropy_coef,
        device="cpu",
    )

    def epoch() -> float:
        torch.set_num_threads(scale.workers)
        model.learn(training.steps_per_epoch, reset_num_timesteps=False)
        return training.steps_per_epoch

    epoch()
    return lambda: measured(epoch)
