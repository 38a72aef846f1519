"""What a run says at its end: why it ended, how strong it is, what is saved, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from keisei.config.schema import OWN_NETWORK_VARIABLE, AppConfig
from keisei.runs import durable
from keisei.runs.checkpoint import checkpoint_steps
from keisei.runs.run_directory import RunDirectory
from keisei.training.machine_limits import checkpoint_bytes
from keisei.training.metrics import OPPONENTS
from keisei.training.number_text import duration, elo

if TYPE_CHECKING:
    from keisei.training.training_loop_manager import TrainingLoopManager


def how_it_ended(loop: TrainingLoopManager, directory: RunDirectory, seconds: float) -> str:
    """Return what a run has done that was not disturbed, why it ended, and which checkpoint is its best."""
    all_played = f"all moves are played, after {duration(seconds)}"
    why = all_played if loop.trainer.progress >= 1 else f"{loop.config.training.max_minutes:g} minutes are up"
    return f"{_moves(loop)}, in {directory.path}: {why}{_best(loop, directory)}"


def what_was_done(loop: TrainingLoopManager, directory: RunDirectory, seconds: float) -> str:
    """Return what a run that was stopped has done so far, and which checkpoint is its best."""
    return f"{_moves(loop)} so far, stopped after {duration(seconds)}{_best(loop, directory)}"


def _moves(loop: TrainingLoopManager) -> str:
    return f"trained on {loop.trainer.steps:,} moves of {loop.trainer.games:,} games"


def _best(loop: TrainingLoopManager, directory: RunDirectory) -> str:
    best = loop.trainer.best
    return f"; the best evaluation was at {best[0]:,} ({directory.path}@best)" if best else ""


def strength(step: int, metrics: Mapping[str, float]) -> str:
    """Return the result of an evaluation in a line."""
    scores = {name: metrics.get(f"evaluation/{name}_score") for name in OPPONENTS}
    parts = []
    if "evaluation/rating" in metrics:
        parts.append(elo(*(metrics[f"evaluation/rating{end}"] for end in ("", "_low", "_high"))))
    parts += [f"{100 * score:.0f} % against {name}" for name, score in scores.items() if score is not None]
    return f"evaluated at {step:,} moves: {', '.join(parts)}"


def next_commands(directory: RunDirectory, config: AppConfig, step: int) -> list[str]:
    """Return the commands one may want after a run, a line each; none before it has learned anything."""
    if step == 0 or not checkpoint_steps(directory.checkpoints):
        return []
    run, trusted = shlex.quote(str(directory.path)), _trusted(config)
    commands = {
        f"{trusted}keisei play {run}": "a game against it",
        f"{trusted}keisei evaluate {run}": "how strong it is",
        f"keisei plot {run}": "its curves",
        resume_command(directory, config, step): "train on",
    }
    width = max(map(len, commands))
    return [f"  {command:{width}}  # {what}" for command, what in commands.items()]


def finished_already(directory: RunDirectory, config: AppConfig, step: int, *, at_step: bool = False) -> str:
    """Return what to tell who resumes a run that has played all its moves; at_step: from this checkpoint."""
    place = f"{directory.path}@{step}" if at_step else str(directory.path)
    return (
        f"run {place} is finished: {step:,} of {config.training.total_timesteps:,} moves are played"
        f"; train on with: {_resume(place, config, step)}"
    )


def resume_command(directory: RunDirectory, config: AppConfig, step: int) -> str:
    """Return the command that trains on; a run that is finished needs more moves."""
    return _resume(str(directory.path), config, step)


def _resume(place: str, config: AppConfig, step: int) -> str:
    total = config.training.total_timesteps
    more = f" training.total_timesteps={2 * total}" if step >= total else ""
    return f"{_trusted(config)}keisei train --resume {shlex.quote(place)}{more}"


def _trusted(config: AppConfig) -> str:
    """Return what stands before a command that loads a network of one's own, so that it is imported."""
    name = config.model.name
    return f"{OWN_NETWORK_VARIABLE}={shlex.quote(name)} " if ":" in name else ""


def what_failed(error: OSError, config: AppConfig, directory: RunDirectory) -> str:
    """Return what failed, with the file; if the disk is full, also what is free and what is needed."""
    text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    if not durable.is_full(error):
        return text
    free, needed = durable.free_bytes(directory.path), checkpoint_bytes(config)
    now = "nothing is known of the free space" if free is None else f"{durable.megabytes(free)} are free now"
    return f"{text} ({now}, {durable.megabytes(needed)} are needed to go on)"


def what_is_saved(loop: TrainingLoopManager, directory: RunDirectory) -> str:
    """Return what is left of a run that has failed, and how to resume it."""
    resume = f"resume with: {_trusted(loop.config)}keisei train --resume {shlex.quote(str(directory.path))}"
    if loop.is_saved:
        return f"the run is saved, {resume}"
    steps = checkpoint_steps(directory.checkpoints)
    if not steps:
        return "there is no checkpoint to resume from"
    return f"the newest checkpoint is of move {steps[0]:,}, {resume}"
