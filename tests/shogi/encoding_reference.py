"""The network's input and output, written to be read and checked against its description, not to be fast.

All from the mover's point of view: the board is rotated for White. Row 0 is the far edge, column 0 the left
one, and a network square is row * 9 + column. Moves are USI texts and sides "b" and "w", as in
reference.py; an action is the number of a move, a label the number of an output of the policy head.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from reference import in_check, other, owned_by, parse_sfen, square_name, square_named

BOARD_KINDS = ["P", "L", "N", "S", "G", "B", "R", "K", "+P", "+L", "+N", "+S", "+B", "+R"]
HAND_MAXIMUM = {"P": 18, "L": 4, "N": 4, "S": 4, "G": 4, "B": 2, "R": 2}
DROP_KINDS = list(HAND_MAXIMUM)
NO_LIMIT = 999_999
FIRST_DROP = 12_960
ACTIONS = 13_527
NO_LABEL = -1

# The direction of a move as (rows, columns), in the order of the label planes; the jumps are the knight's.
LINES = [(-1, 0), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (1, -1), (1, 1)]
JUMPS = [(-2, -1), (-2, 1)]


def network_square(side: str, square: tuple[int, int]) -> int:
    """Return the number of a square (file, rank) as this side sees it."""
    file, rank = square if side == "b" else (10 - square[0], 10 - square[1])
    row, column = rank - 1, 9 - file
    return row * 9 + column


SQUARE_NAMES = {
    side: {
        network_square(side, (file, rank)): square_name((file, rank))
        for file in range(1, 10)
        for rank in range(1, 10)
    }
    for side in "bw"
}

# ------------------------------------------------------------------------ planes


def planes(sfen: str, max_moves: int | None, earlier: int) -> npt.NDArray[np.float32]:
    """Return the 46 planes of a position that has occurred `earlier` times before in its game."""
    position, number = parse_sfen(sfen)
    mover = position.side
    board_planes = [owned_by(side, kind) for side in (mover, other(mover)) for kind in BOARD_KINDS]
    hand_planes = [(owned_by(side, kind), kind) for side in (mover, other(mover)) for kind in DROP_KINDS]
    seen = np.zeros((46, 81), np.float64)
    for square, piece in position.board.items():
        seen[board_planes.index(piece), network_square(mover, square)] = 1
    for plane, (piece, kind) in enumerate(hand_planes, start=28):
        seen[plane] = position.hands[piece] / HAND_MAXIMUM[kind]
    seen[42] = mover == "b"
    seen[43] = (number - 1) / (NO_LIMIT if max_moves is None else max_moves)
    seen[44] = earlier / 3
    seen[45] = in_check(position, mover)
    return seen.reshape(46, 9, 9).astype(np.float32)


# ------------------------------------------------------------------------ actions


class Action(NamedTuple):
    """An action, with squares as the mover sees them: a board move has an origin, a drop a piece kind."""

    origin: int | None
    target: int
    promotes: bool = False
    dropped: str = ""

    def usi(self, side: str) -> str:
        names = SQUARE_NAMES[side]
        if self.origin is None:
            return f"{self.dropped}*{names[self.target]}"
        return names[self.origin] + names[self.target] + "+" * self.promotes


def every_action() -> Iterator[Action]:
    """Yield all actions in numerical order."""
    for origin in range(81):
        for target in range(81):
            if target != origin:
                yield Action(origin, target, promotes=False)
                yield Action(origin, target, promotes=True)
    for target in range(81):
        for kind in DROP_KINDS:
            yield Action(None, target, dropped=kind)


def action_of(usi: str, side: str) -> int:
    target = network_square(side, square_named(usi[2:4]))
    if usi[1] == "*":
        return FIRST_DROP + target * 7 + DROP_KINDS.index(usi[0])
    origin = network_square(side, square_named(usi[0:2]))
    return origin * 160 + (target - (target > origin)) * 2 + usi.endswith("+")


# ------------------------------------------------------------------------ labels


def label_of(action: Action) -> int:
    """Return plane * 81 + target, or NO_LABEL if no piece moves that way."""
    if action.origin is None:
        return (20 + DROP_KINDS.index(action.dropped)) * 81 + action.target
    rows = action.target // 9 - action.origin // 9
    columns = action.target % 9 - action.origin % 9
    length = max(abs(rows), abs(columns))
    if (rows, columns) in JUMPS:
        plane = 8 + JUMPS.index((rows, columns))
    elif rows in (0, length, -length) and columns in (0, length, -length):
        plane = LINES.index((rows // length, columns // length))
    else:
        return NO_LABEL
    return (plane + 10 * action.promotes) * 81 + action.target
