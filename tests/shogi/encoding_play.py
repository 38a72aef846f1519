"""Shared by the encoding tests: positions of every kind, and their legal actions row by row."""

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from encoding_reference import ACTIONS
from reference import Position, parse_sfen

from keisei.shogi import START_SFEN, ShogiGame, encoding

Rows = npt.NDArray[np.uint8]


KINGS = "4k4/9/9/9/9/9/9/9/4K4 b - 1"


FULL_HAND = "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1"


FULL_HAND_OF_WHITE = "4k4/9/9/9/9/9/9/9/4K4 w 2r2b4g4s4n4l18p 1"


ENDGAME = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1"


ALL_PROMOTED = "1+P+L+N+S+B+R2/4K4/9/9/9/9/9/4k4/2+r+b+s+n+l+p1 b GSNL8Pgsnl8p 500"


IN_CHECK = "4k4/9/4+R4/9/9/9/9/3PPP3/3LKL3 w RB2G2S2N7Pb2g2s2n2l8p 77"


# A start, the maximum length, the number of random games, moves per game, and choices per move (None: all).
# With two choices, games go round in circles.
PLAYS: list[tuple[str, int | None, int, int, int | None]] = [
    (START_SFEN, 512, 6, 200, None),
    (START_SFEN, None, 3, 200, None),
    (FULL_HAND, 256, 6, 80, None),
    (FULL_HAND_OF_WHITE, 1, 1, 1, None),
    (FULL_HAND_OF_WHITE, 999_998, 6, 80, None),
    (ENDGAME, 300, 8, 100, None),
    (ALL_PROMOTED, 513, 8, 12, None),
    (ALL_PROMOTED, None, 8, 100, None),
    (IN_CHECK, 107, 20, 30, None),
    ("k8/9/9/9/9/9/9/9/8K b - 1", 512, 12, 100, 2),
    ("k8/9/9/9/9/9/9/9/8K w - 601", 700, 12, 100, 2),
    ("k8/9/9/9/9/9/9/9/8K w - 601", 512, 1, 1, 2),  # later than its maximum length
    ("k8/9/9/9/9/9/9/9/8K w - 1000000", None, 1, 1, 2),
    ("4k4/9/9/4+R4/9/9/9/9/4K4 w - 1", None, 12, 100, 2),
    ("4k4/9/9/9/4+r4/9/9/9/4K4 b - 1", 512, 12, 100, 2),
]


# Functions with an `out`, and one that fits eight rows.
OUTS: list[tuple[Callable[..., Any], tuple[int, ...], np.dtype[Any]]] = [
    (encoding.planes, (8, 46, 9, 9), np.dtype(np.float32)),
    (encoding.legal_mask, (8, ACTIONS), np.dtype(np.bool_)),
]


class Seen(NamedTuple):
    game: ShogiGame
    sfen: str
    earlier: int  # earlier occurrences, counted with the reference's positions

    @property
    def side(self) -> str:
        return str(self.game.turn)[0]


def play(seed: int, sfen: str, max_moves: int | None, plies: int, among: int | None) -> Iterator[Seen]:
    choose = random.Random(seed)
    game = ShogiGame(sfen, max_moves=max_moves, declaration="off")
    before: list[Position] = []
    while True:
        position, _ = parse_sfen(game.sfen())
        yield Seen(game.copy(), game.sfen(), before.count(position))
        before.append(position)
        moves = game.legal_moves()
        if not moves or len(before) > plies:
            return
        game.push(choose.choice(moves[:among]))


@cache
def positions() -> list[Seen]:
    """Return several thousand positions of every kind from random play."""
    found = [
        one
        for sfen, max_moves, games, plies, among in PLAYS
        for seed in range(games)
        for one in play(seed, sfen, max_moves, plies, among)
    ]
    assert len(found) > 5_000
    return found


def actions_of_each(rows: Rows, threads: int = 1) -> list[list[int]]:
    offsets, actions = encoding.legal_actions(rows, threads=threads)
    assert offsets.dtype == actions.dtype == np.int32
    assert (offsets[0], offsets[-1], offsets.shape) == (0, len(actions), (len(rows) + 1,))
    return [sorted(actions[a:b].tolist()) for a, b in pairwise(offsets.tolist())]
