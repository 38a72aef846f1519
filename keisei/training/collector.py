"""Who plays the games of a run: this process (SerialCollector) or workers (ParallelManager).

Both play with the same code, and the loop does not know which of them it talks to; `make_collector` decides.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from keisei.config.schema import AppConfig
from keisei.core.ppo_agent import PPOAgent
from keisei.core.self_play import Played, SavedGames, SelfPlay
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.worker_setup import begin_games, number_of_workers, resolved
from keisei.training.parallel.worker_status import WorkerStatus


class Collector(Protocol):
    """Plays with an agent's weights. The names are those of ParallelManager."""

    def start_workers(self, *, before_wait: Callable[[], None] = ...) -> object:
        """Get ready to play; before_wait as for collect_experiences."""

    def collect_experiences(
        self, target_steps: int, *, before_wait: Callable[[], None] = ...
    ) -> Sequence[Played]:
        """Return at least so many moves; before_wait is called often, and what it raises ends the playing."""
        ...

    def synchronize_models(self) -> bool:
        """Let whoever plays have the agent's weights, if they are due; tell whether they have them."""
        ...

    def supervise(self) -> None:
        """Look after the workers; to be called now and then during long work."""

    def save_games(self) -> Sequence[SavedGames]:
        """Return the games as they stood after the last moves that were collected."""
        ...

    @property
    def workers(self) -> Sequence[WorkerStatus]:
        """What is known of each worker now; empty without workers."""
        ...

    def checked_metrics(self, trained: int) -> Mapping[str, float]:
        """Return the metrics since the last call; ConservationError if other than `trained` moves were used.

        trained: the moves that were trained on since the start.
        """
        ...

    def get_statistics(self) -> Mapping[str, Any]:
        """Return everything that is counted and measured, also after the end; empty without workers."""
        ...

    def close(self, trained: int) -> str | None:
        """Stop playing; return a line that tells where every move went, if moves could have been lost."""
        ...


class SerialCollector:
    """Plays in this process, between the updates."""

    def __init__(self, self_play: SelfPlay, agent: PPOAgent) -> None:
        self._self_play = self_play
        self._agent = agent

    def start_workers(self, *, before_wait: Callable[[], None] = lambda: None) -> bool:  # noqa: ARG002
        """Do nothing: there are none."""
        return False

    def collect_experiences(
        self, target_steps: int, *, before_wait: Callable[[], None] = lambda: None
    ) -> list[Played]:
        """Play the same number of moves in every game, so many that the target is reached."""
        steps = -(-target_steps // len(self._self_play))
        return [self._self_play.rollout(self._agent, steps, before_step=before_wait)]

    def synchronize_models(self) -> bool:
        """Do nothing: the agent itself plays."""
        return True

    def supervise(self) -> None:
        """Do nothing: nobody else plays."""

    def save_games(self) -> list[SavedGames]:
        """Return the games as they stand."""
        return [self._self_play.save()]

    @property
    def workers(self) -> tuple[WorkerStatus, ...]:
        """None."""
        return ()

    def checked_metrics(self, trained: int) -> dict[str, float]:  # noqa: ARG002
        """Return none: what is played is trained on."""
        return {}

    def get_statistics(self) -> dict[str, Any]:
        """Return none."""
        return {}

    def close(self, trained: int) -> None:
        """Do nothing."""


def make_collector(
    config: AppConfig,
    agent: PPOAgent,
    saved_games: Sequence[SavedGames] | None = None,
    *,
    notice: Callable[[str], None] = lambda _: None,
    log: Callable[[str], None] = lambda _: None,
) -> Collector:
    """Return the collector that a config asks for, with saved games (see games_fit) or new ones.

    notice: is told, in one line, what a person should know. log: gets the tracebacks of workers.
    """
    config = resolved(config, agent.device)
    saved = new_games(config) if saved_games is None else saved_games
    if config.training.parallel.enabled:
        return ParallelManager(config, agent, games=saved, notice=notice, log=log)
    return SerialCollector(SelfPlay.restore(saved[0], config.env), agent)


def new_games(config: AppConfig, first_number: int = 0) -> list[SavedGames]:
    """Begin the games of the workers, or of the one process, that a resolved config asks for."""
    if config.training.parallel.enabled:
        return begin_games(config, number_of_workers(config), first_number)
    games, seed = config.training.games, config.run.seed
    return [SelfPlay.begin(config.env, games=games, seed=seed, first_number=first_number).save()]


def games_fit(config: AppConfig, games: Sequence[SavedGames]) -> bool:
    """Tell whether saved games are of as many processes, with as many games each, as the config asks for."""
    training = config.training
    expected = [training.games]
    if training.parallel.enabled:
        expected = [training.parallel.episodes_per_worker] * number_of_workers(config)
    return [len(SelfPlay.restore(saved, config.env)) for saved in games] == expected
