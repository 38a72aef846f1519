"""python bench/env.py [--rounds 5]: steps per second of the vector of games and of other environments.

A step is a random legal move in one game: observation, legal actions, choice, move, the end-of-game checks
(mate, repetition, perpetual check, declaration, length) and, if needed, a restart. All contestants take turns
in every round; figures are medians, ratios are medians of the ratios within a round. Peers that are not
installed are named and skipped; bench/peers.py says what each of them does and decides.
"""

import functools
import os
import random
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from peers import PEERS, Peer
from side_by_side import Contenders, report, rounds_from_arguments

from keisei.envs import ShogiEnv, ShogiVectorEnv
from keisei.shogi import encoding
from keisei.shogi.vector import Batch, VectorGames

Actions = npt.NDArray[np.int32]

STEPS = 600_000
MAX_MOVES = 500


class RandomPlayers:
    """Players that choose uniformly among the legal actions of every game, in numpy without allocation."""

    def __init__(self, count: int) -> None:
        self._random = np.random.default_rng(1)
        self._draws = np.empty(count)
        self._where = np.empty(count, np.int64)
        self.chosen = np.empty(count, np.int32)

    def choose(self, offsets: Actions, actions: Actions) -> Actions:
        """Return one action for each game."""
        self._random.random(out=self._draws)
        np.subtract(offsets[1:], offsets[:-1], out=self._where)
        np.multiply(self._draws, self._where, out=self._where, casting="unsafe")
        np.add(self._where, offsets[:-1], out=self._where)
        return actions.take(self._where, out=self.chosen, mode="clip")


def keisei_games(count: int, threads: int = 1, *, planes: bool = True, mask: bool = False) -> float:
    """Return steps per second of VectorGames."""
    games = VectorGames(count, threads=threads, seed=1, max_moves=MAX_MOVES)
    batch, players = Batch.empty(count, planes=planes, mask=mask), RandomPlayers(count)
    games.observe(batch)
    start = time.perf_counter()
    for _ in range(STEPS // count):
        games.step(players.choose(batch.offsets, batch.actions), batch)
    return STEPS // count * count / (time.perf_counter() - start)


def gymnasium_vector(count: int, copy: bool) -> float:
    """Return steps per second of ShogiVectorEnv."""
    env, players = ShogiVectorEnv(count, copy=copy, max_moves=MAX_MOVES), RandomPlayers(count)
    env.reset(seed=1)
    start = time.perf_counter()
    for _ in range(STEPS // count):
        env.step(players.choose(*env.legal_actions()))
    return STEPS // count * count / (time.perf_counter() - start)


def gymnasium_single() -> float:
    """Return steps per second of ShogiEnv, with the dense mask in its info."""
    env, choose, steps = ShogiEnv(max_moves=MAX_MOVES), random.Random(1).random, 20_000
    _, info = env.reset(seed=1)
    start = time.perf_counter()
    for _ in range(steps):
        legal = np.flatnonzero(info["action_mask"].view(np.bool_))
        _, _, terminated, _, info = env.step(legal[int(choose() * len(legal))])
        if terminated:
            _, info = env.reset()
    return steps / (time.perf_counter() - start)


def encode(count: int, what: str) -> float:
    """Return packed positions per second turned into planes or legal actions."""
    games, batch, players = VectorGames(64, seed=1), Batch.empty(64, planes=False), RandomPlayers(64)
    games.observe(batch)
    rows = []
    for _ in range(count // 64):
        games.step(players.choose(batch.offsets, batch.actions), batch)
        rows.append(batch.packed.copy())
    packed = np.concatenate(rows)
    out = np.empty((len(packed), encoding.PLANES, 9, 9), np.float32)
    offsets, _ = encoding.legal_actions(packed)
    start = time.perf_counter()
    for _ in range(50):
        if what == "planes":
            encoding.planes(packed, out=out)
        else:
            encoding.legal_actions(packed, offsets=offsets)
    return 50 * len(packed) / (time.perf_counter() - start)


def resident_megabytes() -> float:
    """Return the memory used by this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def report_memory() -> None:
    """Play ten million steps and print the memory in use after the first million and at the end."""
    games = VectorGames(64, seed=1, max_moves=MAX_MOVES)
    batch, players = Batch.empty(64), RandomPlayers(64)
    games.observe(batch)
    sizes, legal = [], 0
    for step in range(1, 10_000_000 // 64 + 1):
        games.step(players.choose(batch.offsets, batch.actions), batch)
        legal += int(batch.offsets[-1])
        if step * 64 in (1_000_000, 10_000_000):
            sizes.append(resident_megabytes())
    print(f"\nmemory after 1 and 10 million steps: {sizes[0]:.1f} and {sizes[-1]:.1f} MB")
    actions = legal / (10_000_000 // 64 * 64)
    planes, mask = encoding.PLANES * 81 * 4, encoding.ACTIONS
    print(
        f"bytes per step: packed position {encoding.PACKED_BYTES}, planes {planes:,}, dense mask {mask:,}; "
        f"legal actions {4 * actions:.0f} ({actions:.1f} of them)"
    )


def peer_run(peer: Peer) -> float:
    """Return steps per second of a peer."""
    return peer.play(peer.steps, MAX_MOVES, 1)


def main() -> None:
    """Run all contests."""
    rounds = rounds_from_arguments(__doc__)
    against_peers: Contenders = {"keisei, 64 games, one thread, planes": lambda: keisei_games(64)}
    for name, peer in PEERS.items():
        if peer.installed():
            against_peers[name] = functools.partial(peer_run, peer)
        else:
            print(f"{name} is not installed: skipped (pip install {peer.install})")
    ours: Contenders = {
        "keisei, 64 games, one thread, planes": lambda: keisei_games(64),
        "keisei, the same, two threads": lambda: keisei_games(64, 2),
        "keisei, 64 games, packed only": lambda: keisei_games(64, planes=False),
        "keisei, 64 games, packed only, two threads": lambda: keisei_games(64, 2, planes=False),
        "keisei, 64 games, planes and dense mask": lambda: keisei_games(64, mask=True),
        "keisei, ShogiVectorEnv(64), copies": lambda: gymnasium_vector(64, True),
        "keisei, ShogiVectorEnv(64, copy=False)": lambda: gymnasium_vector(64, False),
        "keisei, ShogiEnv, dense mask": gymnasium_single,
    }
    many_games: Contenders = {
        "keisei, 256 games, one thread": lambda: keisei_games(256),
        "keisei, 256 games, two threads": lambda: keisei_games(256, 2),
    }
    batches: Contenders = {
        "keisei, planes of 1,024 packed positions": lambda: encode(1024, "planes"),
        "keisei, their legal actions, offsets given": lambda: encode(1024, "legal"),
    }
    report("random play, one thread", "steps/s", against_peers, rounds)
    for name, peer in PEERS.items():
        if name in against_peers:
            print(f"  {name}: {peer.output}; decides {peer.rules}")
    report("random play, our own interfaces", "steps/s", ours, rounds)
    report("random play, more games", "steps/s", many_games, rounds)
    report("packed positions decoded, one thread", "positions/s", batches, rounds)
    report_memory()


if __name__ == "__main__":
    main()
