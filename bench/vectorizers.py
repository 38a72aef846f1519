"""Other people's ways to step many games in processes, with our game inside: environments for a learner.

Each `Stepper` steps N games and returns what a learner needs: planes, dense masks, rewards, ends. Three uses:
random play (contest env/processes), play by our network in the learner's process (contest collect), and a
killed process (bench/kill_a_worker.py). Some of them spin while they wait, so all are stopped between their
turns.
"""

import contextlib
import functools
import importlib
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from contest import Contender, TakeTurn, Turn, descendants, measured
from masked_env import MAX_MOVES, MaskedShogi
from settings import Peers, Scale

from keisei.shogi.encoding import ACTIONS, PLANES
from keisei.shogi.vector import Batch, VectorGames

Planes = npt.NDArray[np.float32]
Mask = npt.NDArray[Any]
Stepped = tuple[Planes, Mask, npt.NDArray[Any], npt.NDArray[Any]]  # with rewards and ends


class Stepper(Protocol):
    """N games in other processes.

    shows_the_end: a finished game is shown once more, and the step after that begins anew without a move.
    """

    count: int
    shows_the_end: bool

    def reset(self) -> tuple[Planes, Mask]:
        """Begin the games and return planes [N, 46, 9, 9] and masks [N, 13527]."""

    def step(self, actions: npt.NDArray[np.int64]) -> Stepped:
        """Play a move in each; a finished game begins anew."""

    def close(self) -> None:
        """End the processes."""


class GymnasiumAsync:
    """Gymnasium's AsyncVectorEnv: a process for every game, observations in shared memory."""

    shows_the_end = False

    def __init__(self, count: int) -> None:
        vector = importlib.import_module("gymnasium.vector")
        self.count = count
        self._envs = vector.AsyncVectorEnv(
            [MaskedShogi] * count,
            shared_memory=True,
            copy=False,
            autoreset_mode=vector.AutoresetMode.SAME_STEP,
        )

    def reset(self) -> tuple[Planes, Mask]:
        """Begin the games."""
        observation, _ = self._envs.reset(seed=1)
        return observation["planes"], observation["mask"]

    def step(self, actions: npt.NDArray[np.int64]) -> Stepped:
        """Play a move in each."""
        observation, rewards, terminated, _, _ = self._envs.step(actions)
        return observation["planes"], observation["mask"], rewards, terminated

    def close(self) -> None:
        """End the processes, by force: one of them may be dead."""
        self._envs.close(terminate=True)


class _Puffer(ABC):
    """PufferLib's Multiprocessing backend."""

    shows_the_end: bool

    def __init__(self, count: int, make_env: Callable[..., Any], envs: int, workers: int) -> None:
        vector = importlib.import_module("pufferlib.vector")
        self.count = count
        self._envs = vector.make(
            make_env,
            num_envs=envs,
            num_workers=workers,
            backend=vector.Multiprocessing,
            overwork=True,  # it counts physical cores only
        )

    @abstractmethod
    def _split(self, flat: Any) -> tuple[Planes, Mask]:
        """Return the planes and the masks in an observation of all games."""

    def reset(self) -> tuple[Planes, Mask]:
        """Begin the games."""
        return self._split(self._envs.reset(seed=1)[0])

    def step(self, actions: npt.NDArray[np.int64]) -> Stepped:
        """Play a move in each."""
        flat, rewards, ended, _, _ = self._envs.step(actions.astype(np.int32))
        return *self._split(flat), rewards, ended

    def close(self) -> None:
        """End the processes."""
        self._envs.close()


class PufferEmulated(_Puffer):
    """PufferLib with ShogiEnv behind its emulation layer."""

    shows_the_end = True

    def __init__(self, count: int, workers: int) -> None:
        emulation = importlib.import_module("pufferlib.emulation")
        make_env = functools.partial(emulation.GymnasiumPufferEnv, env_creator=MaskedShogi)
        super().__init__(count, make_env, count, workers)
        self._layout = self._envs.driver_env.obs_dtype

    def _split(self, flat: Any) -> tuple[Planes, Mask]:
        seen = np.ascontiguousarray(flat).view(self._layout).reshape(self.count)
        return seen["planes"], seen["mask"]


