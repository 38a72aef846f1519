"""SearchTrees: one PUCT tree per game, on top of the native search; no networks, no clocks.

    trees = SearchTrees(games, c_puct=1.5, fpu=0.25, leaves=8, max_nodes=500_000)
    while not trees.finished(visits=800):
        leaves = trees.select(visits=800)          # the positions to evaluate
        if len(leaves):
            trees.expand(*evaluate(leaves))        # priors, values

Native work runs on `threads` threads and releases the GIL. A game's tree depends neither on their number nor
on the other games.
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
    """A move at the root; value: for the side to move at the root; mate: plies to a proven end, or 0."""

    move: Move
    visits: int
    value: float
    prior: float
    mate: int
    pv: list[Move]


class Halving(NamedTuple):
    """Sequential halving at the root: so many candidates to begin with, and the search ends after `visits`.

    c_visit, c_scale: a difference d in value is worth d · (c_visit + most visits) · c_scale in logits.
    """

    candidates: int
    visits: int
    c_visit: float = 50.0
    c_scale: float = 0.5


class SearchTrees(_native.SearchTrees):
    """The trees of unfinished games with both kings; the games are copied, with their histories.

    halving: how the root's moves are chosen; PUCT if None, as everywhere below.
    """

    def __init__(
        self,
        games: Sequence[ShogiGame],
        *,
        c_puct: float,
        fpu: float,
        leaves: int,
        max_nodes: int,
        repetition_draws: bool = True,
        threads: int = 1,
        halving: Halving | None = None,
    ) -> None:
        halving = halving or Halving(0, 0)
        super().__init__(
            list(games),
            c_puct=c_puct,
            fpu=fpu,
            leaves=leaves,
            max_nodes=max_nodes,
            repetition_draws=repetition_draws,
            threads=threads,
            candidates=halving.candidates,
            planned_visits=halving.visits,
            c_visit=halving.c_visit,
            c_scale=halving.c_scale,
        )
        rows = len(games) * leaves
        self._planes = np.empty((rows, PLANES, 9, 9), np.float32)
        self._offsets = np.empty(rows + 1, np.int32)
        self._actions = np.empty(rows * MAX_LEGAL_ACTIONS, np.int32)

    def select(self, *, visits: int = NO_LIMIT) -> Positions:
        """Return leaves of the trees whose roots have fewer visits; until `expand`, the same ones again.

        They are views that the next `select` overwrites. There may be none before the search is finished, if
        every simulation reached the end of the game.
        """
        count = self._select(visits, self._planes, self._offsets, self._actions)
        offsets = self._offsets[: count + 1]
        return Positions(self._planes[:count], offsets, self._actions[: offsets[-1]])

    def expand(self, priors: npt.NDArray[np.float32], values: npt.NDArray[np.float32]) -> None:
        """Store the evaluations of the selected leaves: priors [M] of their actions, values [N], -1 to 1.

        A wrong shape or value is a ValueError; the leaves then stay pending.
        """
        self._expand(priors, values)

    def advance(self, index: int, moves: Sequence[Move]) -> bool:
        """Go on in a game after these moves, with what its tree knows of them.

        False, and no change, if that is nothing, or while leaves are pending. The new root has PUCT, without
        any plan for halving.
        """
        return self._advance(index, list(moves))

    def answered(self) -> bool:
        """Return whether every root has been evaluated or proven."""
        return self._answered()

    def finished(self, *, visits: int = NO_LIMIT) -> bool:
        """Return whether every tree has this many visits at its root, or is proven, or is full."""
        return self._finished(visits)

    def result(self, index: int, multipv: int) -> tuple[list[TreeLine], int, int]:
        """Return one tree's best moves (at most multipv), its root's visits and its number of nodes."""
        lines, visits, nodes = self._result(index, multipv)
        return [TreeLine(*line) for line in lines], visits, nodes
