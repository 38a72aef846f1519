"""TrainingLoopManager: the order of a training. `run` is the whole loop on one screen.

In: a trainer, the run's directory, who is told. Out: metrics, evaluations and checkpoints, until all moves
are played. What is saved is always the state between two epochs, so that a resumed run goes on to the bit; an
epoch that was interrupted is played again.
"""

import time
from collections.abc import Mapping, Sequence

from keisei.core.self_play import Played, SavedGames, SelfPlay
from keisei.runs.checkpoint import (
    CheckpointError,
    best_checkpoint,
    checkpoint_steps,
    mark_best,
    prune_checkpoints,
    save_checkpoint,
)
from keisei.runs.run_directory import RunDirectory
from keisei.shogi.vector import VectorGames
from keisei.training.console import Console
from keisei.training.interrupt import StopRequest
from keisei.training.metrics import Sink, worker_metrics
from keisei.training.parallel.ledger import ConservationError
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.worker_status import WorkerStatus
from keisei.training.trainer import Trainer, game_metrics
from keisei.training.training_evaluation import TrainingEvaluator

LEAST_RATING = -10_000.0  # for one that has lost everything: files have no word for minus infinity


class TrainingLoopManager:
    """Collects, learns, evaluates, records and saves, in this order.

    games: who plays, this process or workers, which the caller has started.
    """

    def __init__(
        self,
        trainer: Trainer,
        games: SelfPlay | ParallelManager,
        directory: RunDirectory,
        *,
        sinks: Sequence[Sink],
        console: Console,
        stop: StopRequest,
    ) -> None:
        self.trainer = trainer
        self.config = trainer.config
        self._games = games
        self._directory = directory
        self._sinks = sinks
        self._console = console
        self._stop = stop
        self._strength = TrainingEvaluator(
            self.config, directory.path, directory.checkpoints, console.notice, self._should_stop
        )
        self._between_epochs = trainer.snapshot(self._saved_games())
        self._began = time.monotonic()
        self._first_step = trainer.steps

    def run(self) -> None:
        """Train until the moves are played or the time is up; the last epoch has the final evaluation."""
        trainer, evaluation, run = self.trainer, self.config.evaluation, self.config.run
        last = self._is_finished()
        trainer.clock.lap()
        while not last:
            before = trainer.steps
            played = self._collect()
            results = [result for one in played for result in one.results]
            metrics = {
                **trainer.perform_ppo_update([one.segment for one in played], before_minibatch=self._look),
                **game_metrics(results),
            }
            trainer.games += len(results)
            self._publish_weights()
            last = self._is_finished()
            best_before = trainer.best
            if last and evaluation.final_games:
                metrics |= self._evaluate(evaluation.final_games)
            elif crossed(before, trainer.steps, evaluation.every):
                metrics |= self._evaluate(evaluation.games)
            self._between_epochs = trainer.snapshot(self._saved_games())
            self._record(metrics, trainer.steps - before)
            if last or trainer.best != best_before or crossed(before, trainer.steps, run.checkpoint_every):
                self._save(must=last)

    def save_between_epochs(self) -> None:
        """Write the state after the last whole epoch, for a run that is interrupted."""
        self._save(must=True)

    def _is_finished(self) -> bool:
        training = self.config.training
        minutes = (time.monotonic() - self._began) / 60
        out_of_time = training.max_minutes is not None and minutes >= training.max_minutes
        return out_of_time or self.trainer.steps >= training.total_timesteps

    def _collect(self) -> Sequence[Played]:
        """Play the moves of an epoch, here or in the workers."""
        if isinstance(self._games, ParallelManager):
            return self._collect_parallel_data(self._games)
        return self._collect_serial_data(self._games)

    def _collect_serial_data(self, self_play: SelfPlay) -> Sequence[Played]:
        steps = -(-self.trainer.steps_of_next_epoch() // len(self_play))
        return [self_play.rollout(self.trainer.agent, steps, before_step=self._look)]

    def _collect_parallel_data(self, workers: ParallelManager) -> Sequence[Played]:
        with self.trainer.clock("collect"):
            return workers.collect_experiences(
                self.trainer.steps_of_next_epoch(), before_wait=self._stop.check
            )

    def _publish_weights(self) -> None:
        """Let the workers have what was learned."""
        if isinstance(self._games, ParallelManager):
            with self.trainer.clock("synchronize"):
                self._games.synchronize_models()

    def _look(self) -> None:
        """Look up from long work: has somebody asked to stop, has a worker died?"""
        self._stop.check()
        if isinstance(self._games, ParallelManager):
            self._games.supervise()

    def _saved_games(self) -> Sequence[SavedGames]:
        """Return the games as they stand after the last whole epoch."""
        return self._games.save_games() if isinstance(self._games, ParallelManager) else [self._games.save()]

    def end_workers(self) -> None:
        """At the end, shut the workers down and tell where all the moves went that they made."""
        if isinstance(self._games, ParallelManager):
            untrained = self._games.account().trained - (self.trainer.steps - self._first_step)
            self._games.give_back(untrained)
            self._games.shutdown()
            self._console.notice(f"workers: {self._games.account()}")

    def _evaluate(self, games: int) -> Mapping[str, float]:
        """Play a match against each opponent; the training's random streams are not touched.

        The best weights are those whose rating is surely high: by the lower end of its 95 % interval, so that
        few lucky games do not outdo many.
        """
        trainer = self.trainer
        with trainer.clock("evaluation"):
            found = self._strength.measure(trainer.agent, trainer.steps, games, trainer.best)
            self._stop.check()
        if found.rating is not None and (trainer.best is None or found.rating.low > found.best_low):
            trainer.best = (trainer.steps, max(found.rating.low, LEAST_RATING))
        return found.metrics

    def _should_stop(self) -> bool:
        if not self._stop.requested:
            self._look()
        return self._stop.requested

    def _record(self, metrics: Mapping[str, float], steps: int) -> None:
        """Tell everybody about an update, with its speed and where its time went."""
        trainer, seconds = self.trainer, self.trainer.clock.lap()
        total = sum(seconds.values())
        complete = {
            **metrics,
            "progress/updates": trainer.agent.version,
            "progress/games": trainer.games,
            "speed/steps_per_second": steps / total,
            "speed/games_per_second": metrics["games/finished"] / total,
            **{f"time/{phase}": value for phase, value in seconds.items()},
        }
        workers: Sequence[WorkerStatus] = ()
        if isinstance(self._games, ParallelManager):
            workers = self._games.workers
            complete |= {**self._workers_metrics(self._games), **worker_metrics(workers)}
        for sink in self._sinks:
            sink.record(trainer.steps, complete)
        self._console.update(trainer.steps, complete, self._board, workers)

    def _workers_metrics(self, workers: ParallelManager) -> Mapping[str, float]:
        """Return the workers' metrics, having checked that no move was lost or counted twice."""
        metrics = workers.metrics()
        trained = self.trainer.steps - self._first_step
        if metrics["parallel/steps_trained"] != trained:
            raise ConservationError(f"{trained} moves were trained on, but: {workers.account()}")
        return metrics

    def _board(self) -> str:
        """Draw a game in progress."""
        return str(VectorGames.restore(self._saved_games()[0].games).game(0))

    def _save(self, *, must: bool) -> None:
        """Write a checkpoint; one that fails (a full disk) is told, and is an error only if it must be."""
        parent, best = self._directory.checkpoints, self.trainer.best
        with self.trainer.clock("checkpoint"):
            try:
                for sink in self._sinks:
                    sink.sync()
                save_checkpoint(parent, self._between_epochs)
                marked = best_checkpoint(parent)
                if best is not None and best != marked and best[0] in checkpoint_steps(parent):
                    mark_best(parent, *best)
                    marked = best
                spare = [] if marked is None else [marked[0]]
                prune_checkpoints(parent, self.config.run.keep_checkpoints, spare)
            except CheckpointError as error:
                if must:
                    raise
                self._console.notice(f"{error}; the run goes on, and tries again at the next checkpoint")


def crossed(before: int, after: int, every: int) -> bool:
    """Tell whether a multiple of `every` lies in (before, after]; never for 0.

    Not a modulo: steps go in leaps, which may miss every multiple.
    """
    return every > 0 and after // every > before // every
