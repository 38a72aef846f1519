"""Perft in Python's words."""

from typing import Literal, overload

from keisei import _native
from keisei._native import Move


@overload
def perft(sfen: str, depth: int, *, divide: Literal[False] = False) -> int: ...
@overload
def perft(sfen: str, depth: int, *, divide: Literal[True]) -> dict[Move, int]: ...
def perft(sfen: str, depth: int, *, divide: bool = False) -> int | dict[Move, int]:
    """Return the number of move sequences of that length, or with `divide` the number behind each first move.

    Repetition, maximum length and declaration do not count here: only the moves do. Runs without the GIL;
    Ctrl-C stops it.
    """
    return _native.divide(sfen, depth) if divide else _native.perft(sfen, depth)
