"""SelfPlaySearch: the next move of many games, by a small search in some of them.

    search = SelfPlaySearch(64, SelfPlaySettings(share=0.25))
    search.begin(games)                              # a VectorGames
    while (positions := search.select()) is not None:
        search.expand(*policy.evaluate(positions))
    decided = Decided.empty(64, 8)
    search.decide(games, decided)
    games.step(decided.actions, batch)

A searched move has a Gumbel search at its root: sequential halving among a few candidates, PUCT below. The
others are samples of the policy, one evaluation each: if every move were searched, both sides would only
defend. A move that wins at once is always played. Everything random depends on (seed, game number, ply).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keisei import _native
from keisei.shogi.encoding import MAX_LEGAL_ACTIONS, PLANES
from keisei.shogi.positions import Positions
from keisei.shogi.vector import VectorGames


@dataclass(frozen=True, slots=True)
class SelfPlaySettings:
    """Settings of the search.

    share: of the moves that are searched. temperature: of the others; below 1, likelier moves are sampled.
    simulations: of a search, after the evaluation of its root. candidates: moves that it begins with.
    c_visit, c_scale: a difference d in value is worth d · (c_visit + most visits) · c_scale in logits.
    c_puct, fpu: as in SearchSettings, below the root. length_reward: the worth of a game of maximum length to
    a side that is far ahead, as training.length_reward says.
    """

    share: float = 0.25
    temperature: float = 1.0
    simulations: int = 16
    candidates: int = 8
    c_visit: float = 50.0
    c_scale: float = 0.5
    c_puct: float = 1.5
    fpu: float = 0.25
    length_reward: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """Moves for N games, in arrays of the caller.

    actions: int32 [N]. log_probs: float32 [N], of the actions by the network; 0 for a win at once.
    values: float32 [N], for the player to move, by the search where there was one.
    tried: int16 [N, candidates], the actions that the search tried, then -1; none without a search.
    gains: float32 [N, candidates], what the search would add to their logits, -6 to 6.
    surprise: float32 [N], the divergence of the policy with these gains from the policy without.
    """

    actions: npt.NDArray[np.int32]
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    surprise: npt.NDArray[np.float32]
    tried: npt.NDArray[np.int16]
    gains: npt.NDArray[np.float32]

    @classmethod
    def empty(cls, games: int, candidates: int) -> "Decided":
        """Return new arrays."""
        log_probs, values, surprise = (np.zeros(games, np.float32) for _ in range(3))
        tried = np.zeros((games, candidates), np.int16)
        gains = np.zeros((games, candidates), np.float32)
        return cls(np.zeros(games, np.int32), log_probs, values, surprise, tried, gains)


class SelfPlaySearch(_native.SelfPlaySearch):
    """A search for `games` games, for one set of weights: make a new one when they change.

    What the network said of the move played is used again at the next move. The trees are walked by `threads`
    threads, without the GIL.
    """

    def __init__(self, games: int, settings: SelfPlaySettings, *, threads: int = 1) -> None:
        super().__init__(
            games,
            share=settings.share,
            temperature=settings.temperature,
            simulations=settings.simulations,
            candidates=settings.candidates,
            c_visit=settings.c_visit,
            c_scale=settings.c_scale,
            c_puct=settings.c_puct,
            fpu=settings.fpu,
            length_reward=settings.length_reward,
            threads=threads,
        )
        self.settings = settings
        self._planes = np.empty((games, PLANES, 9, 9), np.float32)
        self._offsets = np.empty(games + 1, np.int32)
        self._actions = np.empty(games * MAX_LEGAL_ACTIONS, np.int32)

    def begin(self, games: VectorGames) -> None:
        """Begin to decide the next moves."""
        self._begin(games)

    def select(self) -> Positions | None:
        """Return positions to evaluate, at most one of each game, or None if everything is known.

        They are views that the next `select` overwrites; until `expand`, the same ones again.
        """
        count = self._select(self._planes, self._offsets, self._actions)
        offsets = self._offsets[: count + 1]
        return Positions(self._planes[:count], offsets, self._actions[: offsets[-1]]) if count else None

    def expand(self, priors: npt.NDArray[np.float32], values: npt.NDArray[np.float32]) -> None:
        """Store the evaluations of the selected positions, see SearchTrees.expand."""
        self._expand(priors, values)

    def decide(self, games: VectorGames, out: Decided) -> None:
        """Write the next moves, once `select` has returned None; the games are not changed."""
        self._decide(games, out.actions, out.log_probs, out.values, out.surprise, out.tried, out.gains)