def _native_puffer_env(games: int, buf: Any = None, seed: int = 0) -> Any:
    """Return PufferLib's own kind of environment over our vector of games: bytes of planes, then of masks."""
    base: Any = importlib.import_module("pufferlib").PufferEnv
    planes_bytes = PLANES * 81 * 4

    class Games(base):  # type: ignore[misc]  # PufferLib has no types
        def __init__(self) -> None:
            spaces = importlib.import_module("gymnasium.spaces")
            self.single_observation_space = spaces.Box(0, 255, (planes_bytes + ACTIONS,), np.uint8)
            self.single_action_space = spaces.Discrete(ACTIONS)
            self.num_agents = games
            super().__init__(buf)
            self._games = VectorGames(games, seed=seed, max_moves=MAX_MOVES)
            self._batch = Batch.empty(games, mask=True)

        def _show(self) -> None:
            assert self._batch.planes is not None
            assert self._batch.mask is not None
            self.observations[:, :planes_bytes] = self._batch.planes.reshape(games, -1).view(np.uint8)
            self.observations[:, planes_bytes:] = self._batch.mask.view(np.uint8)

        def reset(self, seed: int | None = None) -> Any:  # noqa: ARG002
            self._games.observe(self._batch)
            self._show()
            return self.observations, []

        def step(self, actions: Any) -> Any:
            self._games.step(np.ascontiguousarray(actions, np.int32).reshape(games), self._batch)
            self._show()
            self.rewards[:] = self._batch.rewards
            self.terminals[:] = self._batch.ended
            self.truncations[:] = False
            return self.observations, self.rewards, self.terminals, self.truncations, []

        def close(self) -> None:
            pass

    return Games()


