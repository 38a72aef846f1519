"""TrainingLoopManager: the order of a training. `run` is the whole loop on one screen.

In: a trainer, the run's directory, who is told. Out: metrics, evaluations and checkpoints, until all moves
are played. What is saved is always the state between two epochs, so that a resumed run goes on to the bit; an
epoch that was interrupted is played again.
"""

import time
from collections.abc import Mapping, Sequence

from keisei.evaluation.match import make_opponent, play_match
from keisei.evaluation.players import NetworkPlayer
from keisei.training.checkpoint import (
    CheckpointError,
    best_checkpoint,
    checkpoint_steps,
    mark_best,
    prune_checkpoints,
    save_checkpoint,
)
from keisei.training.console import Console
from keisei.training.interrupt import StopRequest
from keisei.training.metrics import Sink
from keisei.training.rollout import Collected
from keisei.training.run_dir import RunDirectory
from keisei.training.trainer import Trainer, game_metrics


class TrainingLoopManager:
    """Collects, learns, evaluates, records and saves, in this order."""

    def __init__(
        self,
        trainer: Trainer,
        directory: RunDirectory,
        *,
        sinks: Sequence[Sink],
        console: Console,
        stop: StopRequest,
    ) -> None:
        self.trainer = trainer
        self.config = trainer.config
        self._directory = directory
        self._sinks = sinks
        self._console = console
        self._stop = stop
        self._between_epochs = trainer.snapshot()
        self._began = time.monotonic()

    def run(self) -> None:
        """Train until the moves are played or the time is up; the last epoch has the final evaluation."""
        trainer, evaluation, run = self.trainer, self.config.evaluation, self.config.run
        last = self._is_finished()
        trainer.clock.lap()
        while not last:
            before = trainer.steps
            collected = self._collect_serial_data()
            metrics = {
                **trainer.perform_ppo_update([collected.segment], before_minibatch=self._stop.check),
                **game_metrics(collected.finished),
            }
            trainer.games += len(collected.finished)
            last = self._is_finished()
            best_before = trainer.best
            if last and evaluation.final_games:
                metrics |= self._evaluate(evaluation.final_games)
            elif crossed(before, trainer.steps, evaluation.every):
                metrics |= self._evaluate(evaluation.games)
            self._between_epochs = trainer.snapshot()
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

    def _collect_serial_data(self) -> Collected:
        """Play an epoch's moves in this process."""
        steps = self.trainer.steps_of_next_epoch()
        return self.trainer.self_play.rollout(self.trainer.agent, steps, before_step=self._stop.check)

    def _evaluate(self, games: int) -> Mapping[str, float]:
        """Play a match against each opponent; the training's random streams are not touched.

        The best weights are those whose scores are surely high: by the mean of the lower ends of their 95 %
        intervals, so that few lucky games do not outdo many.
        """
        trainer, evaluation, seed = self.trainer, self.config.evaluation, self.config.run.seed
        metrics: dict[str, float] = {}
        sure_scores = []
        with trainer.clock("evaluation"):
            for name in evaluation.opponents:
                result = play_match(
                    NetworkPlayer(trainer.agent, "keisei", seed=seed, temperature=evaluation.temperature),
                    make_opponent(name, seed),
                    games=games,
                    random_plies=evaluation.random_plies,
                    max_moves=evaluation.max_moves,
                    declaration=self.config.env.declaration,
                    seed=seed,
                    should_stop=lambda: self._stop.requested,
                )
                self._stop.check()
                self._console.notice(f"{trainer.steps:,} moves: {result}")
                sure_scores.append(result.interval()[0])
                metrics[f"evaluation/{name}_score"] = result.score
                metrics[f"evaluation/{name}_draws"] = result.draws / result.games
                metrics[f"evaluation/{name}_length"] = result.mean_length
        if sure_scores:
            score = sum(sure_scores) / len(sure_scores)
            if trainer.best is None or score > trainer.best[1]:
                trainer.best = (trainer.steps, score)
        return metrics

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
        for sink in self._sinks:
            sink.record(trainer.steps, complete)
        self._console.update(trainer.steps, complete, lambda: str(trainer.self_play.games.game(0)))

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
