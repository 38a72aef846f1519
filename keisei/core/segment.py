"""Segment: what a rollout collects and everything that learning needs of it."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """T moves in each of N streams of games; a stream goes on with the next game where one ends.

    packed: uint8 [T, N, K], the positions before the moves.
    actions: int32 [T, N]. log_probs: float32 [T, N], of the actions when they were chosen.
    values: float32 [T, N], of the positions, for the player to move.
    rewards: float32 [T, N], for the player who moved. ended: bool [T, N], the move ended its game.
    after: uint8 [N, K], the positions after the last moves; bootstrap: float32 [N], their values for the
        player to move there. Where the last move ended a game they are another game's, and not to be used.
    """

    packed: npt.NDArray[np.uint8]
    actions: npt.NDArray[np.int32]
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    rewards: npt.NDArray[np.float32]
    ended: npt.NDArray[np.bool_]
    after: npt.NDArray[np.uint8]
    bootstrap: npt.NDArray[np.float32]

    @classmethod
    def empty(cls, steps: int, streams: int, packed_bytes: int) -> Self:
        """Return arrays to be filled."""
        shape = (steps, streams)
        return cls(
            packed=np.zeros((*shape, packed_bytes), np.uint8),
            actions=np.zeros(shape, np.int32),
            log_probs=np.zeros(shape, np.float32),
            values=np.zeros(shape, np.float32),
            rewards=np.zeros(shape, np.float32),
            ended=np.zeros(shape, np.bool_),
            after=np.zeros((streams, packed_bytes), np.uint8),
            bootstrap=np.zeros(streams, np.float32),
        )

    def __len__(self) -> int:
        """Return the number of moves, T * N."""
        return self.actions.size
