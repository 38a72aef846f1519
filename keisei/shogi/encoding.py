"""Network input and output: packed positions, planes and action indices, from the mover's point of view.

Input is games, SFENs or packed positions, N at a time; output is numpy arrays, new or the caller's (`out`).
A packed position is 104 bytes: board, hands, side, ply, maximum length, check, and how often the position
has already occurred in its game; `PACKED` names the fields. docs/shogi.md lists planes and actions by index.
Work on packed positions is native, runs on `threads` threads and releases the GIL. A row that is not a valid
position raises a RulesError that names it; `out` is then undefined.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from keisei import _native
from keisei._native import ACTIONS, MAX_LEGAL_ACTIONS, PACKED_BYTES, PLANES, Move
from keisei.shogi.outcome import Color
from keisei.shogi.shogi_game import ShogiGame

__all__ = [
    "ACTIONS",
    "MAX_LEGAL_ACTIONS",
    "PACKED",
    "PACKED_BYTES",
    "PLANES",
    "action_of",
    "legal_actions",
    "legal_mask",
    "move_of",
    "pack",
    "pack_sfens",
    "planes",
    "plies",
    "turns",
    "unpack_sfens",
]

Packed = npt.NDArray[np.uint8]

# packed.view(PACKED)[:, 0]["ply"] and so on. Squares of the board run 1a, 1b, …, 1i, 2a, …, 9i.
# flags: bit 0 White to move, bit 1 in check, bits 2 and 3 earlier occurrences of the position.
PACKED = np.dtype(
    [
        ("ply", "<u4"),
        ("max_moves", "<u4"),
        ("hands", "u1", (2, 7)),
        ("flags", "u1"),
        ("board", "u1", (81,)),
    ]
)


def pack(games: Sequence[ShogiGame]) -> Packed:
    """Return the packed positions of games, uint8 [N, 104]; a game without both kings is a RulesError."""
    out = np.empty((len(games), PACKED_BYTES), np.uint8)
    _native.pack_games(list(games), out)
    return out


def pack_sfens(sfens: Sequence[str], *, max_moves: int | None = 512) -> Packed:
    """Return packed positions, uint8 [N, 104], with this maximum length and no earlier occurrences."""
    if isinstance(sfens, str):
        raise ValueError(f"sfens is the string {sfens!r}, expected a list of SFENs")
    out = np.empty((len(sfens), PACKED_BYTES), np.uint8)
    _native.pack_sfens(list(sfens), max_moves, out)
    return out


def unpack_sfens(packed: Packed, *, threads: int = 1) -> list[str]:
    """Return the SFEN of each packed position."""
    return _native.unpack_sfens(packed, threads)


def turns(packed: Packed) -> npt.NDArray[np.uint8]:
    """Return the side to move of each packed position, 0 Black, 1 White: uint8 [N]."""
    return _parts(packed)["flags"] & np.uint8(1)


def plies(packed: Packed) -> npt.NDArray[np.int64]:
    """Return the ply of each packed position: int64 [N]."""
    return _parts(packed)["ply"].astype(np.int64)


def _parts(packed: Packed) -> npt.NDArray[np.void]:
    return np.ascontiguousarray(packed).view(PACKED).reshape(len(packed))


def planes(
    packed: Packed, *, out: npt.NDArray[np.float32] | None = None, threads: int = 1
) -> npt.NDArray[np.float32]:
    """Return the core46 planes, float32 [N, 46, 9, 9]."""
    if out is None:
        out = np.empty((len(packed), PLANES, 9, 9), np.float32)
    _native.encode_planes(packed, out, threads)
    return out


def legal_actions(
    packed: Packed, *, offsets: npt.NDArray[np.int32] | None = None, threads: int = 1
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return int32 (offsets [N + 1], actions [offsets[N]]): row i has actions[offsets[i]:offsets[i + 1]].

    These depend on the position alone: a game may already be over by length or repetition.
    Passing offsets that are already known saves a third of the time.
    """
    if offsets is None:
        offsets = np.empty(len(packed) + 1, np.int32)
        _native.legal_offsets(packed, offsets, threads)
    actions = np.empty(int(offsets[-1]), np.int32)
    _native.legal_actions(packed, offsets, actions, threads)
    return offsets, actions


def legal_mask(
    packed: Packed, *, out: npt.NDArray[np.bool_] | None = None, threads: int = 1
) -> npt.NDArray[np.bool_]:
    """Return the legal actions as a dense mask, bool [N, 13527]; at 13 KB a row, for external APIs only."""
    if out is None:
        out = np.empty((len(packed), ACTIONS), np.bool_)
    _native.legal_mask(packed, out, threads)
    return out


def action_of(move: Move | str, turn: Color) -> int:
    """Return the index, 0 to 13526, of a move (or its USI text) by this side."""
    return _native.action_of(move, turn)


def move_of(action: int, turn: Color) -> Move:
    """Return the move that an index stands for when this side is to move."""
    return _native.move_of(action, turn)
