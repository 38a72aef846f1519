"""python bench/env.py [--rounds 5]: steps per second of the vector of games and of other environments.

A step is a random legal move in one game: observation, legal actions, choice, move, the end-of-game checks
(mate, repetition, perpetual check, declaration, length) and, if needed, a restart. bench/peers.py has the
shogi environments of others; bench/vectorizers.py has what runs our own ShogiEnv in processes.
"""

import functools
import random
from contextlib import ExitStack

import command_line
import numpy as np
import numpy.typing as npt
import vectorizers
from contest import Contender, Contest, Stopwatch, TakeTurn, Turn, plain
from peers import PEERS, Peer
from settings import Peers, Scale

from keisei.envs import ShogiEnv, ShogiVectorEnv
from keisei.shogi import encoding
from keisei.shogi.vector import Batch, VectorGames

Actions = npt.NDArray[np.int32]

STEPS = 600_000
MAX_MOVES = 500


def contests(scale: Scale, peers: Peers) -> list[Contest]:
    """Return the contests of the environment."""
    steps = scale.of(STEPS, least=6_400)
    ours = functools.partial(keisei_games, steps)
    first = Contender("keisei, 64 games, 1 thread, planes", plain(lambda: ours(64)))
    others = [
        Contender(name, _peer(peer, scale), f"{peer.output}; decides {peer.rules}", peer.name)
        for name, peer in PEERS.items()
        if peers.has(peer.name)
    ]
    threads = scale.workers
    interfaces = [
        first,
        Contender(f"the same, {threads} threads", plain(lambda: ours(64, threads))),
        Contender("256 games, 1 thread", plain(lambda: ours(256))),
        Contender(f"256 games, {threads} threads", plain(lambda: ours(256, threads))),
        Contender("64 games, packed positions only", plain(lambda: ours(64, planes=False))),
        Contender("64 games, planes and a dense mask", plain(lambda: ours(64, mask=True))),
        Contender("ShogiVectorEnv(64)", plain(lambda: gymnasium_vector(steps // 4, True))),
        Contender("ShogiVectorEnv(64, copy=False)", plain(lambda: gymnasium_vector(steps // 4, False))),
        Contender("ShogiEnv, with its dense mask", plain(lambda: gymnasium_single(steps // 40))),
    ]
    in_processes = [
        Contender(
            f"keisei, 64 games, {threads} threads, dense mask", plain(lambda: ours(64, threads, mask=True))
        ),
        *vectorizers.contenders(scale, peers, "env"),
    ]
    decoding = [
        Contender("planes of packed positions", lambda _stack: _decoder("planes", scale)),
        Contender("their legal actions, offsets given", lambda _stack: _decoder("legal", scale)),
    ]
    return [
        Contest("env/peers", "random play, one thread", "steps/s", [first, *others]),
        Contest("env/interfaces", "random play, our own interfaces", "steps/s", interfaces),
        Contest(
            "env/processes", f"random play on {threads} cores, ShogiEnv in processes", "steps/s", in_processes
        ),
        Contest("env/decode", "packed positions decoded, one thread", "positions/s", decoding),
    ]


def _peer(peer: Peer, scale: Scale) -> "functools.partial[TakeTurn]":
    return functools.partial(_open_peer, peer, scale.of(peer.steps, least=32))


def _open_peer(peer: Peer, steps: int, _stack: ExitStack) -> TakeTurn:
    peer.play(32, MAX_MOVES, 1)  # imports and compiles
    return lambda: peer.play(steps, MAX_MOVES, 1)


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


def keisei_games(
    steps: int, count: int, threads: int = 1, *, planes: bool = True, mask: bool = False
) -> float:
    """Play with VectorGames and return the number of steps."""
    games = VectorGames(count, threads=threads, seed=1, max_moves=MAX_MOVES)
    batch, players = Batch.empty(count, planes=planes, mask=mask), RandomPlayers(count)
    games.observe(batch)
    for _ in range(steps // count):
        games.step(players.choose(batch.offsets, batch.actions), batch)
    return steps // count * count


def gymnasium_vector(steps: int, copy: bool) -> float:
    """Play with ShogiVectorEnv."""
    env, players = ShogiVectorEnv(64, copy=copy, max_moves=MAX_MOVES), RandomPlayers(64)
    env.reset(seed=1)
    for _ in range(steps // 64):
        env.step(players.choose(*env.legal_actions()))
    return steps // 64 * 64


def gymnasium_single(steps: int) -> float:
    """Play with ShogiEnv, with the dense mask in its info."""
    env, choose = ShogiEnv(max_moves=MAX_MOVES), random.Random(1).random
    _, info = env.reset(seed=1)
    for _ in range(steps):
        legal = np.flatnonzero(info["action_mask"].view(np.bool_))
        _, _, terminated, _, info = env.step(legal[int(choose() * len(legal))])
        if terminated:
            _, info = env.reset()
    return steps


def _decoder(what: str, scale: Scale) -> TakeTurn:
    """Return a turn that decodes the same 1,024 packed positions again and again."""
    games, batch, players = VectorGames(64, seed=1), Batch.empty(64, planes=False), RandomPlayers(64)
    games.observe(batch)
    rows = []
    for _ in range(1024 // 64):
        games.step(players.choose(batch.offsets, batch.actions), batch)
        rows.append(batch.packed.copy())
    packed = np.concatenate(rows)
    out = np.empty((len(packed), encoding.PLANES, 9, 9), np.float32)
    offsets, _ = encoding.legal_actions(packed)
    times = scale.of(200)

    def turn() -> Turn:
        watch = Stopwatch()
        for _ in range(times):
            if what == "planes":
                encoding.planes(packed, out=out)
            else:
                encoding.legal_actions(packed, offsets=offsets)
        return watch.turn(times * len(packed))

    return turn


if __name__ == "__main__":
    command_line.main({"env": contests}, __doc__)
