"""Peers that bring a collector or a trainer of their own, as contenders.

Their modules (bench/peer_torchrl.py, bench/peer_sb3.py) are imported when a contender is opened: an import
may fail or hang too, and then it is that peer's row that says so.
"""

import functools
import importlib
from contextlib import ExitStack

from contest import Contender, TakeTurn
from settings import Peers, Scale

_GAMES = "our vector of games as its environment, dense masks"


def collectors(scale: Scale, peers: Peers) -> list[Contender]:
    """Return TorchRL's collectors, if it is installed."""
    if not peers.has("torchrl"):
        return []
    return [
        Contender(f"TorchRL {name}", functools.partial(_collecting, scale, workers), _GAMES, "torchrl")
        for name, workers in _torchrl_kinds(scale)
    ]


def trainers(scale: Scale, peers: Peers) -> list[Contender]:
    """Return MaskablePPO, and TorchRL's PPO with each of its collectors, as far as they are installed."""
    found = []
    if peers.has("sb3-contrib"):
        note = "our games in its process, dense masks, all threads"
        train = functools.partial(_maskable_ppo, scale)
        found.append(Contender("sb3-contrib MaskablePPO", train, note, "sb3-contrib"))
    if peers.has("torchrl"):
        for name, workers in _torchrl_kinds(scale):
            train = functools.partial(_torchrl_ppo, scale, workers)
            found.append(Contender(f"TorchRL PPO, {name}", train, _GAMES, "torchrl"))
    return found


def _torchrl_kinds(scale: Scale) -> list[tuple[str, int]]:
    many = scale.workers
    return [(f"MultiSyncCollector, {many} workers", many), (f"Collector, {many} threads", 0)]


def _collecting(scale: Scale, workers: int, stack: ExitStack) -> TakeTurn:
    turn: TakeTurn = importlib.import_module("peer_torchrl").open_collecting(scale, workers, stack)
    return turn


def _torchrl_ppo(scale: Scale, workers: int, stack: ExitStack) -> TakeTurn:
    turn: TakeTurn = importlib.import_module("peer_torchrl").open_training(scale, workers, stack)
    return turn


def _maskable_ppo(scale: Scale, stack: ExitStack) -> TakeTurn:
    turn: TakeTurn = importlib.import_module("peer_sb3").open_training(scale, stack)
    return turn
