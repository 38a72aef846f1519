"""Shogi for PettingZoo: env() is an AEC environment with two agents.

    from keisei.envs import shogi_v0
    env = shogi_v0.env()

player_0 is Black and player_1 is White. An observation is a dict: "observation", float32 [46, 9, 9], the
board as that agent sees it, and "action_mask", int8 [13527], all zero while it is the other's turn. Rewards
come at the end of the game: 1 and -1, or 0 for both.
"""

import operator
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import seeding

from keisei.errors import install_command

try:
    from pettingzoo import AECEnv
    from pettingzoo.utils import wrappers
except ImportError as error:
    raise ImportError(f"keisei.envs.shogi_v0 needs PettingZoo: {install_command('gym')}") from error

from keisei.envs.env_game import (
    RENDER_MODES,
    EnvGame,
    Frame,
    checked_render_mode,
    render,
    result,
    reward,
)
from keisei.envs.shogi_env import observation_space
from keisei.shogi.encoding import ACTIONS
from keisei.shogi.outcome import Color
from keisei.shogi.vector import VectorGames

_AGENTS = {"player_0": Color.BLACK, "player_1": Color.WHITE}
_NAMES = list(_AGENTS)


def env(**options: Any) -> "AECEnv[str, Any, Any]":
    """Return the environment, wrapped in PettingZoo's checks of call order and actions."""
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(raw_env(**options)))


class raw_env(AECEnv[str, dict[str, npt.NDArray[Any]], int]):  # type: ignore[misc] # noqa: N801
    """Shogi for two agents.

    illegal_action: "lose" loses the game, as the rules of shogi say; "raise" raises a RulesError.
    max_moves, declaration, starts, random_plies: as for keisei.shogi.vector.VectorGames.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": RENDER_MODES,
        "name": "shogi_v0",
        "is_parallelizable": False,
        "render_fps": 2,
    }

    def __init__(
        self,
        *,
        illegal_action: Literal["lose", "raise"] = "lose",
        max_moves: int | None = 512,
        declaration: str = "27",
        starts: Sequence[str] | None = None,
        random_plies: int = 0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self.render_mode = checked_render_mode(render_mode)
        self.possible_agents = _NAMES[:]
        self.action_spaces = {agent: spaces.Discrete(ACTIONS) for agent in _AGENTS}
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": observation_space(),
                    "action_mask": spaces.Box(0, 1, (ACTIONS,), np.int8),
                }
            )
            for agent in _AGENTS
        }
        beginnings = VectorGames(
            1, max_moves=max_moves, declaration=declaration, starts=starts, random_plies=random_plies
        )
        self._table = EnvGame(beginnings, illegal_action)
        self._random, _ = seeding.np_random()
        self.reset()

    def observation_space(self, agent: str) -> "spaces.Space[Any]":
        """Return the space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> "spaces.Space[Any]":
        """Return the space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        """Start a game, the same one for the same seed."""
        if seed is not None:
            self._random, _ = seeding.np_random(seed)
        self._table.begin(int(self._random.integers(2**63)))
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = _NAMES[self._table.turn]

    def observe(self, agent: str) -> dict[str, npt.NDArray[Any]]:
        """Return the board as an agent sees it, and its legal actions when it is to move."""
        color = _AGENTS[agent]
        mask = self._table.mask() if color is self._table.turn else np.zeros(ACTIONS, np.bool_)
        return {"observation": self._table.observation(color), "action_mask": mask.view(np.int8)}

    def step(self, action: int | None) -> None:
        """Play the selected agent's action."""
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        if action is None:
            raise ValueError("action is None, but the game is not over")
        mover = self.agent_selection
        self._cumulative_rewards[mover] = 0.0
        self._table.play(operator.index(action))
        self.agent_selection = _NAMES[_AGENTS[mover].opponent]
        if outcome := self._table.outcome():
            for agent, color in _AGENTS.items():
                self.rewards[agent] = reward(outcome, color)
                self.terminations[agent] = True
                self.infos[agent] = result(outcome)
        self._accumulate_rewards()

    def render(self) -> Frame | None:
        """Return the board as BOD text ("ansi") or as a picture, uint8 [H, W, 3] ("rgb_array")."""
        return render(self._table.game, self.render_mode) if self.render_mode else None

    def close(self) -> None:
        """Do nothing: no resources are held open."""
