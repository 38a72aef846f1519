"""ReplayWindow: the latest moves, from which minibatches are drawn, some moves more often than others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from keisei.core.experience_buffer import Minibatch, joined

Priority = Literal["none", "policy", "value"]

# The share of the draws that goes to moves in proportion to their surprise; the others are even, so that no
# move is forgotten. KataGo's, not studied.
SURPRISE_SHARE = 0.5


class ReplayWindow:
    """At most `capacity` moves. seen: how many have ever been added.

    priority: what makes a move be drawn more often: how far the search moved the policy (policy), how far the
    return is from the value (value), or nothing (none). A drawn move's weight makes up for it in the value
    loss, whose target is a matter of luck: learning mostly from surprising games would bias it. The policy
    needs no such weight: its target in a position is the same however often the position is drawn.
    """

    def __init__(self, capacity: int, priority: Priority = "none") -> None:
        self._capacity, self._priority = capacity, priority
        self._moves: Minibatch | None = None
        self._shares: npt.NDArray[np.float64] | None = None
        self.seen = 0

    def __len__(self) -> int:
        """Return the number of moves."""
        return 0 if self._moves is None else len(self._moves)

    def add(self, moves: Minibatch) -> None:
        """Add moves, the oldest first; the arrays of earlier moves stay as they are."""
        self.seen += len(moves)
        if self._moves is None:
            self._moves = moves.rows(slice(0, 0))
        both = joined([self._moves, moves])  # a copy: whoever gave the moves may use their memory again
        self._set(both.rows(slice(max(0, len(both) - self._capacity), None)))

    def _set(self, moves: Minibatch) -> None:
        self._moves = moves
        self._shares = None
        if self._priority == "none":
            return
        surprise = moves.surprise if self._priority == "policy" else np.abs(moves.advantages)
        surprise = surprise.astype(np.float64)
        total = surprise.sum()
        if total > 0 and np.isfinite(total):
            self._shares = (1 - SURPRISE_SHARE) / len(moves) + SURPRISE_SHARE * surprise / total

    def sample(self, count: int, random: np.random.Generator) -> Minibatch:
        """Return moves drawn with replacement, with the weights that make up for their priority."""
        if self._moves is None:
            raise ValueError("the window is empty")
        if self._shares is None:
            return self._moves.rows(random.integers(0, len(self), count))
        ends = np.cumsum(self._shares)
        rows = np.minimum(np.searchsorted(ends, random.random(count) * ends[-1], side="right"), len(self) - 1)
        weights = (1 / (len(self) * self._shares[rows])).astype(np.float32)
        return replace(self._moves.rows(rows), weights=weights)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything by name, for a checkpoint; nobody may change it."""
        seen = {"seen": np.array([self.seen], np.int64)}
        if self._moves is None:
            return seen
        return {name: getattr(self._moves, name) for name in Minibatch.__slots__} | seen

    @classmethod
    def of_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], capacity: int, priority: Priority, candidates: int
    ) -> "ReplayWindow":
        """Return the window in what `arrays` returned; ValueError if something is missing.

        candidates: from now on; moves that a search has tried beyond that are left out.
        """
        missing = {"seen", *Minibatch.__slots__} - set(arrays)
        if missing:
            raise ValueError(f"the replay window lacks {sorted(missing)}")
        window = cls(capacity, priority)
        moves = Minibatch(*(arrays[name] for name in Minibatch.__slots__))
        if len({len(getattr(moves, name)) for name in Minibatch.__slots__}) > 1:
            raise ValueError("the arrays of the replay window differ in length")
        moves = replace(
            moves,
            tried=_widened(moves.tried, candidates, -1),
            gains=_widened(moves.gains, candidates, 0),
        )
        window._set(moves.rows(slice(max(0, len(moves) - capacity), None)))
        window.seen = int(arrays["seen"][0])
        return window


def _widened(rows: npt.NDArray[Any], width: int, filling: float) -> npt.NDArray[Any]:
    """Return rows [B, width] that begin like these."""
    found = np.full((len(rows), width), filling, rows.dtype)
    both = min(width, rows.shape[1])
    found[:, :both] = rows[:, :both]
    return found
