"""A learner with a cluster, for tests: what it collects, beside what it should collect."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from parallel_play import Contents, InProcess, begun, contents_of, learn, new_agent, small_config
from small_cluster import PATIENCE, SmallCluster

from keisei.config.schema import AppConfig
from keisei.core.self_play import SavedGames
from keisei.training.cluster.cluster_hands import cluster_hands
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.supervised_worker import Supervision

PLACES = 4
MOVES = 60  # per game in a segment, so that there is time for something to happen
QUICK = Supervision(first_backoff_seconds=0.01, longest_backoff_seconds=0.05, start_seconds=120.0)


def cluster_config(cluster: SmallCluster | None, *, timeout: float = 30.0, lag: int = 0) -> AppConfig:
    config = small_config(PLACES, worker_timeout=timeout, max_policy_lag=lag)
    config.training.steps_per_epoch = config.training.minibatch_size = PLACES * 8 * MOVES
    config.training.parallel.cluster = None if cluster is None else cluster.address
    return config


class Learner(ParallelManager):
    """A learner that trains on everything it collects, next to the same in one process."""

    def __init__(self, config: AppConfig, games: Sequence[SavedGames] | None = None) -> None:
        self.notices: list[str] = []
        self.log: list[str] = []
        games = begun(config) if games is None else games
        super().__init__(
            config,
            new_agent(config),
            games=games,
            notice=self.notices.append,
            log=self.log.append,
            supervision=QUICK,
            hire=cluster_hands(config.training.parallel),
        )
        self.reference = InProcess(config, games)

    def epoch(self) -> list[Contents]:
        """Collect, learn and publish; return what was collected, checking that no move is lost."""
        played = self.collect_experiences(self.config.training.steps_per_epoch)
        self.account()
        learn(self.agent, [one.segment for one in played], self.exchange)
        self.synchronize_models()
        return contents_of(played)

    def epoch_is_right(self, moves: int = MOVES) -> bool:
        """Whether the next epoch is to the bit what one process plays and learns; moves: of each game."""
        same = self.epoch() == self.reference.epoch(moves)
        ours, theirs = self.agent.arrays(), self.reference.agent.arrays()
        return same and all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)

    def told(self, *words: str) -> bool:
        return any(all(word in line for word in words) for line in self.notices)


@contextmanager
def with_token(cluster: SmallCluster) -> Iterator[None]:
    """Let this process use a cluster."""
    before = os.environ.get("RAY_AUTH_TOKEN_PATH")
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(cluster.token)
    try:
        yield
    finally:
        os.environ.pop("RAY_AUTH_TOKEN_PATH")
        if before is not None:
            os.environ["RAY_AUTH_TOKEN_PATH"] = before


def nodes(learner: Learner) -> int:
    return int(learner.metrics()["parallel/nodes"])


def look_until(learner: Learner, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, learner.notices
        learner.supervise(0.05)


def soon(action: Callable[[], None]) -> threading.Thread:
    """Do something while segments are being played."""

    def later() -> None:
        time.sleep(0.1)
        action()

    thread = threading.Thread(target=later)
    thread.start()
    return thread


def right_while(learner: Learner, action: Callable[[], None]) -> bool:
    thread = soon(action)
    right = learner.epoch_is_right()
    thread.join()
    return right
