"""End-to-end speed of training in one process: python bench/train.py --rounds 5

The contestants take turns, an epoch of 4,096 moves at a time: 64 games of 64 moves, minibatches of 256, one
pass.

network alone: the same epoch's network passes and nothing else: forward passes over 64 positions, and
    forward, backward and Adam over 256. The extra time that training takes is the share outside the network.
MaskablePPO: sb3-contrib's, with the same network and settings, and our own vector of games behind
    stable-baselines3's interface (pip install sb3-contrib). Its advantages are for a single player: it does
    the same work here, but would not learn the game.
"""

import statistics
import time
from collections.abc import Callable

import torch
from side_by_side import Contenders, report, rounds_from_arguments

from keisei.config.schema import AppConfig
from keisei.core.device import cores, keep_freed_memory
from keisei.core.models import model_factory
from keisei.core.self_play import SelfPlay
from keisei.training.trainer import Trainer

try:
    import peer_sb3
except ImportError:
    HAS_SB3 = False
else:
    HAS_SB3 = True

NETWORKS = {"3×32": (3, 32), "4×64": (4, 64)}


def config_of(network: str, threads: int) -> AppConfig:
    """Return the default config with this network, in the formats that are fast on CPUs."""
    blocks, channels = NETWORKS[network]
    return AppConfig.model_validate(
        {
            "model": {"blocks": blocks, "channels": channels},
            "training": {
                "total_timesteps": 10**9,
                "games": 64,
                "steps_per_epoch": 4096,
                "minibatch_size": 256,
            },
            "run": {"numerics": "float32+channels_last", "threads": threads},
        }
    )


def training(network: str, threads: int) -> Callable[[], float]:
    """Return a function that trains for an epoch and returns moves per second."""
    config = config_of(network, threads)
    trainer = Trainer(config, torch.device("cpu"))
    self_play = SelfPlay.begin(config.env, games=config.training.games, seed=config.run.seed)

    def epoch() -> float:
        torch.set_num_threads(threads)
        start = time.perf_counter()
        collected = self_play.rollout(trainer.agent, 64)
        trainer.perform_ppo_update([collected.segment])
        return 4096 / (time.perf_counter() - start)

    epoch()
    return epoch


def network_alone(network: str, threads: int) -> Callable[[], float]:
    """Return a function that runs one epoch's network passes and returns moves per second."""
    model = model_factory(config_of(network, threads).model).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    played, learned = (torch.rand(n, 46, 9, 9).to(memory_format=torch.channels_last) for n in (64, 256))

    def epoch() -> float:
        torch.set_num_threads(threads)
        start = time.perf_counter()
        with torch.inference_mode():
            for _ in range(64 + 1):  # one more for the values at the end
                model(played)
        for _ in range(4096 // 256):
            logits, values = model(learned)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward([logits, values], [torch.ones_like(logits), torch.ones_like(values)])
            optimizer.step()
        return 4096 / (time.perf_counter() - start)

    epoch()
    return epoch


def outside(network: str, threads: int, rounds: int) -> None:
    """Print the share of the time that training spends outside the network."""
    whole, alone = training(network, threads), network_alone(network, threads)
    shares = []
    for _ in range(rounds):
        speed_alone, speed = alone(), whole()
        shares.append(1 - speed / speed_alone)
    median = statistics.median(shares)
    print(f"  {network}, {threads} threads: {median:.1%} of the time outside the network", flush=True)


def main() -> None:
    """Print the contests."""
    rounds = rounds_from_arguments(__doc__)
    keep_freed_memory()  # as `keisei train` does; for all contestants
    many = cores()
    for network in NETWORKS:
        contenders: Contenders = {
            f"keisei, {many} threads": training(network, many),
            "keisei, 1 thread": training(network, 1),
            f"keisei's network alone, {many} threads": network_alone(network, many),
        }
        if HAS_SB3:
            contenders[f"MaskablePPO, {many} threads"] = peer_sb3.maskable_ppo(config_of(network, many), many)
        report(f"training end to end, {network}", "moves/s", contenders, rounds)
    print("\noutside the network")
    for network in NETWORKS:
        outside(network, many, rounds)


if __name__ == "__main__":
    main()
