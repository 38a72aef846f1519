"""Material: the worth of the pieces in packed positions, for reward shaping and for players."""

import numpy as np
import numpy.typing as npt

from keisei.core.segment import Segment
from keisei.shogi.encoding import PACKED, turns

# In pawns, from Japanese textbooks, by piece type in a packed board:
# none, P L N S G B R K, +P +L +N +S, none, +B +R. A piece in hand counts as unpromoted.
PIECE_VALUES = np.array([0, 1, 3, 4, 5, 6, 8, 10, 0, 7, 6, 6, 6, 0, 10, 12], np.int64)
_OF_BLACK = np.concatenate([PIECE_VALUES, -PIECE_VALUES]).astype(np.float32)  # a white piece has bit 4
_IN_HAND = PIECE_VALUES[1:8].astype(np.float32)


def material(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return the mover's material lead, in pawns: float32 [N] for packed [N, 104]."""
    parts = np.ascontiguousarray(packed).view(PACKED).reshape(len(packed))
    hands = parts["hands"].astype(np.float32) @ _IN_HAND
    black = _OF_BLACK[parts["board"]].sum(1) + hands[:, 0] - hands[:, 1]
    balance: npt.NDArray[np.float32] = np.where(turns(packed) == 0, black, -black)
    return balance


def leads_at_length(segment: Segment) -> npt.NDArray[np.float32]:
    """Return who is ahead where a game ended as a draw by its length: float32 [T, N], 0 elsewhere.

    tanh of a tenth of the lead in pawns, before the last move, for its mover.
    """
    shape = segment.shape
    flat = segment.packed.reshape(-1, shape.packed_bytes)
    parts = flat.view(PACKED).reshape(segment.ended.shape)
    at_length = segment.ended & (segment.rewards == 0) & (parts["ply"] + 1 >= parts["max_moves"])
    leads = np.zeros(segment.ended.shape, np.float32)
    if at_length.any():
        leads[at_length] = np.tanh(material(segment.packed[at_length]) / 10)
    return leads


def material_gains(segment: Segment) -> npt.NDArray[np.float32]:
    """Return each move's material gain for its mover, in pawns: float32 [T, N]; 0 if it ended its game."""
    shape = segment.shape
    before = material(segment.packed.reshape(-1, shape.packed_bytes)).reshape(shape.steps, shape.streams)
    after = np.concatenate([before[1:], material(segment.after)[None]])
    return np.where(segment.ended, 0, -after - before).astype(np.float32)
