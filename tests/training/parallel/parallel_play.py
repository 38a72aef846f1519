"""Shared by the tests of workers: a small config, a learning agent, the same play without processes."""

import functools
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from faulty_workers import Fault, FaultyWorker
from learning import NATIVE

from keisei.config.schema import AppConfig
from keisei.core.agents import agent_of
from keisei.core.exchange import Exchange
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.learning_agent import LearningAgent
from keisei.core.numerics import Numerics
from keisei.core.segment import Segment
from keisei.core.self_play import GameResult, Played, SavedGames, SelfPlay
from keisei.shogi.vector import VectorGames
from keisei.training.parallel.communication import WorkerSegment
from keisei.training.parallel.ledger import Account
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.supervised_worker import Supervision
from keisei.training.parallel.worker_setup import begin_games, number_of_workers

GAMES = 8  # per worker
MOVES = 12  # per game in a segment
SEGMENT = GAMES * MOVES
# Games that start here end after a few moves, by mate.
NEAR_MATE = ["8k/9/7GG/9/9/9/9/9/K8 b - 1", "8k/9/9/9/9/9/gg7/9/K8 w - 1"]
PATIENCE = 240.0  # seconds to wait for what must happen: the machine may be busy
QUICK = Supervision(first_backoff_seconds=0.01, longest_backoff_seconds=0.05, start_seconds=600.0)

Contents = tuple[list[bytes], list[GameResult], SavedGames]


def small_config(
    workers: int = 1, *, learners: int = 1, searches: bool = False, **parallel: Any
) -> AppConfig:
    """A network and games so small that a worker plays a segment in a few hundredths of a second."""
    search = {"simulations": 5, "candidates": 3, "window": 3 * SEGMENT, "priority": "value"}
    return AppConfig.model_validate(
        {
            "env": {"max_moves": 160, "random_plies": 150, "late_start_share": 0.6},
            "model": {"blocks": 1, "channels": 8, "norm_groups": 4, "value_hidden": 16},
            "training": {
                "games": GAMES,
                "steps_per_epoch": SEGMENT * workers,
                "minibatch_size": SEGMENT * workers,
                "learning_rate": 0.01,
                "learners": learners,
                "algorithm": "search" if searches else "ppo",
                "search": search,
                "parallel": {"num_workers": workers, "episodes_per_worker": GAMES, **parallel},
            },
            "run": {"seed": 5},
        }
    )


def new_agent(config: AppConfig, numerics: Numerics = NATIVE) -> LearningAgent:
    return agent_of(config, numerics=numerics)


def learn(agent: LearningAgent, segments: Sequence[Segment], exchange: Exchange | None = None) -> None:
    buffer = ExperienceBuffer(gamma=0.99, gae_lambda=0.95)
    for segment in segments:
        buffer.add_batch(segment)
    agent.learn(buffer, exchange=exchange)


def contents(played: Played, saved: SavedGames) -> Contents:
    """Everything in a segment, for comparison."""
    arrays = [getattr(played.segment, name).tobytes() for name in Segment.__slots__]
    return arrays, played.results, saved


def contents_of(played: Sequence[WorkerSegment]) -> list[Contents]:
    return [contents(one, one.saved) for one in played]


def begun(config: AppConfig) -> list[SavedGames]:
    """New games whose successors often start near a mate, so that games end in all ways in each segment."""
    games = begin_games(config, number_of_workers(config))
    return [SavedGames(one.games, {"late_starts": NEAR_MATE}) for one in games]


def numbers_of(games: Sequence[SavedGames]) -> set[int]:
    return {number for saved in games for number in VectorGames.restore(saved.games).numbers}


class InProcess:
    """What workers should play, computed one after another in this process with its own agent."""

    def __init__(self, config: AppConfig, games: Sequence[SavedGames]) -> None:
        self.agent = new_agent(config)
        self.vectors = [SelfPlay.restore(saved, config.env) for saved in games]

    def epoch(self, moves: int = MOVES) -> list[Contents]:
        """Play a segment in every vector and learn from it."""
        played = [vector.rollout(self.agent, moves) for vector in self.vectors]
        epoch = [contents(one, vector.save()) for one, vector in zip(played, self.vectors, strict=True)]
        learn(self.agent, [one.segment for one in played])
        return epoch


@functools.cache
def undisturbed(workers: int, epochs: int) -> list[list[Contents]]:
    """The epochs of undisturbed workers."""
    config = small_config(workers)
    play = InProcess(config, begun(config))
    return [play.epoch() for _ in range(epochs)]


class Workers(ParallelManager):
    """Workers with faults, a learner that trains on everything they play, and the notices."""

    def __init__(
        self,
        config: AppConfig,
        *faults: Fault,
        slow: float = 0.0,
        supervision: Supervision = QUICK,
        numerics: Numerics = NATIVE,
        games: Sequence[SavedGames] | None = None,
    ) -> None:
        self.notices: list[str] = []
        self.log: list[str] = []
        super().__init__(
            config,
            new_agent(config, numerics),
            games=begun(config) if games is None else games,
            notice=self.notices.append,
            log=self.log.append,
            supervision=supervision,
            worker=FaultyWorker,
            worker_arguments=(faults, slow),
        )

    def epoch(self, target_steps: int | None = None) -> list[Contents]:
        """Collect, learn and publish; return what was collected, checking that no move is lost."""
        steps = self.config.training.steps_per_epoch if target_steps is None else target_steps
        played = self.collect_experiences(steps)
        self.account()
        learn(self.agent, [one.segment for one in played], self.exchange)
        self.synchronize_models()
        return contents_of(played)

    def look_until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Supervise the workers until something has happened."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not happen"
            self.supervise(0.01)

    def queue_size(self) -> int:
        return int(self.get_statistics()["queue_size"])

    def has_taken_one(self) -> bool:
        """Whether worker 0 has delivered the one requested segment, and it has left the queue."""
        statistics = self.get_statistics()
        waits = statistics["channels"][0]["tickets"] + statistics["queue_size"]
        return not waits and bool(statistics["steps"]["in_flight"])

    def pids(self) -> list[int]:
        return [worker.pid for worker in self.workers if worker.pid is not None]


def discarded(account: Account) -> dict[str, int]:
    """The reasons for which moves were discarded."""
    return {reason: count for reason, count in account.discarded.items() if count}


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process is running, not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def kill(pid: int, number: int) -> None:
    """Send a signal to a worker, which may just have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def worker_processes() -> list[int]:
    """The processes started by the fork server that are still running."""
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == server and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found
