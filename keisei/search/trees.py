"""SearchTrees: a PUCT tree for each of many games, over the native search; no networks and no clocks.

    trees = SearchTrees(games, c_puct=1.5, fpu=0.25, leaves=8, max_nodes=500_000)
    while not trees.finished(visits=800):
        leaves = trees.select(visits=800)          # the positions to evaluate
        if len(leaves):
            trees.expand(*evaluate(leaves))        # priors, values

Native work takes `threads` threads and does not hold the GIL. What becomes of a game's tree depends neither
on them nor on the other games.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keisei import _native
from keisei._native import Move
from keisei.shogi.encoding import MAX_LEGAL_ACTIONS, PLANES
from keisei.shogi.positions import Positions
from keisei.shogi.shogi_game import ShogiGame

NO_LIMIT = 2**31 - 1


class TreeLine(NamedTuple):
    """A move at the root; value: for the side to move there; mate: plies to a proven end, 0 if none is."""

    move: Move
    visits: int
    value: float
    prior: float
    mate: int
    pv: list[Move]


class SearchTrees(_native.SearchTrees):
    """The trees of games that are not over and have both kings; they are copied, with their histories."""

    def __init__(
        self,
        games: Sequence[ShogiGame],
        *,
        c_puct: float,
        fpu: float,
        leaves: int,
        max_nodes: int,
        threads: int = 1,
    ) -> None:
        super().__init__(
            list(games), c_puct=c_puct, fpu=fpu, leaves=leaves, max_nodes=max_nodes, threads=threads
        )
        rows = len(games) * leaves
        self._planes = np.empty((rows, PLANES, 9, 9), np.float32)
        self._offsets = np.empty(rows + 1, np.int32)
        self._actions = np.empty(rows * MAX_LEGAL_ACTIONS, np.int32)

    def select(self, *, visits: int = NO_LIMIT) -> Positions:
        """Return leaves of the trees whose roots have fewer visits; until `expand`, the same ones again.

        They are views, which the next `select` writes anew. There may be none although the search is not
        finished: all simulations ended at ends of the game.
        """
        count = self._select(visits, self._planes, self._offsets, self._actions)
        offsets = self._offsets[: count + 1]
        return Positions(self._planes[:count], offsets, self._actions[: offsets[-1]])

    def expand(self, priors: npt.NDArray[np.float32], values: npt.NDArray[np.float32]) -> None:
        """Take the evaluations of the selected leaves: priors [M] of their actions, values [N], -1 to 1.

        A wrong shape or number is a ValueError, and then the leaves still wait.
        """
        self._expand(priors, values)

    def answered(self) -> bool:
        """Return whether every root has been evaluated or proven."""
        return self._answered()

    def finished(self, *, visits: int = NO_LIMIT) -> bool:
        """Return whether every tree has so many visits at its root, or a proof, or no room."""
        return self._finished(visits)

    def result(self, index: int, multipv: int) -> tuple[list[TreeLine], int, int]:
        """Return of one tree the best moves, at most multipv, the visits of its root and its nodes."""
        lines, visits, nodes = self._result(index, multipv)
        return [TreeLine(*line) for line in lines], visits, nodes
