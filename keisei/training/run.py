"""A run from start to finish: directory, console, signals, loop, result. What `keisei train` calls.

Exit codes: 0: all moves are played or the time is up. 1: something failed, and the last line says what.
128 + signal: stopped, and can be continued with --resume. A user's mistake is a UserError.
"""

import importlib.util
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from keisei.config.config_errors import ConfigError
from keisei.config.files import differences, load_config, override, refuse_unsafe, to_yaml
from keisei.config.schema import AppConfig
from keisei.core.device import choose_device, cores, keep_freed_memory
from keisei.core.learning_agent import NotFiniteError
from keisei.core.models import require_named
from keisei.core.self_play import SavedGames, next_number
from keisei.errors import UserError, install_command
from keisei.runs.checkpoint import (
    Checkpoint,
    CheckpointError,
    checkpoint_path,
    load_checkpoint,
    newest_checkpoint,
    save_checkpoint,
)
from keisei.runs.find import LATEST, Found, checkpoint_of, find_run
from keisei.runs.run_directory import NEEDED_BYTES, RunDirectory, RunDirectoryError
from keisei.shogi import NotationError
from keisei.training.cluster.access import check_access
from keisei.training.collector import Collector, games_fit, make_collector, new_games
from keisei.training.console import make_console
from keisei.training.game_recorder import GameRecorder
from keisei.training.game_streams import GameStreams
from keisei.training.interrupt import Interrupted, StopRequest
from keisei.training.listener import Listener, Listeners
from keisei.training.live_view import LiveView
from keisei.training.log_file import LogFile
from keisei.training.machine_limits import check_machine, checkpoint_bytes
from keisei.training.metrics import WANDB_MODES, JsonlSink, TensorBoardSink, WandbSink
from keisei.training.parallel.parallel_manager import say
from keisei.training.parallel.supervisor import WorkerError
from keisei.training.parallel.worker_setup import resolved
from keisei.training.ranks import (
    ALONE,
    Ranks,
    RanksCollector,
    receive_checkpoint,
    send_checkpoint,
)
from keisei.training.run_end import (
    finished_already,
    how_it_ended,
    next_commands,
    resume_command,
    strength,
    what_failed,
    what_is_saved,
    what_was_done,
)
from keisei.training.trainer import Trainer, config_of, games_of, kernels_notice
from keisei.training.training_loop_manager import SAVED_FIRST, TrainingLoopManager


@dataclass(frozen=True)
class RunResult:
    """How a run ended, and its totals.

    exit_code, message: those of `keisei train`. steps, games, updates: since the start of the run. best: step
    and lower bound of the rating of the best evaluation. seconds: in this process. metrics: of the last
    update, empty if there was none. workers: ParallelManager.get_statistics(), empty without workers.
    """

    exit_code: int
    message: str
    directory: Path
    steps: int
    games: int
    updates: int
    best: tuple[int, float] | None
    seconds: float
    metrics: Mapping[str, float]
    workers: Mapping[str, Any]


