"""Metrics like those of a run of a few minutes: a player that starts to win instead of drawing."""

import math
import random
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from keisei.shogi.vector import VectorGames
from keisei.training.listener import RunFacts
from keisei.training.metrics import worker_metrics
from keisei.training.parallel.worker_status import WorkerStatus

if TYPE_CHECKING:
    from keisei.core.self_play import SavedGames

STEPS = 4096
# Like a SavedGames, but without torch, which would take each console's process seconds to load.
GAMES = cast("SavedGames", SimpleNamespace(games=VectorGames(2, seed=1).save(), state={}))
UPDATES = 50
FACTS = RunFacts(
    run_path="runs/2026-05-01_120000",
    total_steps=STEPS * 100,
    start_step=0,
    parameters=84_321,
    device="cpu, 2 threads, float32, channels last",
    seed=7,
)

# Only with a cluster.
CLUSTER_METRICS = [
    f"parallel/{name}" for name in ("nodes", "node_workers", "nodes_behind", "broadcast_milliseconds")
]


def fake_metrics(update: int) -> Mapping[str, float]:
    """The metrics of an update, counted from 1; every tenth has an evaluation."""
    random_numbers = random.Random(update)
    done = update / 100
    finished = 20 + round(30 * done) + random_numbers.randrange(5)
    draws = round(finished * (0.74 - 0.6 * done))
    black = (finished - draws) // 2
    seconds = 2.0 + random_numbers.random() / 5
    metrics = {
        "loss/policy": -0.004 - 0.01 * random_numbers.random(),
        "loss/value": 0.21 - 0.12 * done + 0.02 * random_numbers.random(),
        "loss/total": 0.07 + 0.02 * random_numbers.random(),
        "policy/entropy": 4.1 - 1.9 * done + 0.05 * random_numbers.random(),
        "policy/approx_kl": 0.004 + 0.01 * random_numbers.random(),
        "policy/clip_fraction": 0.05 + 0.1 * random_numbers.random(),
        "search/kl": 0.25 - 0.1 * done,
        "search/agreement": 0.7 + 0.1 * done,
        "value/explained_variance": math.tanh(2 * done) - 0.05 * random_numbers.random(),
        "update/grad_norm": 0.8 + random_numbers.random(),
        "update/minibatches": 16.0,
        "update/skipped": 0.0,
        "update/early_stop": 0.0,
        "schedule/learning_rate": 1e-3 * (1 - 0.8 * done),
        "schedule/entropy_coef": 0.01,
        "schedule/material_reward": 0.003 * max(1 - done / 0.6, 0.0),
        "games/finished": float(finished),
        "games/length": 231.0 - 120 * done + 10 * random_numbers.random(),
        "games/black_wins": float(black),
        "games/white_wins": float(finished - draws - black),
        "games/draws": float(draws),
        "games/late_starts": 3.0,
        "games/by_checkmate": float(finished - draws - 1),
        "games/by_no_legal_move": 0.0,
        "games/by_repetition": 2.0,
        "games/by_perpetual_check": 0.0,
        "games/by_declaration": 1.0,
        "games/by_maximum_length": float(draws - 2),
        "speed/steps_per_second": STEPS / seconds,
        "speed/games_per_second": finished / seconds,
        "time/env": 0.06,
        "time/inference": 0.42,
        "time/sampling": 0.05,
        "time/encode": 0.08,
        "time/update": seconds - 0.7,
        "time/checkpoint": 0.02 if update % 20 == 0 else 0.0,
        "time/evaluation": 0.0,
        "time/other": 0.07,
        "progress/updates": float(update),
        "progress/games": 35.0 * update,
    }
    if update % 10 == 0:
        metrics["time/evaluation"] = 6.0
        for opponent, score in scores(done).items():
            metrics[f"evaluation/{opponent}_score"] = score
            metrics[f"evaluation/{opponent}_draws"] = 0.5 - 0.4 * done
            metrics[f"evaluation/{opponent}_length"] = 180.0 - 90 * done
        for end, margin in (("", 0.0), ("_low", -60.0), ("_high", 60.0)):
            metrics[f"evaluation/rating{end}"] = 100.0 + 1000 * done + margin
    return metrics


def scores(done: float) -> Mapping[str, float]:
    """The points against each opponent."""
    return {
        "random": 0.5 + 0.49 * done,
        "greedy": 0.02 + 0.6 * done,
        "alphabeta-1": 0.3 * done,
        "best": 0.55,
    }


def fake_workers(update: int, count: int) -> list[WorkerStatus]:
    """Workers after an update: all play except the last, which is being replaced for the second time."""
    return [
        WorkerStatus(
            worker=worker,
            state="playing" if worker < count - 1 else "restarting",
            incarnation=0 if worker < count - 1 else 2,
            pid=4000 + worker if worker < count - 1 else None,
            utilization=0.96 if worker < count - 1 else 0.25,
            steps=STEPS * update // count,
            games=35 * update // count,
            weights_version=update - 1,
            restarts=0 if worker < count - 1 else 2,
            memory_bytes=412_000_000 if worker < count - 1 else 0,
            last_error="" if worker < count - 1 else "MemoryError",
        )
        for worker in range(count)
    ]


def fake_parallel_metrics(update: int, workers: Sequence[WorkerStatus]) -> Mapping[str, float]:
    """The metrics of an update whose moves these workers played; some moves were lost."""
    metrics = dict(fake_metrics(update))
    playing = ("time/env", "time/inference", "time/sampling")
    metrics["time/collect"] = sum(metrics.pop(name) for name in playing)
    metrics["time/synchronize"] = 0.03
    metrics |= {"time/exchange": 0.0, "time/wait": 0.0}
    discarded = {
        "died": 256.0,
        "hung": 0.0,
        "failed": 0.0,
        "damaged": 0.0,
        "stale": 128.0,
        "reset": 0.0,
        "twice": 0.0,
    }
    trained, in_flight = float(STEPS * update), 512.0
    return metrics | {
        "parallel/active_workers": float(sum(status.state == "playing" for status in workers)),
        "parallel/serial_steps": 0.0,
        "parallel/restarts": 0.0,
        "parallel/utilization": sum(status.utilization for status in workers) / max(len(workers), 1),
        "parallel/queue_depth": 1.5,
        "parallel/lag_mean": 0.25,
        "parallel/lag_max": 1.0,
        "parallel/weights_version": float(update),
        "parallel/steps_generated": trained + in_flight + sum(discarded.values()),
        "parallel/steps_trained": trained,
        "parallel/steps_in_flight": in_flight,
        "parallel/steps_discarded": sum(discarded.values()),
        **{f"parallel/discarded_{reason}": count for reason, count in discarded.items()},
        "parallel/sync_count": float(update),
        "parallel/sync_bytes": 345_678.0,
        "parallel/sync_milliseconds": 4.2,
        "parallel/memory_bytes": float(sum(status.memory_bytes for status in workers)),
        "parallel/seconds_env": 0.21,
        "parallel/seconds_inference": 0.64,
        "parallel/seconds_sampling": 0.12,
        "parallel/seconds_transport": 0.03,
        "parallel/seconds_learning": 0.0,
        "parallel/shares_taken_over": 0.0,
        **dict.fromkeys(CLUSTER_METRICS, 0.0),
        **worker_metrics(workers),
    }
