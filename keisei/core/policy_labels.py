"""The 2,187 labels of a policy head of 27 planes × 81 destination squares, and the label of each action.

A label is plane * 81 + destination. Planes 0 to 9: the direction of a move on the board as its mover sees it
(up, up left, up right, left, right, down, down left, down right, knight's jump left, knight's jump right);
10 to 19: the same with promotion; 20 to 26: drops of P L N S G B R. Two legal moves in a position never share
a label: of two pieces on one line to a square, the nearer blocks the other, and a jump has only one origin.
"""

import numpy as np
import numpy.typing as npt

from keisei.shogi.encoding import ACTIONS

LABELS = 27 * 81
NO_LABEL = -1

# (rows, columns) of one step, by plane; row 0 is the mover's far rank.
_DIRECTIONS = [(-1, 0), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (1, -1), (1, 1)]
_JUMPS = [(-2, -1), (-2, 1)]


def _plane_of(rows: int, columns: int) -> int:
    """Return the plane of a move by these rows and columns, or NO_LABEL if no piece moves like that."""
    if (rows, columns) in _JUMPS:
        return len(_DIRECTIONS) + _JUMPS.index((rows, columns))
    if rows and columns and abs(rows) != abs(columns):
        return NO_LABEL
    return _DIRECTIONS.index((int(np.sign(rows)), int(np.sign(columns))))


def _make_labels() -> npt.NDArray[np.int16]:
    labels = []
    for origin in range(81):
        for to in (square for square in range(81) if square != origin):
            plane = _plane_of(to // 9 - origin // 9, to % 9 - origin % 9)
            labels += [NO_LABEL] * 2 if plane == NO_LABEL else [plane * 81 + to, (plane + 10) * 81 + to]
    labels += [(20 + piece) * 81 + to for to in range(81) for piece in range(7)]
    assert len(labels) == ACTIONS
    return np.array(labels, np.int16)


# int16 [13527]: the label of each action, NO_LABEL where no piece moves like that.
ACTION_LABELS = _make_labels()
ACTION_LABELS.flags.writeable = False