def train(
    config: AppConfig | None = None,
    overrides: Sequence[str] = (),
    *,
    resume: str | Path | None = None,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Do what `keisei train` does: train in a new directory, or resume a run, and return the result.

        train(load_config("tiny"))
        train(resume="runs/first", overrides=["training.total_timesteps=4096"])

    config: the defaults if None. resume: as for `keisei train --resume`; the config is then the run's own.
    listeners: are told of every update, after the run's own; what they raise ends the run.
    Raises ConfigError, RunDirectoryError or CheckpointError.
    """
    if resume is None:
        return begin_run(override(config or load_config(), overrides), sys.argv, listeners=listeners)
    if config is not None:
        raise ConfigError("both a config and a run to resume are given, expected one; use overrides")
    found = find_run(str(resume), None, overrides)
    return resume_run(found, None, overrides, sys.argv, listeners=listeners)


def begin_run(
    config: AppConfig,
    command: Sequence[str],
    ranks: Ranks = ALONE,
    *,
    listeners: Sequence[Listener] = (),
    notices: Sequence[str] = (),
) -> RunResult:
    """Train from scratch in a new directory. ranks: those that learn together; this is the first of them.

    listeners: as for train. notices: what else the user should see at the beginning.
    """
    _check_extras(config)
    device = choose_device(config.run.device)
    with torch_threads(config):
        config = resolved(config, device, ranks.world_size)
        check_machine(config, device.type)
        trainer = Trainer(config, device)
        games = new_games(config, ranks=ranks.world_size)
        with (
            StopRequest() as stop,  # first: no signal leaves half a run
            RunDirectory.create(
                config,
                config_text=to_yaml(config),
                command=command,
                now=datetime.now(),
                needed_bytes=NEEDED_BYTES + checkpoint_bytes(config),
            ) as directory,
        ):
            try:
                return _train(
                    trainer, games, directory, ranks, stop, notices=notices, resumed=False, more=listeners
                )
            except UserError:  # a mistake that only the start of the run could show
                directory.remove_if_unsaved()
                raise


def follow_run(ranks: Ranks, own_network: str = "") -> RunResult:
    """Train as one of several ranks, with what the first one sends; only that one keeps a run.

    own_network: the import path that this rank's user has named, if any; the first rank's alone imports
    nothing here.
    """
    checkpoint = receive_checkpoint(ranks)
    config = config_of(checkpoint)
    if config.model.is_own and config.model.name != own_network:
        require_named(config.model.name)
    device = choose_device(config.run.device)
    check_machine(config, device.type)
    began = time.monotonic()
    with torch_threads(config), StopRequest() as stop:
        trainer = Trainer.from_snapshot(checkpoint, config, device)
        collector = _collector(trainer, games_of(checkpoint), ranks, notice=say, log=say)
        loop = TrainingLoopManager(trainer, collector, stop=stop)
        try:
            loop.run()
            code, end = 0, f"rank {ranks.rank} trained on {trainer.steps:,} moves"
        except Interrupted as interruption:
            code, end = interruption.exit_code, f"rank {ranks.rank}: {interruption}"
        except (*SAVED_FIRST, NotFiniteError) as error:
            code, end = 1, f"rank {ranks.rank}: {error}"
            print(f"keisei: {end}", file=sys.stderr)
    return _result(code, end, Path(), trainer, loop, collector, began)


def resume_run(
    found: Found,
    source: str | None,
    overrides: Sequence[str],
    command: Sequence[str],
    ranks: Ranks = ALONE,
    *,
    listeners: Sequence[Listener] = (),
    notices: Sequence[str] = (),
) -> RunResult:
    """Continue a run from the named checkpoint, or from its last one.

    The config is the checkpoint's, changed by the overrides; or that of `source`, if one is given. ranks,
    listeners, notices: as for begin_run.
    """
    if found.run is None:
        raise CheckpointError(f"checkpoint {found.checkpoint} is not in a run: expected one of a run")
    with RunDirectory.open(found.run) as directory:
        checkpoint, found_damaged = _checkpoint_of(found, directory)
        notices = [*notices, *found_damaged]
        path = checkpoint_path(directory.checkpoints, checkpoint.step)
        old = _config_in(checkpoint, path, directory)
        config = override(old, overrides) if source is None else load_config(source, overrides)
        if source is None and not any(change.startswith("model.name=") for change in overrides):
            _check_named(config, path)
        device = choose_device(config.run.device)
        config = resolved(config, device, ranks.world_size)
        changes = differences(old, config)
        refuse_unsafe(changes)
        _check_extras(config)
        check_machine(config, device.type)
        directory.check_room(checkpoint_bytes(config))
        now = datetime.now()
        if ranks.world_size == 1 and checkpoint.step >= config.training.total_timesteps:
            return _finished_already(checkpoint, config, directory, at_step=found.checkpoint is not None)
        with torch_threads(config), StopRequest() as stop:
            try:
                trainer = Trainer.from_snapshot(checkpoint, config, device)
                games = games_of(checkpoint)
                fit = games_fit(config, games, ranks=ranks.world_size)
            except (ValueError, TypeError, KeyError, NotationError) as error:
                raise CheckpointError(f"checkpoint {path} cannot be resumed: {error}") from error
            aside = directory.set_aside(checkpoint.step, now) if found.checkpoint is not None else None
            directory.note_resumption(config_text=to_yaml(config), command=command, now=now)
            notices += [f"changed: {change}" for change in changes]
            notices += kernels_notice(checkpoint, trainer)
            notices += [f"newer checkpoints moved to {aside}"] if aside else []
            if not fit:
                notices.append(
                    "the saved games do not match the configured number of games; starting new ones"
                )
                # With new game numbers, and so with new random streams.
                games = new_games(config, next_number(games), ranks=ranks.world_size)
            return _train(
                trainer, games, directory, ranks, stop, notices=notices, resumed=True, more=listeners
            )


def _finished_already(
    checkpoint: Checkpoint, config: AppConfig, directory: RunDirectory, *, at_step: bool
) -> RunResult:
    """Say that there is nothing left to do, and what to do about it."""
    end, state = finished_already(directory, config, checkpoint.step, at_step=at_step), checkpoint.state
    if config.run.console != "off":
        print(end)
    return RunResult(
        exit_code=0,
        message=end,
        directory=directory.path,
        steps=checkpoint.step,
        games=state["games"],
        updates=state["updates"],
        best=tuple(state["best"]) if state["best"] else None,
        seconds=0.0,
        metrics={},
        workers={},
    )


def _checkpoint_of(found: Found, directory: RunDirectory) -> tuple[Checkpoint, list[str]]:
    """Return the checkpoint to resume from, and notices about damaged ones."""
    if found.any_valid:
        return newest_checkpoint(directory.checkpoints)
    if found.checkpoint is not None:
        return load_checkpoint(found.checkpoint), []
    return load_checkpoint(checkpoint_of(directory.path, LATEST)), []


def _config_in(checkpoint: Checkpoint, path: Path, directory: RunDirectory) -> AppConfig:
    """Return the config in a checkpoint, which must belong to this run."""
    try:
        config = config_of(checkpoint)
    except ValueError as error:  # from another version of the settings
        raise CheckpointError(f"checkpoint {path} has unknown settings: {error}") from error
    try:
        refuse_unsafe(differences(load_config(directory.config_file), config))
    except ConfigError as error:
        raise CheckpointError(f"checkpoint {path} does not belong to this run: {error}") from error
    return config


def _check_named(config: AppConfig, path: Path) -> None:
    """CheckpointError if only the checkpoint names a network of somebody's own; it is not imported."""
    if config.model.is_own:
        try:
            require_named(config.model.name)
        except ConfigError as error:
            setting = f"or resume with model.name={config.model.name}"
            raise CheckpointError(f"checkpoint {path} cannot be resumed: {error}, {setting}") from error


def _check_extras(config: AppConfig) -> None:
    wanted = [name for name in config.run.loggers if name in WANDB_MODES]
    if wanted and importlib.util.find_spec("wandb") is None:
        raise ConfigError(f"run.loggers: {wanted[0]} is not installed: {install_command('wandb')}")
    parallel = config.training.parallel
    if parallel.cluster is not None and parallel.enabled:
        check_access(parallel.cluster, insecure=parallel.insecure)


def _train(
    trainer: Trainer,
    saved: Sequence[SavedGames],
    directory: RunDirectory,
    ranks: Ranks,
    stop: StopRequest,
    *,
    notices: Sequence[str],
    resumed: bool,
    more: Sequence[Listener],
) -> RunResult:
    """Run the loop, however it ends, and report the end in one line.

    saved: the games to continue, of all ranks. more: the caller's own listeners.
    """
    notices = [*notices, *_reserve_space(trainer.config, directory)]
    if ranks.world_size > 1:
        beginning = trainer.snapshot(saved)
        save_checkpoint(directory.checkpoints, beginning)  # what a restart goes on from
        send_checkpoint(ranks, beginning)
    config, log, began = trainer.config, LogFile(directory.log_file), time.monotonic()
    with ExitStack() as stack:
        console = make_console(config.run.console, sys.stdout)
        listeners = Listeners(log)
        stack.callback(listeners.close)
        stop.tell(
            lambda name: listeners.notice(f"{name}: saving; a second signal exits at once"), console.close
        )
        resume_step = trainer.steps if resumed else None
        for sink in _sinks(trainer, directory, resume_step):
            listeners.add(sink)
        if keep := config.run.keep_games:
            streams = GameStreams(config.env, saved)
            listeners.add(GameRecorder(directory.games, keep, streams, resume_step, listeners.notice))
        listeners.add(LiveView(directory.path, GameStreams(config.env, saved), listeners.notice))
        listeners.add(console)
        for listener in more:
            listeners.add(listener)
        for notice in notices:
            listeners.notice(notice)
        collector = _collector(
            trainer, saved, ranks, notice=listeners.notice, log=log.notice, folder=directory.path
        )
        loop = TrainingLoopManager(trainer, collector, directory, listeners=[listeners], stop=stop)
        code, end = _outcome(loop, directory, log, began)
    _write(log, end)
    if code == 1:
        print(f"keisei: {end}", file=sys.stderr)
    elif config.run.console != "off":
        done = [] if code == 0 else [what_was_done(loop, directory, time.monotonic() - began)]
        evaluated = [] if loop.last_evaluation is None else [strength(*loop.last_evaluation)]
        print(end, *done, *evaluated, *next_commands(directory, config, trainer.steps), sep="\n")
    return _result(code, end, directory.path, trainer, loop, collector, began)


def _reserve_space(config: AppConfig, directory: RunDirectory) -> list[str]:
    """Set aside the space of a checkpoint, so that a disk that fills up does not cost what was learned.

    Returns what to tell if it cannot.
    """
    try:
        directory.reserve_space(checkpoint_bytes(config))
    except RunDirectoryError as error:
        return [str(error)]
    return []


def _collector(
    trainer: Trainer,
    saved: Sequence[SavedGames],
    ranks: Ranks,
    *,
    notice: Callable[[str], None],
    log: Callable[[str], None],
    folder: Path | None = None,
) -> Collector:
    """Return what plays the games of this rank; with several ranks, what gathers those of all."""
    config, each = trainer.config, len(saved) // ranks.world_size
    own = saved[ranks.rank * each : (ranks.rank + 1) * each]
    if ranks.world_size == 1:
        return make_collector(config, trainer.agent, own, notice=notice, log=log, folder=folder)
    # Each collects its part of an epoch.
    steps = -(-config.training.steps_per_epoch // ranks.world_size)
    training = config.training.model_copy(update={"steps_per_epoch": steps})
    config = config.model_copy(update={"training": training})
    return RanksCollector(
        make_collector(config, trainer.agent, own, notice=notice, log=log, folder=folder),
        trainer.agent,
        ranks,
    )


def _result(
    code: int,
    end: str,
    directory: Path,
    trainer: Trainer,
    loop: TrainingLoopManager,
    collector: Collector,
    began: float,
) -> RunResult:
    return RunResult(
        exit_code=code,
        message=end,
        directory=directory,
        steps=trainer.steps,
        games=trainer.games,
        updates=trainer.agent.version,
        best=trainer.best,
        seconds=time.monotonic() - began,
        metrics={} if loop.last_update is None else loop.last_update.metrics,
        workers=collector.get_statistics(),
    )


def _outcome(
    loop: TrainingLoopManager, directory: RunDirectory, log: LogFile, began: float
) -> tuple[int, str]:
    """Run the loop; return the exit code and a line that says how it ended. began: the monotonic time."""
    try:
        loop.run()
    except Interrupted as interruption:
        resume = resume_command(directory, loop.config, loop.trainer.steps)
        return interruption.exit_code, f"{interruption}; resume with: {resume}"
    except NotFiniteError as error:
        dump = directory.path / "not_finite.npz"
        np.savez(dump, **{name: getattr(error.minibatch, name) for name in error.minibatch.__slots__})
        return 1, f"{error}; the minibatch is in {dump}"
    except CheckpointError as error:
        return 1, f"{error}; {what_is_saved(loop, directory)}"
    except SAVED_FIRST as error:
        if isinstance(error, WorkerError):
            traceback.print_exception(error)
        _write(log, traceback.format_exc())
        why = what_failed(error, loop.config, directory) if isinstance(error, OSError) else str(error)
        return 1, f"{why}; {what_is_saved(loop, directory)}"
    except BaseException:
        _write(log, traceback.format_exc())
        raise
    return 0, how_it_ended(loop, directory, time.monotonic() - began)


def _write(log: LogFile, text: str) -> None:
    """Log how a run ended; a log that cannot be written must not hide the reason."""
    with suppress(OSError):
        log.notice(text)


def _sinks(trainer: Trainer, directory: RunDirectory, resume_step: int | None) -> Iterator[Listener]:
    run = trainer.config.run
    yield JsonlSink(directory.metrics_file, resume_step)
    if "tensorboard" in run.loggers:
        yield TensorBoardSink(directory.tensorboard, resume_step)
    for name, mode in WANDB_MODES.items():
        if name in run.loggers:
            settings = trainer.config.model_dump(mode="json")
            yield WandbSink(directory.path, mode, directory.path.name, settings, resume_step)


@contextmanager
def torch_threads(config: AppConfig) -> Iterator[None]:
    """Set torch's thread count inside, and let it reuse freed memory."""
    keep_freed_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(config.run.threads or cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)