class PufferNative(_Puffer):
    """PufferLib at its best: its own kind of environment, over our vector of games, in processes."""

    shows_the_end = False

    def __init__(self, count: int, workers: int) -> None:
        super().__init__(count, functools.partial(_native_puffer_env, count // workers), workers, workers)

    def _split(self, flat: Any) -> tuple[Planes, Mask]:
        border = PLANES * 81 * 4
        planes = np.ascontiguousarray(flat[:, :border]).view(np.float32).reshape(self.count, PLANES, 9, 9)
        return planes, flat[:, border:]


class Subprocesses:
    """Stable-baselines3's SubprocVecEnv: a process for every game, observations pickled through a pipe."""

    shows_the_end = False

    def __init__(self, count: int) -> None:
        vec_env = importlib.import_module("stable_baselines3.common.vec_env")
        self.count = count
        self._envs = vec_env.SubprocVecEnv([MaskedShogi] * count, start_method="fork")

    def reset(self) -> tuple[Planes, Mask]:
        """Begin the games."""
        observation = self._envs.reset()
        return observation["planes"], observation["mask"]

    def step(self, actions: npt.NDArray[np.int64]) -> Stepped:
        """Play a move in each."""
        observation, rewards, ended, _ = self._envs.step(actions)
        return observation["planes"], observation["mask"], rewards, ended

    def close(self) -> None:
        """End the processes."""
        self._envs.close()


Kinds = dict[str, tuple[str, str, Callable[[], Stepper]]]  # name → peer, note, how to make it


def kinds(scale: Scale) -> Kinds:
    """Return the steppers to compare."""
    workers, few, many = scale.workers, 2 if scale.is_tiny else 8, 4 if scale.is_tiny else 32
    games = workers if scale.is_tiny else 64 // workers * workers
    own = "ShogiEnv, planes and mask in shared memory"
    return {
        f"gymnasium AsyncVectorEnv, {few} processes": ("gymnasium", own, lambda: GymnasiumAsync(few)),
        f"gymnasium AsyncVectorEnv, {many} processes": ("gymnasium", own, lambda: GymnasiumAsync(many)),
        f"stable-baselines3 SubprocVecEnv, {few} processes": (
            "sb3-contrib", "ShogiEnv, through pipes", lambda: Subprocesses(few),
        ),
        f"PufferLib, {games} ShogiEnv in {workers} processes": (
            "pufferlib", own, lambda: PufferEmulated(games, workers),
        ),
        f"PufferLib, {workers} processes of {games // workers} games": (
            "pufferlib", "its own kind of environment, our VectorGames", lambda: PufferNative(games, workers),
        ),
    }  # fmt: skip


def contenders(scale: Scale, peers: Peers, what: str) -> list[Contender]:
    """Return the installed ones as contenders: what is "env" (random play) or "collect" (by our network)."""
    return [
        Contender(name, functools.partial(_open, make, what, scale), note, peer)
        for name, (peer, note, make) in kinds(scale).items()
        if peers.has(peer)
    ]


def _open(make: Callable[[], Stepper], what: str, scale: Scale, stack: ExitStack) -> TakeTurn:
    before = set(descendants(os.getpid()))
    stepper = stack.enter_context(contextlib.closing(make()))
    processes = sorted(set(descendants(os.getpid())) - before)
    stack.callback(_signal, processes, signal.SIGCONT)  # so that they can be closed
    choose = random_chooser() if what == "env" else network_chooser(scale)
    stepper_steps = max(1, scale.of(16_000 if what == "env" else 6_000) // stepper.count)
    seen = [stepper.reset()]

    def play() -> float:
        planes, mask = seen[0]
        moves = stepper_steps * stepper.count
        for _ in range(stepper_steps):
            planes, mask, _, ended = stepper.step(choose(planes, mask))
            if stepper.shows_the_end:
                moves -= int(np.count_nonzero(ended))
        seen[0] = planes, mask
        return moves

    def turn() -> Turn:
        with _awake(processes):
            return measured(play)

    turn()
    return turn


@contextlib.contextmanager
def _awake(processes: list[int]) -> Iterator[None]:
    """Let processes run, and stop them again at the end."""
    _signal(processes, signal.SIGCONT)
    try:
        yield
    finally:
        _signal(processes, signal.SIGSTOP)


def _signal(processes: list[int], number: signal.Signals) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def legal_actions(mask: Mask) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the indexes of the legal actions in the flat mask, and where each game's begin [N + 1]."""
    legal = np.flatnonzero(np.ascontiguousarray(mask).view(np.bool_))
    return legal, np.searchsorted(legal, np.arange(len(mask) + 1) * ACTIONS)


# A finished game that is still shown has no legal action; what is chosen there does not matter.


def random_chooser() -> Callable[[Planes, Mask], npt.NDArray[np.int64]]:
    """Return a function that chooses uniformly among the legal actions of each game."""
    draw = np.random.default_rng(1)

    def choose(_planes: Planes, mask: Mask) -> npt.NDArray[np.int64]:
        legal, starts = legal_actions(mask)
        picks = starts[:-1] + (draw.random(len(mask)) * np.diff(starts)).astype(np.int64)
        chosen: npt.NDArray[np.int64] = legal[np.minimum(picks, len(legal) - 1)] % ACTIONS
        return chosen

    return choose


def network_chooser(scale: Scale) -> Callable[[Planes, Mask], npt.NDArray[np.int64]]:
    """Return a function that samples from our network's policy over the legal actions, on all cores."""
    torch = importlib.import_module("torch")
    schema = importlib.import_module("keisei.config.schema")
    models = importlib.import_module("keisei.core.models")
    blocks, channels = scale.network
    network = models.model_factory(schema.ModelConfig(blocks=blocks, channels=channels))
    network = network.to(memory_format=torch.channels_last).eval()
    draw = np.random.default_rng(1)

    def choose(planes: Planes, mask: Mask) -> npt.NDArray[np.int64]:
        torch.set_num_threads(scale.workers)
        with torch.inference_mode():
            logits = network(torch.from_numpy(np.array(planes)))[0].numpy()
        return sampled(logits, network.logit_of_action, mask, draw.random(len(mask)))

    return choose


def sampled(
    logits: npt.NDArray[np.float32], logit_of_action: npt.NDArray[Any], mask: Mask, draws: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return an action for each game from the softmax over its legal ones; draws [N] are in [0, 1).

    Only the legal logits are looked at, as our own sampler does it. All games share one running sum of
    weights; a game's draw falls into its part of that sum.
    """
    legal, starts = legal_actions(mask)
    games = np.repeat(np.arange(len(mask)), np.diff(starts))
    actions = legal - games * ACTIONS
    scores = logits[games, logit_of_action[actions]] - logits.max(axis=1)[games]
    sums = np.concatenate(([0.0], np.cumsum(np.exp(scores, dtype=np.float64))))
    low, high = sums[starts[:-1]], sums[starts[1:]]
    picks = np.searchsorted(sums, low + draws * (high - low), side="right") - 1
    # Rounding may carry a draw just below 1 over its game's end.
    picks = np.clip(picks, starts[:-1], np.maximum(starts[1:] - 1, starts[:-1]))
    chosen: npt.NDArray[np.int64] = actions[np.minimum(picks, len(legal) - 1)]
    return chosen
