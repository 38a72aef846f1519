"""The number of workers and learners for this machine, and the games they start with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keisei.config.schema import AppConfig, RanksConfig
from keisei.core.device import CPU, cores
from keisei.core.self_play import SavedGames, SelfPlay

if TYPE_CHECKING:
    import torch

FEWEST_ROWS = 32  # moves of a share; with fewer, what a step costs the learner alone weighs too much
FEWEST_GAMES = 8  # per worker; below this, batches are too small for the network to be fast
OLDEST_WEIGHTS = 4  # updates; beyond this, PPO's ratio corrects less and less: assumption, not studied
_SHORTEST_SEGMENT = 16  # moves per game; `auto` adds no worker that would go below: assumption, not studied


def number_of_workers(config: AppConfig, ranks: int = 1) -> int:
    """Return the number of workers for a config; `auto` is one per core, fewer if segments get too short.

    With a cluster, workers are sets of games that any node may play, and `auto` is as many as segments can be
    that are not too short: it must not depend on the nodes that are there. ranks: how many share an epoch,
    each with as many workers.
    """
    training = config.training
    if training.parallel.num_workers != "auto":
        return training.parallel.num_workers
    longest = training.steps_per_epoch // (ranks * training.parallel.episodes_per_worker * _SHORTEST_SEGMENT)
    return max(1, longest if training.parallel.cluster else min(cores(), longest))


def why_workers_cannot_learn(config: AppConfig, device: str) -> str:
    """Return why the learner computes all shares itself, "" if workers can help; device: the learner's."""
    if config.training.parallel.cluster:
        return "the workers are on other machines"
    if device != CPU:
        return f"it computes on {device}"
    if config.training.parallel.max_policy_lag:
        return f"workers play during an update (max_policy_lag {config.training.parallel.max_policy_lag})"
    return "only it has the compiled network" if "+compile" in config.run.numerics else ""


def number_of_learners(config: AppConfig, device: str, ranks: int = 1) -> int:
    """Return the number of shares of a rank's part of a minibatch, for a config with workers.

    `auto` is one for each core and worker, as long as shares have FEWEST_ROWS moves, if workers can learn.
    """
    training = config.training
    if training.learners != "auto":
        return training.learners
    if why_workers_cannot_learn(config, device):
        return 1
    most = training.minibatch_size // (ranks * FEWEST_ROWS)
    return max(1, min(cores(), number_of_workers(config, ranks), most))


def resolved(config: AppConfig, device: torch.device, ranks: int = 1) -> AppConfig:
    """Return the config with every `auto` setting of workers and learners resolved for this machine.

    A GPU evaluates positions faster than all cores together, so with one the learner plays the games itself,
    and learns alone. ranks: how many share an epoch; how they meet is not part of a run.
    """
    parallel = config.training.parallel
    decided: dict[str, Any] = {
        "enabled": bool(parallel.cluster) or (device.type == "cpu" and cores() > 1)
        if parallel.enabled == "auto"
        else parallel.enabled
    }
    learners = 1 if config.training.learners == "auto" else config.training.learners
    if decided["enabled"]:
        decided["num_workers"] = number_of_workers(config, ranks)
        learners = number_of_learners(config, device.type, ranks)
    changed = {
        "parallel": parallel.model_copy(update=decided),
        "learners": learners,
        "ranks": RanksConfig(),
    }
    return config.model_copy(update={"training": config.training.model_copy(update=changed)})


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


def begin_games(
    config: AppConfig, workers: int, first_number: int = 0, *, games: int | None = None
) -> list[SavedGames]:
    """Begin games for workers; game numbers, and so random streams, form one sequence across workers.

    games: of each worker; episodes_per_worker if None.
    """
    games = config.training.parallel.episodes_per_worker if games is None else games
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
