"""Positions: a batch as a network sees it, planes and legal actions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from keisei.shogi import encoding
from keisei.shogi.shogi_game import ShogiGame


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """N positions, each as the side to move sees it.

    planes: float32 [N, 46, 9, 9]; games other than shogi have other shapes after N.
    offsets: int32 [N + 1] and actions: int32 [M], the legal actions: position i has
        actions[offsets[i]:offsets[i + 1]], and M is offsets[N].
    """

    planes: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int32]
    actions: npt.NDArray[np.int32]

    @classmethod
    def of_packed(cls, packed: npt.NDArray[np.uint8], threads: int = 1) -> Self:
        """Decode packed positions [N, 104]."""
        offsets, actions = encoding.legal_actions(packed, threads=threads)
        return cls(encoding.planes(packed, threads=threads), offsets, actions)

    @classmethod
    def of_games(cls, games: Sequence[ShogiGame]) -> Self:
        """Return the current positions of games."""
        return cls.of_packed(encoding.pack(games))

    def __len__(self) -> int:
        """Return the number of positions."""
        return len(self.planes)

    def legal(self, index: int) -> npt.NDArray[np.int32]:
        """Return a view of the legal actions of one position."""
        if not 0 <= index < len(self):
            raise IndexError(f"position is {index}, expected 0 to {len(self) - 1}")
        return self.actions[self.offsets[index] : self.offsets[index + 1]]
