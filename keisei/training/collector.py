"""Collectors play the games of a run: in this process (SerialCollector) or in workers (ParallelManager).

Both share the playing code, and the loop does not know which one it uses; `make_collector` decides.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from keisei.config.schema import AppConfig
from keisei.core.device import cores
from keisei.core.exchange import Exchange
from keisei.core.learning_agent import LearningAgent
from keisei.core.self_play import Played, SavedGames, SelfPlay
from keisei.training.cluster.cluster_hands import cluster_hands
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.worker_setup import begin_games, number_of_workers, resolved
from keisei.training.parallel.worker_status import WorkerStatus


class Collector(Protocol):
    """A player of games with an agent's weights. Method names are those of ParallelManager."""

    def start_workers(self, *, before_wait: Callable[[], None] = ...) -> bool:
        """Get ready to play and return True; before_wait as for collect_experiences."""
        ...

    def collect_experiences(
        self, target_steps: int, *, before_wait: Callable[[], None] = ...
    ) -> Sequence[Played]:
        """Return at least target_steps moves; before_wait is called often, and what it raises stops play."""
        ...

    def synchronize_models(self) -> bool:
        """Publish the agent's weights if due; return whether the players have the current ones."""
        ...

    @property
    def exchange(self) -> Exchange | None:
        """Who computes the gradients of an update; None for the learner alone."""
        ...

    def agree(self, flag: bool) -> bool:
        """Return whether any process that trains this run says so."""
        ...

    def supervise(self) -> None:
        """Supervise the workers; call this now and then during long work."""

    def save_games(self) -> Sequence[SavedGames]:
        """Return the games as they were after the last collected moves."""
        ...

    @property
    def workers(self) -> Sequence[WorkerStatus]:
        """The current status of each worker; empty without workers."""
        ...

    def checked_metrics(self, trained: int) -> Mapping[str, float]:
        """Return the metrics since the last call; raise ConservationError if the counts disagree.

        trained: moves trained on since the start.
        """
        ...

    def get_statistics(self) -> Mapping[str, Any]:
        """Return all counts and measurements, even after the end; empty without workers."""
        ...

    def close(self, trained: int) -> str | None:
        """Stop playing; return one line accounting for every move, or None if none could be lost."""
        ...


class SerialCollector:
    """A collector that plays in this process, between updates."""

    def __init__(self, self_play: SelfPlay, agent: LearningAgent) -> None:
        self._self_play = self_play
        self._agent = agent

    def start_workers(self, *, before_wait: Callable[[], None] = lambda: None) -> bool:  # noqa: ARG002
        """Do nothing: there are no workers to start."""
        return True

    def collect_experiences(
        self, target_steps: int, *, before_wait: Callable[[], None] = lambda: None
    ) -> list[Played]:
        """Play the same number of moves in every game, enough to reach the target."""
        steps = -(-target_steps // len(self._self_play))
        return [
            self._self_play.rollout(self._agent, steps, before_step=before_wait, before_batch=before_wait)
        ]

    def synchronize_models(self) -> bool:
        """Do nothing: the agent itself plays, always with its current weights."""
        return True

    @property
    def exchange(self) -> None:
        """None: the learner alone."""

    def agree(self, flag: bool) -> bool:
        """Return the flag: there is only this process."""
        return flag

    def supervise(self) -> None:
        """Do nothing: there are no workers."""

    def save_games(self) -> list[SavedGames]:
        """Return the games as they stand."""
        return [self._self_play.save()]

    @property
    def workers(self) -> tuple[WorkerStatus, ...]:
        """None."""
        return ()

    def checked_metrics(self, trained: int) -> dict[str, float]:  # noqa: ARG002
        """Return nothing: every move played is trained on."""
        return {}

    def get_statistics(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def close(self, trained: int) -> None:
        """Do nothing."""


def make_collector(
    config: AppConfig,
    agent: LearningAgent,
    saved_games: Sequence[SavedGames] | None = None,
    *,
    notice: Callable[[str], None] = lambda _: None,
    log: Callable[[str], None] = lambda _: None,
    folder: Path | None = None,
) -> Collector:
    """Return the collector for a config, with saved games (see games_fit) or new ones.

    notice: gets one-line messages for the user. log: gets the workers' tracebacks. folder: for the log of a
    cluster.
    """
    config = resolved(config, agent.device)
    saved = new_games(config) if saved_games is None else saved_games
    parallel = config.training.parallel
    if parallel.enabled:
        hire = None if parallel.cluster is None else cluster_hands(parallel, folder)
        return ParallelManager(config, agent, games=saved, notice=notice, log=log, hire=hire)
    # A search walks a tree for each game; a move alone takes less time than to wake a thread.
    threads = (config.run.threads or cores()) if config.training.algorithm == "search" else 1
    return SerialCollector(SelfPlay.restore(saved[0], config.env, threads=threads), agent)


def players(config: AppConfig) -> tuple[int, int]:
    """Return how many processes play in a rank of a resolved config, and the games of each."""
    training = config.training
    if training.parallel.enabled:
        return number_of_workers(config), training.parallel.episodes_per_worker
    return 1, training.games


def new_games(config: AppConfig, first_number: int = 0, *, ranks: int = 1) -> list[SavedGames]:
    """Begin the games of a resolved config, for the players of all ranks."""
    processes, games = players(config)
    return begin_games(config, ranks * processes, first_number, games=games)


def games_fit(config: AppConfig, games: Sequence[SavedGames], *, ranks: int = 1) -> bool:
    """Return whether saved games match the config's number of processes and games per process."""
    processes, expected = players(config)
    return [len(SelfPlay.restore(saved, config.env)) for saved in games] == [expected] * processes * ranks
