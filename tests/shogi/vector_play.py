"""Shared by the tests of the vector of games: starting positions, players, and all that a step writes."""

import zlib

import numpy as np
import numpy.typing as npt

from keisei.shogi import START_SFEN
from keisei.shogi.vector import Batch, VectorGames

Actions = npt.NDArray[np.int32]

# An even game, full hands, and few pieces with a check at hand: every kind of game and ending.
STARTS = [
    START_SFEN,
    "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1",
    "4k4/9/9/4+R4/9/9/9/9/4K4 w - 1",
    "3k5/9/9/4+R4/4+b4/9/9/9/4K4 b - 31",
    "4k4/9/4P4/9/9/9/9/9/4K4 b G 1",
    "+P+P+PK1+P+P+P+P/+P+P+P6/9/9/9/9/9/9/3k5 w RB8Prb 10",
    "5K3/9/9/9/9/9/9/6+p+p+p/+p+p+p+p1k+p+p+p b RBrb8p 10",
]


class RandomPlayers:
    """Choose among the legal actions: the same for the same seed and the same batches."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, batch: Batch) -> Actions:
        first, last = batch.offsets[:-1], batch.offsets[1:]
        where = first + (self._random.random(len(first)) * (last - first)).astype(np.int32)
        return batch.actions[where]


class HabitualPlayers(RandomPlayers):
    """Choose mostly the same move when a position recurs; such games soon repeat themselves."""

    def __call__(self, batch: Batch) -> Actions:
        actions = super().__call__(batch)
        for slot in np.flatnonzero(self._random.random(len(actions)) < 0.9).tolist():
            place = batch.packed[slot, 8:].copy()
            place[14] &= 1  # keep only the side to move
            legal = batch.legal(slot)
            actions[slot] = legal[zlib.crc32(place.tobytes()) % len(legal)]
        return actions


def arrays(batch: Batch) -> list[bytes]:
    """Return everything that a step has written."""
    assert batch.planes is not None
    assert batch.mask is not None
    legal = batch.actions[: batch.offsets[-1]]
    written = [batch.rewards, batch.ended, batch.packed, batch.offsets, legal, batch.planes, batch.mask]
    return [array.tobytes() for array in written]


def advance(games: VectorGames, batch: Batch, players: RandomPlayers, steps: int) -> list[object]:
    seen: list[object] = []
    for _ in range(steps):
        finished = games.step(players(batch), batch)
        seen += [
            arrays(batch),
            [(game.number, game.outcome, game.opening, game.start_sfen, game.moves) for game in finished],
        ]
    return seen
