"""Perft: counts of legal move sequences, to check and time the move generator.

Repetition, maximum length and declaration are ignored.
"""

from collections.abc import Iterator
from typing import Literal, overload

from keisei import _native
from keisei._native import Move
from keisei.shogi.shogi_game import ShogiGame


@overload
def perft(sfen: str, depth: int, *, kings: str = "both", divide: Literal[False] = False) -> int: ...
@overload
def perft(sfen: str, depth: int, *, kings: str = "both", divide: Literal[True]) -> dict[Move, int]: ...
def perft(sfen: str, depth: int, *, kings: str = "both", divide: bool = False) -> int | dict[Move, int]:
    """Return the number of move sequences of this length, or with `divide` the number after each first move.

    kings: as for ShogiGame. Runs without the GIL; Ctrl-C stops it.
    """
    if divide:
        return dict(divided_perft(sfen, depth, kings=kings))
    return _native.perft(sfen, depth, kings=kings)


def divided_perft(sfen: str, depth: int, *, kings: str = "both") -> Iterator[tuple[Move, int]]:
    """Yield each first move with the number of sequences after it, as soon as that is known."""
    if depth < 1:
        raise ValueError(f"depth is {depth}, expected at least 1 to divide by first move")
    without_number = " ".join(ShogiGame(sfen, kings=kings).sfen().split()[:3])
    game = ShogiGame(without_number, max_moves=None, declaration="off", kings=kings)
    for move in game.legal_moves():
        game.push(move)
        count = _native.perft(game, depth - 1)
        game.pop()
        yield move, count
