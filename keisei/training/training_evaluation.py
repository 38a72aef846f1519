"""The network's current strength: matches during training, and the rating computed from them.

    RUN/evaluation/results.sqlite, games/

The games use their own keyed random numbers, so training is the same with and without them. A rating at a
step uses the games of players up to that step, so that a resumed run rates like an uninterrupted one.
"""

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from keisei.config.schema import AppConfig
from keisei.core.device import cores
from keisei.core.network_policy import NetworkPolicy
from keisei.evaluation.matches.match_conditions import conditions_of
from keisei.evaluation.matches.match_result import MatchResult
from keisei.evaluation.matches.results_store import ResultsError
from keisei.evaluation.matches.tournament import Tournament
from keisei.evaluation.players.built_in import NetworkPlayer
from keisei.evaluation.players.player import Player
from keisei.evaluation.players.player_specs import (
    TEMPERATURE,
    Machine,
    checkpoint_player,
    make_player,
    network_identity,
    seed_of,
)
from keisei.evaluation.ratings.rating import Rating
from keisei.runs.checkpoint import CheckpointError, checkpoint_path
from keisei.runs.checkpoint_format import weights_sha256
from keisei.training.listener import Listener

BEST = "best"


@dataclass(frozen=True, slots=True)
class MeasuredStrength:
    """The result of an evaluation.

    rating: None if nothing was played. best_low: the lower bound of the rating of the best checkpoint so far,
    from the same games; minus infinity if there is none.
    """

    metrics: dict[str, float]
    rating: Rating | None
    best_low: float


class TrainingEvaluator:
    """The evaluations of one run.

    listener: gets the matches, and notices of what went wrong. should_stop: called between rounds of moves.
    """

    def __init__(
        self,
        config: AppConfig,
        run: Path,
        checkpoints: Path,
        listener: Listener,
        should_stop: Callable[[], bool],
    ) -> None:
        self._config = config
        self._run = run
        self._checkpoints = checkpoints
        self._listener = listener
        self._should_stop = should_stop
        self._conditions = conditions_of(config)

    def measure(
        self, agent: NetworkPolicy, step: int, games: int, best: tuple[int, float] | None
    ) -> MeasuredStrength:
        """Play this many games against each opponent, within the config's time limit, and rate.

        best: step and lower bound of the rating of the best checkpoint so far. If results cannot be stored (a
        full disk), that is reported and training continues without them.
        """
        try:
            with Tournament(self._run / "evaluation", self._conditions, self._config.run.seed) as tournament:
                player = self._player(agent, step)
                metrics = self._play(
                    tournament, player, agent, step, games, None if best is None else best[0]
                )
                ratings = tournament.ratings(up_to=step)
                rated = {} if ratings is None else {one.player: one for one in ratings.table}
        except (ResultsError, OSError) as error:
            self._listener.notice(f"{step:,} moves: the evaluation failed, training continues: {error}")
            return MeasuredStrength({}, None, -math.inf)
        if player.identity not in rated:
            return MeasuredStrength(metrics, None, -math.inf)
        rating = rated[player.identity]
        metrics["evaluation/rating"] = rating.elo
        metrics["evaluation/rating_low"] = rating.low
        metrics["evaluation/rating_high"] = rating.high
        return MeasuredStrength(metrics, rating, -math.inf if best is None else self._low(best, rated))

    def _play(
        self,
        tournament: Tournament,
        player: Player,
        agent: NetworkPolicy,
        step: int,
        games: int,
        best: int | None,
    ) -> dict[str, float]:
        """Play the matches, each within its share of the remaining time, and return their metrics."""
        evaluation = self._config.evaluation
        machine = Machine(self._config.run.threads or cores(), str(agent.device))
        opponents = self._opponents(machine, best)
        budget = evaluation.seconds * max(1.0, games / evaluation.games) or math.inf
        end = time.monotonic() + budget
        link_end = time.monotonic() + budget / (len(opponents) + 1)
        tournament.link(evaluation.opponents, evaluation.games, machine, self._until(link_end))
        metrics: dict[str, float] = {}
        for left, (name, opponent) in zip(range(len(opponents), 0, -1), opponents.items(), strict=True):
            if opponent.identity == player.identity:
                continue  # the best checkpoint, and nothing learned since
            share = time.monotonic() + (end - time.monotonic()) / left
            result = tournament.play(player, opponent, games, should_stop=self._until(share))
            self._listener.match(f"{step:,} moves: {result}")
            if result.stopped and not self._should_stop():
                self._listener.notice(
                    f"{step:,} moves: {result.games} of {games} games against {name}; "
                    f"evaluation.seconds allows {budget / len(opponents):.3g} s for them"
                )
            if result.games:
                metrics |= _match_metrics(name, result)
        return metrics

    def _low(self, best: tuple[int, float], rated: Mapping[str, Rating]) -> float:
        """Return the lower bound of the best checkpoint's rating: the current one, else the recorded one."""
        step, score = best
        weights = checkpoint_path(self._checkpoints, step) / "weights.safetensors"
        try:
            sha256 = hashlib.sha256(weights.read_bytes()).hexdigest()
        except OSError:
            return score
        identity = network_identity(sha256, TEMPERATURE)
        return rated[identity].low if identity in rated else score

    def _until(self, end: float) -> Callable[[], bool]:
        return lambda: self._should_stop() or time.monotonic() >= end

    def _player(self, agent: NetworkPolicy, step: int) -> NetworkPlayer:
        """Return the current network as a player, identified by its weights like a checkpoint."""
        sha256 = weights_sha256(agent.weights())
        identity = network_identity(sha256, TEMPERATURE)
        facts = {"step": str(step), "weights sha256": sha256}
        name, seed = f"{self._run.name}@{step}", seed_of(self._config.run.seed, identity)
        return NetworkPlayer(agent, name, seed, TEMPERATURE, identity=identity, facts=facts)

    def _opponents(self, machine: Machine, best: int | None) -> dict[str, Player]:
        """Return the available opponents by their names in the config."""
        found: dict[str, Player] = {}
        for name in self._config.evaluation.opponents:
            if name != BEST:
                found[name] = make_player(name, self._config.run.seed, machine)
            elif best is not None:
                try:
                    found[name] = self._best_player(best, machine)
                except CheckpointError as error:
                    self._listener.notice(f"the best checkpoint cannot play: {error}")
        return found

    def _best_player(self, best: int, machine: Machine) -> Player:
        path = checkpoint_path(self._checkpoints, best)
        return checkpoint_player(path, self._config.run.seed, machine=machine)


def _match_metrics(name: str, result: MatchResult) -> dict[str, float]:
    return {
        f"evaluation/{name}_score": result.score,
        f"evaluation/{name}_draws": result.draws / result.games,
        f"evaluation/{name}_length": result.mean_length,
    }
