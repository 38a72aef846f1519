"""ShogiEnv with its legal actions in the observation, so that both go through a vectorizer's shared memory.

Self-play: every move is the mover's, and the reward is the mover's too. Without torch, so that a process of a
peer that steps it stays small.
"""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from keisei.envs import ShogiEnv
from keisei.shogi.encoding import ACTIONS, PLANES

MAX_MOVES = 256  # as in training
Observation = dict[str, npt.NDArray[Any]]


class MaskedShogi(gymnasium.Env[Observation, int]):
    """One game; the observation is {"planes": float32 [46, 9, 9], "mask": int8 [13527]}."""

    def __init__(self) -> None:
        self._env = ShogiEnv(max_moves=MAX_MOVES)
        self.observation_space: Any = gymnasium.spaces.Dict(
            {
                "mask": gymnasium.spaces.Box(0, 1, (ACTIONS,), np.int8),
                "planes": gymnasium.spaces.Box(0, 1, (PLANES, 9, 9), np.float32),
            }
        )
        self.action_space: Any = gymnasium.spaces.Discrete(ACTIONS)
        self.render_mode = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Observation, dict[str, Any]]:
        """Begin a game."""
        planes, info = self._env.reset(seed=seed, options=options)
        return {"mask": info["action_mask"], "planes": planes}, {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play a move; the observation is the other side's."""
        planes, reward, terminated, truncated, info = self._env.step(action)
        observation = {"mask": info["action_mask"], "planes": planes}
        return observation, float(reward), terminated, truncated, {}
