"""A run from beginning to end: directory, console, signals, loop, exit code. What `keisei train` calls.

0: all moves are played or the time is up. 1: something failed, and the last line says what. 128 + signal: it
was stopped, and goes on with --resume. A user's mistake is a UserError.
"""

import importlib.util
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np
import torch

from keisei.config.errors import ConfigError
from keisei.config.files import differences, load_config, override, refuse_unsafe, to_yaml
from keisei.config.schema import AppConfig
from keisei.core.device import choose_device, cores, keep_freed_memory
from keisei.core.ppo_agent import NotFiniteError
from keisei.core.self_play import SavedGames, SelfPlay, next_number
from keisei.runs.checkpoint import (
    Checkpoint,
    CheckpointError,
    checkpoint_path,
    checkpoint_steps,
    load_checkpoint,
    newest_checkpoint,
)
from keisei.runs.find import Found
from keisei.runs.run_directory import RunDirectory
from keisei.shogi import NotationError
from keisei.training.console import RunFacts, make_console
from keisei.training.interrupt import Interrupted, StopRequest
from keisei.training.metrics import WANDB_MODES, JsonlSink, Sink, TensorBoardSink, WandbSink
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.supervisor import WorkerError
from keisei.training.parallel.worker_setup import begin_games, number_of_workers, resolved
from keisei.training.trainer import Trainer, config_of, games_of
from keisei.training.training_loop_manager import TrainingLoopManager


def begin(config: AppConfig, command: Sequence[str]) -> int:
    """Train from nothing in a new directory; return the exit code."""
    _check_extras(config)
    device = choose_device(config.run.device)
    with _threads(config):
        config = resolved(config, device)
        trainer = Trainer(config, device)
        with RunDirectory.create(
            config, config_text=to_yaml(config), command=command, now=datetime.now()
        ) as directory:
            return _train(trainer, _new_games(config), directory, notices=[], resumed=False)


def resume(found: Found, source: str | None, overrides: Sequence[str], command: Sequence[str]) -> int:
    """Go on with a run, from the checkpoint that is named or else from its last; return the exit code.

    The config is the checkpoint's, changed by the overrides; or that of `source`, if one is given.
    """
    if found.run is None:
        raise CheckpointError(f"checkpoint {found.checkpoint} lies in no run: expected one of a run")
    with RunDirectory.open(found.run) as directory:
        checkpoint, notices = _checkpoint_of(found, directory)
        path = checkpoint_path(directory.checkpoints, checkpoint.step)
        old = _config_in(checkpoint, path, directory)
        config = override(old, overrides) if source is None else load_config(source, overrides)
        device = choose_device(config.run.device)
        config = resolved(config, device)
        changes = differences(old, config)
        refuse_unsafe(changes)
        _check_extras(config)
        now = datetime.now()
        with _threads(config):
            try:
                trainer = Trainer.from_snapshot(checkpoint, config, device)
                games = games_of(checkpoint)
                games_fit = _fit(config, games)
            except (ValueError, TypeError, KeyError, NotationError) as error:
                raise CheckpointError(f"checkpoint {path} cannot be continued: {error}") from error
            aside = directory.set_aside(checkpoint.step, now) if found.checkpoint is not None else None
            directory.note_resumption(config_text=to_yaml(config), command=command, now=now)
            notices += [f"changed: {change}" for change in changes]
            notices += [f"newer checkpoints are now in {aside}"] if aside else []
            if not games_fit:
                notices.append("the games under way do not fit the number of games now; new ones begin")
                # With new numbers, and so with other random numbers than those before.
                games = _new_games(config, next_number(games))
            return _train(trainer, games, directory, notices=notices, resumed=True)


def _checkpoint_of(found: Found, directory: RunDirectory) -> tuple[Checkpoint, list[str]]:
    """Return the checkpoint to go on from, and what is to be told about damaged ones."""
    if found.any_valid:
        return newest_checkpoint(directory.checkpoints)
    if found.checkpoint is not None:
        return load_checkpoint(found.checkpoint), []
    steps = checkpoint_steps(directory.checkpoints)
    if not steps:
        raise CheckpointError(f"run {found.run} has no checkpoint to go on from")
    return load_checkpoint(checkpoint_path(directory.checkpoints, steps[0])), []


def _config_in(checkpoint: Checkpoint, path: Path, directory: RunDirectory) -> AppConfig:
    """Return the config in a checkpoint, which must be one of this run."""
    try:
        config = config_of(checkpoint)
    except ValueError as error:  # of another version of the settings
        raise CheckpointError(f"checkpoint {path} has settings that are not known here: {error}") from error
    try:
        refuse_unsafe(differences(load_config(directory.config_file), config))
    except ConfigError as error:
        raise CheckpointError(f"checkpoint {path} is not of this run: {error}") from error
    return config


