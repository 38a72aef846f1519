"""The number of workers for this machine, and the games they start with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keisei.config.schema import AppConfig
from keisei.core.device import cores
from keisei.core.self_play import SavedGames, SelfPlay

if TYPE_CHECKING:
    import torch

FEWEST_GAMES = 8  # per worker; below this, batches are too small for the network to be fast
OLDEST_WEIGHTS = 4  # updates; beyond this, PPO's ratio corrects less and less: assumption, not studied
_SHORTEST_SEGMENT = 16  # moves per game; `auto` adds no worker that would go below: assumption, not studied


def number_of_workers(config: AppConfig) -> int:
    """Return the number of workers for a config; `auto` is one per core, fewer if segments get too short."""
    training = config.training
    if training.parallel.num_workers != "auto":
        return training.parallel.num_workers
    longest = training.steps_per_epoch // (training.parallel.episodes_per_worker * _SHORTEST_SEGMENT)
    return max(1, min(cores(), longest))


def resolved(config: AppConfig, device: torch.device) -> AppConfig:
    """Return the config with every `auto` setting of the workers resolved for this machine.

    A GPU evaluates positions faster than all cores together, so with one the learner plays the games itself.
    """
    parallel = config.training.parallel
    decided: dict[str, Any] = {
        "enabled": device.type == "cpu" and cores() > 1 if parallel.enabled == "auto" else parallel.enabled
    }
    if decided["enabled"]:
        decided["num_workers"] = number_of_workers(config)
    training = config.training.model_copy(update={"parallel": parallel.model_copy(update=decided)})
    return config.model_copy(update={"training": training})


def costly_settings(config: AppConfig) -> list[str]:
    """Return a line for each setting that slows workers down or makes them play with old weights."""
    training, parallel = config.training, config.training.parallel
    lines = []
    # Weights are published after the first update by which model_sync_interval moves were collected.
    oldest = parallel.max_policy_lag + -(-parallel.model_sync_interval // training.steps_per_epoch) - 1
    if oldest > OLDEST_WEIGHTS:
        lines.append(
            f"workers play with weights up to {oldest} updates old (training.parallel.model_sync_interval is "
            f"{parallel.model_sync_interval}, max_policy_lag {parallel.max_policy_lag}); lower either for "
            "newer weights"
        )
    if parallel.episodes_per_worker < FEWEST_GAMES:
        lines.append(
            f"workers are slow with batches of {parallel.episodes_per_worker} (training.parallel."
            f"episodes_per_worker); {FEWEST_GAMES} games or more make better use of a core"
        )
    return lines


def begin_games(config: AppConfig, workers: int, first_number: int = 0) -> list[SavedGames]:
    """Begin games for workers; game numbers, and so random streams, form one sequence across workers."""
    games = config.training.parallel.episodes_per_worker
    return [
        SelfPlay.begin(
            config.env,
            games=games,
            seed=config.run.seed,
            first_number=first_number + worker * games,
            stride=workers * games,
        ).save()
        for worker in range(workers)
    ]
