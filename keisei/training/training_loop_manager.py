"""TrainingLoopManager: `run` is the whole training loop on one screen.

Input: a trainer, the run's directory, listeners. Output: metrics, evaluations and checkpoints, until all
moves are played. What is saved is always the state between two epochs, so that a resumed run continues bit
for bit; an interrupted epoch is played again.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from keisei.core.self_play import GameResult, Played
from keisei.runs.checkpoint import (
    CheckpointError,
    best_checkpoint,
    checkpoint_steps,
    mark_best,
    prune_checkpoints,
    save_checkpoint,
    spread_steps,
)
from keisei.runs.run_directory import RunDirectory
from keisei.training.collector import Collector, make_collector
from keisei.training.interrupt import Interrupted, StopRequest
from keisei.training.listener import Listener, Listeners, RunFacts, Update
from keisei.training.metrics import worker_metrics
from keisei.training.parallel.supervisor import WorkerError
from keisei.training.ranks import RankError
from keisei.training.trainer import Trainer, game_metrics
from keisei.training.training_evaluation import TrainingEvaluator

# Interruption, a full disk or closed pipe, weights too large for their format, failing workers, lost ranks.
SAVED_FIRST = (Interrupted, OSError, OverflowError, WorkerError, RankError)
LEAST_RATING = -10_000.0  # for a network that has lost every game: JSON cannot express minus infinity


class TrainingLoopManager:
    """The training loop: collect, learn, evaluate, record and save, in this order.

    collector: plays the games; if None, new games as the trainer's config says. directory: where checkpoints
    and evaluations go; None for neither. listeners: started, updated and closed by `run`. stop: checked
    often. last_update: None before the first. saved_step: of the last checkpoint that was written.
    last_evaluation: its step and metrics.

        TrainingLoopManager(Trainer(config), listeners=[PlainConsole(sys.stdout)]).run()
    """

    def __init__(
        self,
        trainer: Trainer,
        collector: Collector | None = None,
        directory: RunDirectory | None = None,
        *,
        listeners: Sequence[Listener] = (),
        stop: StopRequest | None = None,
    ) -> None:
        self.trainer = trainer
        self.config = trainer.config
        self.last_update: Update | None = None
        self.saved_step: int | None = None
        self.last_evaluation: tuple[int, Mapping[str, float]] | None = None
        self._listeners = Listeners(*listeners)
        self._collector = collector or make_collector(
            self.config, trainer.agent, notice=self._listeners.notice
        )
        self._directory = directory
        self._stop = stop or StopRequest()
        self._strength: TrainingEvaluator | None = None
        if directory is not None:
            self._strength = TrainingEvaluator(
                self.config, directory.path, directory.checkpoints, self._listeners, self._should_stop
            )
        self._between_epochs = trainer.snapshot(self._collector.save_games())
        self._began = time.monotonic()
        self._first_step = trainer.steps

    @property
    def is_saved(self) -> bool:
        """Whether a checkpoint has the state between the last two epochs, which is all that is ever saved."""
        return self.saved_step == self._between_epochs.step

    def run(self) -> None:
        """Train until all moves are played or the time is up; the last epoch has the final evaluation."""
        trainer, evaluation, run = self.trainer, self.config.evaluation, self.config.run
        with self._collecting() as collector:
            last = trainer.progress >= 1  # however short the time is, one epoch fits in
            trainer.clock.lap()
            while not last:
                before, best_before = trainer.steps, trainer.best
                steps = trainer.steps_of_next_epoch()
                played = collector.collect_experiences(steps, before_wait=self._stop.check)
                finished = [result for one in played for result in one.results]
                segments = [one.segment for one in played]
                learned = trainer.perform_update(
                    segments, before_minibatch=self._look, exchange=collector.exchange
                )
                metrics = {**learned, **game_metrics(finished)}
                trainer.games += len(finished)
                collector.synchronize_models()
                last = collector.agree(self._is_finished())
                if last and evaluation.final_games:
                    metrics |= self._evaluate(evaluation.final_games)
                elif crossed(before, trainer.steps, evaluation.every):
                    metrics |= self._evaluate(evaluation.games)
                self._record(metrics, finished, played)
                improved = trainer.best != best_before
                if last or improved or crossed(before, trainer.steps, run.checkpoint_every):
                    self._save(must=last)

    @contextmanager
    def _collecting(self) -> Iterator[Collector]:
        """Run the listeners and the collector inside; save before they close if the run ends early."""
        with _afterwards(self._listeners.close), _afterwards(self._close_collector):
            try:
                self._listeners.start(self._facts())
                self._collector.start_workers(before_wait=self._stop.check)
                yield self._collector
            except SAVED_FIRST as error:
                self._save(must=True)
                if isinstance(error, RankError):
                    self._stop.check()  # a signal to all ranks: another one has left first
                raise

    def _close_collector(self) -> None:
        account = self._collector.close(self.trainer.steps - self._first_step)
        if account is not None:
            self._listeners.notice(account)

    def _facts(self) -> RunFacts:
        agent, config = self.trainer.agent, self.config
        return RunFacts(
            run_path=None if self._directory is None else str(self._directory.path),
            total_steps=config.training.total_timesteps,
            start_step=self.trainer.steps,
            parameters=agent.parameters,
            device=f"{agent.device}, {torch.get_num_threads()} threads, {agent.numerics}",
            seed=config.run.seed,
            evaluate_every=config.evaluation.every if config.evaluation.opponents else 0,
        )

    def _is_finished(self) -> bool:
        training = self.config.training
        minutes = (time.monotonic() - self._began) / 60
        out_of_time = training.max_minutes is not None and minutes >= training.max_minutes
        return out_of_time or self.trainer.steps >= training.total_timesteps

    def _look(self) -> None:
        """Look up from long work: has a stop been requested, has a worker died?"""
        self._stop.check()
        self._collector.supervise()

    def _evaluate(self, games: int) -> Mapping[str, float]:
        """Play this many games against each opponent; the training's random streams are not touched.

        The best weights are those with the highest lower bound of the rating's 95 % interval, so that a few
        lucky games do not outdo many.
        """
        trainer = self.trainer
        if self._strength is None:
            return {}
        with trainer.clock("evaluation"):
            found = self._strength.measure(trainer.agent, trainer.steps, games, trainer.best)
            self._stop.check()
        if found.rating is not None and (trainer.best is None or found.rating.low > found.best_low):
            trainer.best = (trainer.steps, max(found.rating.low, LEAST_RATING))
        if found.metrics:
            self.last_evaluation = trainer.steps, found.metrics
        return found.metrics

    def _should_stop(self) -> bool:
        if not self._stop.requested:
            self._look()
        return self._stop.requested

    def _record(
        self, metrics: Mapping[str, float], finished: Sequence[GameResult], played: Sequence[Played]
    ) -> None:
        """Report an update to all listeners, with its speed and where its time went."""
        trainer, collector = self.trainer, self._collector
        steps = sum(len(one.segment) for one in played)
        saved_games, workers = tuple(collector.save_games()), tuple(collector.workers)
        self._between_epochs = trainer.snapshot(saved_games)
        seconds = trainer.clock.lap()
        total = sum(seconds.values())
        complete = {
            **metrics,
            "progress/updates": trainer.agent.version,
            "progress/games": trainer.games,
            "speed/steps_per_second": steps / total,
            "speed/games_per_second": metrics["games/finished"] / total,
            **{f"time/{phase}": value for phase, value in seconds.items()},
            **collector.checked_metrics(trainer.steps - self._first_step),
            **worker_metrics(workers),
        }
        self.last_update = Update(
            trainer.steps, complete, workers, tuple(finished), saved_games, tuple(played)
        )
        self._listeners.update(self.last_update)

    def _save(self, *, must: bool) -> None:
        """Sync the listeners and write a checkpoint, even if a listener fails.

        must: it is the last one, for which space was set aside.
        """
        if must and self._directory is not None:
            self._directory.free_reserve()
        with self.trainer.clock("checkpoint"):
            try:
                self._listeners.sync()
            finally:
                self._write_checkpoint(must=must)

    def _write_checkpoint(self, *, must: bool) -> None:
        """Write a checkpoint; a failure (a full disk) is reported, and raised only if it must succeed."""
        if self._directory is None:
            return
        parent, best = self._directory.checkpoints, self.trainer.best
        try:
            save_checkpoint(parent, self._between_epochs)
            self.saved_step = self._between_epochs.step
            marked = best_checkpoint(parent)
            if best is not None and best != marked and best[0] in checkpoint_steps(parent):
                mark_best(parent, *best)
                marked = best
            spare = spread_steps(checkpoint_steps(parent)) | (set() if marked is None else {marked[0]})
            prune_checkpoints(parent, self.config.run.keep_checkpoints, spare)
        except CheckpointError as error:
            if must:
                raise
            self._listeners.notice(f"{error}; the run continues and will retry at the next checkpoint")


@contextmanager
def _afterwards(action: Callable[[], None]) -> Iterator[None]:
    """Do this at the end; if it fails after a failure inside, that one is raised, with a note of this."""
    try:
        yield
    except BaseException as error:
        try:
            action()
        except OSError as another:
            error.add_note(f"and then: {another}")
        raise
    action()


def crossed(before: int, after: int, every: int) -> bool:
    """Return whether a multiple of `every` lies in (before, after]; never for 0.

    Not a modulo: steps advance in leaps, which may skip every multiple.
    """
    return every > 0 and after // every > before // every