def _check_extras(config: AppConfig) -> None:
    wanted = [name for name in config.run.loggers if name in WANDB_MODES]
    if wanted and importlib.util.find_spec("wandb") is None:
        raise ConfigError(f"run.loggers: given {wanted[0]}, but it is missing: pip install 'keisei[wandb]'")


def _new_games(config: AppConfig, first_number: int = 0) -> list[SavedGames]:
    """Begin the games of the workers, or of the one process, that the config asks for."""
    if config.training.parallel.enabled:
        return begin_games(config, number_of_workers(config), first_number)
    games, seed = config.training.games, config.run.seed
    return [SelfPlay.begin(config.env, games=games, seed=seed, first_number=first_number).save()]


def _fit(config: AppConfig, games: Sequence[SavedGames]) -> bool:
    """Tell whether saved games are of as many processes, with as many games each, as the config asks for."""
    training = config.training
    expected = [training.games]
    if training.parallel.enabled:
        expected = [training.parallel.episodes_per_worker] * number_of_workers(config)
    return [len(SelfPlay.restore(saved, config.env)) for saved in games] == expected


def _train(
    trainer: Trainer,
    saved: Sequence[SavedGames],
    directory: RunDirectory,
    *,
    notices: Sequence[str],
    resumed: bool,
) -> int:
    """Run the loop to whatever end it comes to, say it in one line, and return the exit code.

    saved: the games to go on with.
    """
    config = trainer.config
    with ExitStack() as stack:
        console = make_console(config.run.console, sys.stdout)
        stack.callback(console.close)
        console.start(_facts(trainer, directory))
        for notice in notices:
            console.notice(notice)
        stop = stack.enter_context(
            StopRequest(
                lambda name: console.notice(f"{name}: saving; a second one leaves at once"), console.close
            )
        )
        sinks = _sinks(trainer, directory, resumed)
        for sink in sinks:
            stack.callback(sink.close)
        games: SelfPlay | ParallelManager
        if config.training.parallel.enabled:
            games = ParallelManager(config, trainer.agent, games=saved, notice=console.notice)
            stack.callback(games.shutdown)
        else:
            games = SelfPlay.restore(saved[0], config.env)
        loop = TrainingLoopManager(trainer, games, directory, sinks=sinks, console=console, stop=stop)
        code, end = _outcome(loop, games, stop, directory)
        loop.end_workers()
    if code == 1:
        print(f"keisei: {end}", file=sys.stderr)
    elif config.run.console != "off":
        print(end)
    return code


def _outcome(
    loop: TrainingLoopManager,
    games: SelfPlay | ParallelManager,
    stop: StopRequest,
    directory: RunDirectory,
) -> tuple[int, str]:
    """Run the loop; return the exit code and how it ended."""
    trainer = loop.trainer
    try:
        try:
            if isinstance(games, ParallelManager):
                games.start_workers(before_wait=stop.check)
            loop.run()
        except Interrupted as interruption:
            loop.save_between_epochs()
            return interruption.exit_code, f"{interruption}; go on: keisei train --resume {directory.path}"
        except (OSError, OverflowError, WorkerError) as error:  # a full disk, a closed pipe, weights, workers
            if isinstance(error, WorkerError):
                traceback.print_exception(error)
            loop.save_between_epochs()
            return 1, f"{error}; the run is saved: keisei train --resume {directory.path}"
    except NotFiniteError as error:
        dump = directory.path / "not_finite.npz"
        np.savez(dump, **{name: getattr(error.minibatch, name) for name in error.minibatch.__slots__})
        return 1, f"{error}; the minibatch is in {dump}"
    except CheckpointError as error:
        return 1, str(error)
    best = f"; the best evaluation was at {trainer.best[0]:,}" if trainer.best else ""
    return 0, f"trained on {trainer.steps:,} moves of {trainer.games:,} games, in {directory.path}{best}"


def _facts(trainer: Trainer, directory: RunDirectory) -> RunFacts:
    agent, config = trainer.agent, trainer.config
    return RunFacts(
        run_path=str(directory.path),
        total_steps=config.training.total_timesteps,
        start_step=trainer.steps,
        parameters=agent.parameters,
        device=f"{agent.device}, {torch.get_num_threads()} threads, {agent.numerics}",
        seed=config.run.seed,
    )


def _sinks(trainer: Trainer, directory: RunDirectory, resumed: bool) -> list[Sink]:
    run, resume_step = trainer.config.run, trainer.steps if resumed else None
    sinks: list[Sink] = [JsonlSink(directory.metrics_file, resume_step)]
    if "tensorboard" in run.loggers:
        sinks.append(TensorBoardSink(directory.tensorboard, resume_step))
    for name, mode in WANDB_MODES.items():
        if name in run.loggers:
            settings = trainer.config.model_dump(mode="json")
            sinks.append(WandbSink(directory.path, mode, directory.path.name, settings, resume_step))
    return sinks


@contextmanager
def _threads(config: AppConfig) -> Iterator[None]:
    """Let torch use so many threads inside, and memory again that it has used before."""
    keep_freed_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(config.run.threads or cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)
