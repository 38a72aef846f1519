"""A run from beginning to end: directory, console, signals, loop, exit code. What `keisei train` calls."""

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np
import torch

from keisei.config_errors import ConfigError
from keisei.config_files import differences, load_config, override, refuse_unsafe, to_yaml
from keisei.config_schema import AppConfig
from keisei.core.ppo_agent import NotFiniteError
from keisei.training.checkpoint import CheckpointError, load_checkpoint, newest_checkpoint
from keisei.training.console import RunFacts, make_console
from keisei.training.device import choose_device, cores
from keisei.training.interrupt import Interrupted, StopRequest
from keisei.training.metrics import JsonlSink, Sink, TensorBoardSink, WandbSink
from keisei.training.run_dir import RunDirectory, RunDirectoryError, find_run
from keisei.training.trainer import Trainer, config_of
from keisei.training.training_loop_manager import TrainingLoopManager

# What a user can do wrong; anything else is a bug.
MISTAKES = (CheckpointError, RunDirectoryError)


def begin(config: AppConfig, command: Sequence[str]) -> int:
    """Train from nothing in a new directory; return the exit code."""
    device = _checked_device(config)
    with (
        RunDirectory.create(
            config, config_text=to_yaml(config), command=command, now=datetime.now()
        ) as directory,
        _threads(config),
    ):
        trainer = Trainer(config, device)
        return _train(trainer, directory, notices=[], resumed=False)


def resume(where: str, source: str | None, overrides: Sequence[str], command: Sequence[str]) -> int:
    """Go on with a run: `latest`, its directory, or one of its checkpoints. Return the exit code.

    The config is the checkpoint's, changed by the overrides; or that of `source`, if one is given.
    """
    base = load_config(source, overrides)
    found = find_run(where, Path(base.run.directory))
    with RunDirectory.open(found.path, command=command, now=datetime.now()) as directory:
        notices: list[str] = []
        if found.checkpoint is not None:
            checkpoint = load_checkpoint(found.checkpoint)
        else:
            checkpoint, notices = newest_checkpoint(directory.checkpoints)
        old = config_of(checkpoint)
        config = base if source is not None else override(old, overrides)
        changes = differences(old, config)
        refuse_unsafe(changes)
        notices += [f"changed: {change}" for change in changes]
        device = _checked_device(config)
        aside = directory.set_aside(checkpoint.step, datetime.now()) if found.checkpoint is not None else None
        notices += [f"newer checkpoints are now in {aside}"] if aside else []
        with _threads(config):
            trainer = Trainer.from_snapshot(checkpoint, config, device)
            return _train(trainer, directory, notices=notices, resumed=True)


def _checked_device(config: AppConfig) -> torch.device:
    """Return the device, after a look whether all that the config wants is here."""
    if config.run.wandb != "off" and importlib.util.find_spec("wandb") is None:
        raise ConfigError(
            f"run.wandb: given {config.run.wandb}, but it is missing: pip install 'keisei[wandb]'"
        )
    return choose_device(config.run.device)


def _train(trainer: Trainer, directory: RunDirectory, *, notices: Sequence[str], resumed: bool) -> int:
    run = trainer.config.run
    with ExitStack() as stack:
        console = make_console(run.console, sys.stdout)
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
        loop = TrainingLoopManager(trainer, directory, sinks=sinks, console=console, stop=stop)
        try:
            loop.run()
        except Interrupted as interruption:
            loop.save_between_epochs()
            console.notice(f"{interruption}; go on with: keisei train --resume {directory.path}")
            return interruption.exit_code
        except NotFiniteError as error:
            dump = directory.path / "not_finite.npz"
            np.savez(dump, **{name: getattr(error.minibatch, name) for name in error.minibatch.__slots__})
            console.notice(f"{error}; the minibatch is in {dump}")
            return 1
        except CheckpointError as error:
            console.notice(str(error))
            return 1
        best = f"; best evaluation at step {trainer.best[0]:,}" if trainer.best else ""
        console.notice(
            f"trained on {trainer.steps:,} moves of {trainer.games:,} games, in {directory.path}{best}"
        )
        return 0


def _facts(trainer: Trainer, directory: RunDirectory) -> RunFacts:
    agent, config = trainer.agent, trainer.config
    return RunFacts(
        run_path=str(directory.path),
        total_steps=config.training.total_timesteps,
        start_step=trainer.steps,
        parameters=sum(parameter.numel() for parameter in agent.network.parameters()),
        device=f"{agent.device}, {torch.get_num_threads()} threads, {agent.numerics}",
        seed=config.run.seed,
    )


def _sinks(trainer: Trainer, directory: RunDirectory, resumed: bool) -> list[Sink]:
    run, resume_step = trainer.config.run, trainer.steps if resumed else None
    sinks: list[Sink] = [JsonlSink(directory.metrics_file, resume_step)]
    if run.tensorboard:
        sinks.append(TensorBoardSink(directory.tensorboard, resume_step))
    if run.wandb != "off":
        settings = trainer.config.model_dump(mode="json")
        sinks.append(WandbSink(directory.path, run.wandb, directory.path.name, settings, resume_step))
    return sinks


@contextmanager
def _threads(config: AppConfig) -> Iterator[None]:
    """Let torch use so many threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(config.run.threads or cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)
