"""Textbook Gumbel search: sequential halving at the root, without any of the tricks. Written to be read.

Danihelka et al., "Policy improvement by planning with Gumbel", 2022. Below the root it is PUCT.
"""

import math
from collections.abc import Mapping

from search_reference import Node, Reference

from keisei.search.puct import Evaluate
from keisei.shogi import Move, ShogiGame

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


class KeyedRandom:
    """splitmix64 from a key of (seed, game number, ply)."""

    def __init__(self, seed: int, number: int, ply: int) -> None:
        key = finished((seed + GOLDEN) & MASK)
        key = finished(key ^ (number * GOLDEN + GOLDEN) & MASK)
        self.state = finished(key ^ (ply * GOLDEN + GOLDEN) & MASK)
        self.first = (self.state >> 11) / 2**53

    def bits(self) -> int:
        self.state = (self.state + GOLDEN) & MASK
        return finished(self.state)

    def uniform(self) -> float:
        return (self.bits() >> 11) / 2**53

    def gumbel(self) -> float:
        return -math.log(-math.log(((self.bits() >> 12) + 0.5) / 2**52))


def finished(z: int) -> int:
    """Return splitmix64's last steps."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def rounds(candidates: int, simulations: int) -> list[int]:
    """Return how many visits the move that gets each simulation has had, of the moves considered then.

    Each round gives all considered moves the same number of visits, then half of them drop out, down to two.
    """
    found: list[int] = []
    had, number = 0, math.ceil(math.log2(candidates)) if candidates > 1 else 1
    while len(found) < simulations:
        each = max(1, simulations // (number * candidates))
        for visit in range(each):
            found += [had + visit] * candidates
        had += each
        candidates = max(min(2, candidates), candidates // 2)
    return found[:simulations]


class GumbelReference(Reference):
    """A search with a plan. noise: for each legal move; none if it is empty."""

    def __init__(
        self,
        game: ShogiGame,
        evaluate: Evaluate,
        *,
        candidates: int,
        simulations: int,
        noise: Mapping[Move, float] | None = None,
        c_visit: float = 50.0,
        c_scale: float = 0.5,
        repetition_draws: bool = False,
    ) -> None:
        super().__init__(game, evaluate, 1.5, 0.25, repetition_draws=repetition_draws)
        self.candidates, self.simulations = candidates, simulations
        self.noise = noise or dict.fromkeys(game.legal_moves(), 0.0)
        self.c_visit, self.c_scale = c_visit, c_scale
        self.own_value = 0.0
        self.forced: Move | None = None

    def search(self) -> None:
        """Evaluate the root, then give each visit to the best move that has had as many as it says."""
        if self.root.result is not None:
            return
        self.simulate()
        self.own_value = self.root.value_sum
        for had in rounds(min(self.candidates, len(self.root.priors), self.simulations), self.simulations):
            if self.root.result is not None:
                return
            equal = [move for move in self.root.priors if self.visits(move) == had]
            self.forced = max(equal or self.root.priors, key=self.score)
            self.simulate()
            self.forced = None

    def visits(self, move: Move) -> int:
        child = self.root.children.get(move)
        return child.visits if child else 0

    def best_move(self, node: Node) -> Move:
        if node is self.root and self.forced is not None:
            return self.forced
        return super().best_move(node)

    def value(self, move: Move) -> float | None:
        """Return a tried move's value for the side that makes it."""
        child = self.root.children.get(move)
        if child is None:
            return None
        if child.result in ("win", "loss"):
            return 1.0 if child.result == "loss" else -1.0
        return -child.value_sum / child.visits if child.visits else None

    def mixed(self) -> float:
        tried = {move: self.value(move) for move in self.root.priors if self.value(move) is not None}
        visits = sum(self.root.children[move].visits for move in tried)
        if not visits:
            return self.own_value
        weights = {move: max(self.root.priors[move], 1e-9) for move in tried}
        mean = sum(weights[move] * (value or 0.0) for move, value in tried.items()) / sum(weights.values())
        return (self.own_value + visits * mean) / (1 + visits)

    def scale(self) -> float:
        most = max((child.visits for child in self.root.children.values()), default=0)
        return (self.c_visit + most) * self.c_scale

    def score(self, move: Move) -> float:
        value = self.value(move)
        completed = self.mixed() if value is None else value
        prior = max(self.root.priors[move], 1e-9)
        return math.log(prior) + self.noise[move] + self.scale() * completed

    def gains(self) -> dict[Move, float]:
        mixed, scale = self.mixed(), self.scale()
        found = {}
        for move in self.root.priors:
            value = self.value(move)
            if value is not None:
                found[move] = max(-6.0, min(6.0, scale * (value - mixed)))
        return found
