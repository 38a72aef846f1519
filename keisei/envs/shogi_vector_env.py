"""ShogiVectorEnv: the native vector of games as a gymnasium.vector.VectorEnv.

Self-play in every slot: an observation belongs to the side to move, a reward to the side that has just moved.
When a game ends, the next one begins in the same step (AutoresetMode.SAME_STEP); the infos have the finished
game's last observation and result.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from keisei.envs.env_game import (
    RENDER_MODES,
    Frame,
    checked_render_mode,
    render,
    result,
)
from keisei.envs.shogi_env import observation_space
from keisei.shogi import encoding
from keisei.shogi.vector import Batch, FinishedGame, VectorGames

_Array = npt.NDArray[Any]


class ShogiVectorEnv(VectorEnv[_Array, _Array, _Array]):
    """`num_envs` games of self-play at once; gymnasium.make_vec("keisei/Shogi-v0", num_envs=64) makes one.

    threads: native threads; the results are the same for any number.
    copy: return copies of the observations; if False, every step overwrites the same array.
    max_moves, declaration, starts, random_plies: as for keisei.shogi.vector.VectorGames.
    An illegal action raises a RulesError; no game is then changed.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": RENDER_MODES,
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        threads: int = 1,
        copy: bool = True,
        max_moves: int | None = 512,
        declaration: str = "27",
        starts: Sequence[str] | None = None,
        random_plies: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self._games = VectorGames(
            num_envs,
            threads=threads,
            max_moves=max_moves,
            declaration=declaration,
            starts=starts,
            random_plies=random_plies,
        )
        self._batch = Batch.empty(num_envs)
        self._threads = threads
        self._copy = copy
        self._games.observe(self._batch)
        self.num_envs = num_envs
        self.render_mode = checked_render_mode(render_mode)
        self.single_observation_space = observation_space()
        self.single_action_space = spaces.Discrete(encoding.ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Array, dict[str, Any]]:
        """Start new games in all slots, the same ones for the same seed."""
        if options and options.get("reset_mask") is not None:
            raise ValueError("reset_mask is not supported: games restart by themselves")
        super().reset(seed=seed)
        self._games.restart(seed=int(self.np_random.integers(2**63)))
        self._games.observe(self._batch)
        return self._observations(), self._infos([])

    def step(self, actions: _Array) -> tuple[_Array, _Array, _Array, _Array, dict[str, Any]]:
        """Play one legal action in every game."""
        finished = self._games.step(self._checked(actions), self._batch)
        rewards = self._batch.rewards.astype(np.float64)
        ended = self._batch.ended.copy()
        return self._observations(), rewards, ended, np.zeros(self.num_envs, np.bool_), self._infos(finished)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions as a dense mask, bool [N, 13527]."""
        return encoding.legal_mask(self._batch.packed, threads=self._threads)

    def legal_actions(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return (offsets [N + 1], actions): game i may play actions[offsets[i]:offsets[i + 1]].

        Far cheaper than a dense mask; overwritten by the next step.
        """
        return self._batch.offsets, self._batch.actions[: self._batch.offsets[-1]]

    def render(self) -> tuple[Frame, ...] | None:
        """Return a text or a picture of every game."""
        if self.render_mode is None:
            return None
        games = map(self._games.game, range(self.num_envs))
        return tuple(render(game, self.render_mode) for game in games)

    def _observations(self) -> _Array:
        assert self._batch.planes is not None
        return self._batch.planes.copy() if self._copy else self._batch.planes

    def _checked(self, actions: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Convert actions of any integer type for native code, which checks each value itself."""
        given = np.asarray(actions)
        if given.shape != (self.num_envs,) or given.dtype.kind not in "iu":
            got = f"{given.dtype} of shape {given.shape}"
            raise ValueError(f"actions: expected integers of shape ({self.num_envs},), got {got}")
        return np.ascontiguousarray(np.clip(given, -1, encoding.ACTIONS), np.int32)

    def _infos(self, finished: list[FinishedGame]) -> dict[str, Any]:
        facts = {
            "to_move": encoding.turns(self._batch.packed).astype(np.int64),
            "ply": encoding.plies(self._batch.packed),
        }
        everyone = np.ones(self.num_envs, np.bool_)
        infos: dict[str, Any] = facts | {f"_{key}": everyone for key in facts}
        for game in finished:
            final_obs = encoding.planes(game.final_position[None])[0]
            final_info = result(game.outcome) | {"length": len(game.moves), "game": game.number}
            infos = self._add_info(infos, {"final_obs": final_obs, "final_info": final_info}, game.slot)
        return infos
