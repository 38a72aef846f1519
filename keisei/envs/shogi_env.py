"""ShogiEnv: shogi as a Gymnasium environment, one game at a time.

Without an opponent the agent plays both sides in turn: an observation belongs to the side to move, a step's
reward to the side that has just moved (for the next one it has the opposite sign). With an opponent the agent
plays one side: every reward is its own, and so is every observation before the end of the game.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from keisei.envs.env_game import (
    RENDER_MODES,
    EnvGame,
    Frame,
    checked_render_mode,
    render,
    result,
    reward,
)
from keisei.shogi import RulesError
from keisei.shogi.encoding import ACTIONS, PLANES
from keisei.shogi.outcome import Color
from keisei.shogi.vector import VectorGames

Observation = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
_BEGINNINGS = 100  # attempts by reset() to find a game that lasts until the agent's first move

OpponentPolicy = Callable[[Observation, Mask], int]  # (planes [46, 9, 9], legal actions [13527]) → action


def observation_space() -> "spaces.Space[Observation]":
    """Return the space of one observation."""
    return cast("spaces.Space[Observation]", spaces.Box(0.0, 1.0, (PLANES, 9, 9), np.float32))


class ShogiEnv(gymnasium.Env[Observation, np.int64]):
    """A game of shogi; registered as keisei/Shogi-v0.

    opponent: None (self-play), "random", or a function of observation and mask that returns a legal action.
    agent_color: the agent's side: "black", "white", or "random", drawn for each game; ignored without an
        opponent.
    illegal_action: "lose" loses the game, as the rules of shogi say, reward -1; "raise" raises a RulesError.
    max_moves, declaration, starts, random_plies: as for keisei.shogi.vector.VectorGames.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": RENDER_MODES,
        "render_fps": 2,
    }

    def __init__(
        self,
        *,
        opponent: OpponentPolicy | Literal["random"] | None = None,
        agent_color: Literal["black", "white", "random"] = "random",
        illegal_action: Literal["lose", "raise"] = "lose",
        max_moves: int | None = 512,
        declaration: str = "27",
        starts: Sequence[str] | None = None,
        random_plies: int = 0,
        render_mode: str | None = None,
    ) -> None:
        if not (opponent is None or opponent == "random" or callable(opponent)):
            raise ValueError(f"opponent is {opponent!r}, expected None, 'random' or a function")
        if agent_color not in ("black", "white", "random"):
            raise ValueError(f"agent_color is {agent_color!r}, expected 'black', 'white' or 'random'")
        self.render_mode = checked_render_mode(render_mode)
        self.observation_space = observation_space()
        self.action_space = spaces.Discrete(ACTIONS)
        self._opponent: OpponentPolicy | None = self._random_action if opponent == "random" else opponent
        self._agent_color = agent_color
        beginnings = VectorGames(
            1, max_moves=max_moves, declaration=declaration, starts=starts, random_plies=random_plies
        )
        self._table = EnvGame(beginnings, illegal_action)
        self._is_ready = False  # for step(): False until reset() has set up a game

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a game; if the opponent moves first, its move is played."""
        super().reset(seed=seed, options=options)
        self._is_ready = False
        for _ in range(_BEGINNINGS):
            self._begin()
            if not self._table.outcome():
                self._is_ready = True
                return self._table.observation(), self._info()
        raise RulesError(f"the opponent ended {_BEGINNINGS} games in a row before the agent's first move")

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play an action, and the opponent's reply if there is one; nothing is ever truncated."""
        if not self._is_ready:
            over = self._table.outcome()
            raise RulesError(f"the game is over, {over}: reset()" if over else "no game has begun: reset()")
        if not self.action_space.contains(action):
            raise ValueError(f"action is {action!r}, expected an integer from 0 to {ACTIONS - 1}")
        mover = self._table.turn
        self._table.play(int(action))
        if self._opponent is not None and not self._table.outcome():
            try:
                self._let_opponent_play(self._opponent)
            except BaseException:
                self._table.game.pop()  # the agent's move: it is the agent's turn again
                raise
        outcome = self._table.outcome()
        self._is_ready = outcome is None
        return self._table.observation(), reward(outcome, mover), outcome is not None, False, self._info()

    def action_masks(self) -> Mask:
        """Return the legal actions, bool [13527], under the name that sb3-contrib looks for."""
        return self._table.mask()

    def render(self) -> Frame | None:
        """Return the board as BOD text ("ansi") or as a picture, uint8 [H, W, 3] ("rgb_array")."""
        return render(self._table.game, self.render_mode) if self.render_mode else None

    def _begin(self) -> None:
        self._table.begin(int(self.np_random.integers(2**63)))
        if self._opponent is None:
            return
        if self._agent_color == "random":
            agent = Color(int(self.np_random.integers(2)))
        else:
            agent = Color[self._agent_color.upper()]
        if self._table.turn is not agent:
            self._let_opponent_play(self._opponent)

    def _let_opponent_play(self, opponent: OpponentPolicy) -> None:
        mask = self._table.mask()
        action = operator.index(opponent(self._table.observation(), mask.copy()))
        if not (0 <= action < ACTIONS and mask[action]):
            raise RulesError(f"the opponent played illegal action {action} in {self._table.game.sfen()}")
        self._table.play(action)

    def _random_action(self, _: Observation, mask: Mask) -> int:
        return int(self.np_random.choice(np.flatnonzero(mask)))

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {
            "action_mask": self.action_masks().view(np.int8),  # as action_space.sample() expects it
            "to_move": int(self._table.turn),
            "ply": self._table.game.ply,
        }
        if outcome := self._table.outcome():
            info |= result(outcome)
        return info
