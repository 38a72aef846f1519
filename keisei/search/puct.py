"""Search at play time: PUCT with one tree per game, and the leaves of all games evaluated in one batch.

    search = Search([game], policy.evaluate)
    search.run(visits=800)
    best = search.result().lines[0]        # best.move, best.value, best.pv

The game's rules apply: mate, no legal move, repetition, perpetual check, maximum length; a side that can
declare a win by points after the other's move does so. At the root that is left to the caller, and a move is
searched. Wins and losses are proven where the tree shows them: a move that wins at once is always found, and
a proven loss is not preferred to another move. Needs no torch.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keisei.search.trees import NO_LIMIT, Halving, SearchTrees
from keisei.shogi import Move, ShogiGame
from keisei.shogi.positions import Positions

CANDIDATES = 16  # for SearchSettings.candidates; docs/log.md has the matches that chose it

# N positions with M legal actions -> priors float32 [M], values float32 [N]
Evaluate = Callable[[Positions], tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Settings of a search.

    c_puct: the weight of a prior against a value; it grows slowly with the visits, like AlphaZero's.
    fpu: an untried move gets its position's value, less fpu · √(sum of the priors tried).
    leaves: how many leaves each tree adds to a batch. More make larger batches, but a search less like one
        leaf at a time: 8 suits one game, 1 or 2 many games side by side.
    candidates: if above 0 and the number of visits is planned, the root's moves are chosen by sequential
        halving, which begins with so many; 0 is PUCT at the root too.
    repetition_draws: a position that has occurred before counts as a draw in the tree; otherwise only its
        fourth occurrence does.
    max_nodes: at this many nodes, about 1.1 KB each, a tree stops growing and its search ends.
    threads: how many threads walk the trees, at most one per game; the result does not depend on it.
    """

    c_puct: float = 0.8
    fpu: float = 0.25
    leaves: int = 8
    candidates: int = 0
    repetition_draws: bool = True
    max_nodes: int = 500_000
    threads: int = 1


DEFAULT_SETTINGS = SearchSettings()


@dataclass(frozen=True, slots=True)
class Line:
    """A move of the side to move at the root, and what the search found about it.

    value: for that side, -1 to 1; for an untried move, the position's own. pv: starts with the move.
    mate: plies to a proven end, 1 if this move wins at once, 3 for a mate in three, negative for a proven
        loss (a declaration counts as a ply); None if nothing is proven.
    """

    move: Move
    visits: int
    value: float
    prior: float
    pv: tuple[Move, ...]
    mate: int | None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best moves, best first, with the visits of the root and the nodes of the tree."""

    lines: tuple[Line, ...]
    visits: int
    nodes: int


class Search:
    """PUCT with one tree per game, and the leaves of all games evaluated in one batch.

    games: must not be over; they are copied, with their histories. A game's result depends only on that game,
    the settings and the evaluations of its own positions, not on the other games or on threads.
    planned_visits: at which the search ends, for settings.candidates.
    """

    def __init__(
        self,
        games: Sequence[ShogiGame],
        evaluate: Evaluate,
        *,
        settings: SearchSettings = DEFAULT_SETTINGS,
        planned_visits: int | None = None,
    ) -> None:
        self._evaluate = evaluate
        halving = None
        if settings.candidates and planned_visits is not None and planned_visits > 1:
            halving = Halving(settings.candidates, planned_visits)
        self._trees = SearchTrees(
            games,
            c_puct=settings.c_puct,
            fpu=settings.fpu,
            leaves=settings.leaves,
            max_nodes=settings.max_nodes,
            repetition_draws=settings.repetition_draws,
            threads=settings.threads,
            halving=halving,
        )

    def __len__(self) -> int:
        """Return the number of games."""
        return len(self._trees)

    def run(
        self,
        *,
        visits: int | None = None,
        seconds: float | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        """Search until every root has this many visits or a proof, or the time is up, or should_stop().

        Each root is evaluated first, whatever the limits; then should_stop is called before every batch.
        Call it again to continue, even after an exception from the evaluation.
        """
        if visits is None and seconds is None and should_stop is None:
            raise ValueError("no limit: expected visits, seconds or should_stop")
        if visits is not None and not 1 <= visits < NO_LIMIT:
            raise ValueError(f"visits is {visits}, expected 1 to {NO_LIMIT - 1}")
        if seconds is not None and not seconds >= 0:
            raise ValueError(f"seconds is {seconds}, expected 0 or more")
        wanted = NO_LIMIT if visits is None else visits
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        trees = self._trees
        while not trees.finished(visits=wanted):
            if trees.answered() and (
                time.monotonic() >= deadline or (should_stop is not None and should_stop())
            ):
                return
            leaves = trees.select(visits=wanted)
            if len(leaves):
                trees.expand(*self._evaluate(leaves))

    def advance(self, moves: Sequence[Move], index: int = 0) -> bool:
        """Go on after these moves of a game, with the part of the tree that is below them.

        Return False, and change nothing, if nothing is known there; then begin a new search.
        """
        return self._trees.advance(index, moves)

    def result(self, index: int = 0, multipv: int = 1) -> SearchResult:
        """Return the best moves of one game, at most `multipv`: proven wins, then the most visited.

        With halving at the root, the move that it chose comes first.
        """
        lines, visits, nodes = self._trees.result(index, multipv)
        return SearchResult(
            tuple(
                Line(line.move, line.visits, line.value, line.prior, tuple(line.pv), line.mate or None)
                for line in lines
            ),
            visits,
            nodes,
        )
