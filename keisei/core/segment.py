"""Segment: what a rollout collects, which is all that learning needs."""

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from keisei.shogi.encoding import PACKED_BYTES


@dataclass(frozen=True, slots=True)
class SegmentShape:
    """The size of a segment: T steps, N streams, K bytes per packed position (shogi's if not given).

    candidates: how many moves a search may have tried in a position; 0 without searches.
    """

    steps: int
    streams: int
    packed_bytes: int = PACKED_BYTES
    candidates: int = 0

    @property
    def moves(self) -> int:
        """The number of moves, T * N."""
        return self.steps * self.streams

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return sum(math.prod(shape) * np.dtype(kind).itemsize for _, kind, shape in self.layout())

    def layout(self) -> tuple[tuple[str, type[np.generic], tuple[int, ...]], ...]:
        """Return name, type and shape of the arrays, in their order in memory.

        Wide types come first, so that all are aligned.
        """
        moves = (self.steps, self.streams)
        return (
            ("actions", np.int32, moves),
            ("log_probs", np.float32, moves),
            ("values", np.float32, moves),
            ("rewards", np.float32, moves),
            ("bootstrap", np.float32, (self.streams,)),
            ("surprise", np.float32, (self.steps, self.streams if self.candidates else 0)),
            ("gains", np.float32, (*moves, self.candidates)),
            ("tried", np.int16, (*moves, self.candidates)),
            ("packed", np.uint8, (*moves, self.packed_bytes)),
            ("after", np.uint8, (self.streams, self.packed_bytes)),
            ("ended", np.bool_, moves),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """T moves in each of N streams of games; where a game ends, the stream continues with the next one.

    packed: uint8 [T, N, K], the positions before the moves.
    actions: int32 [T, N]. log_probs: float32 [T, N], of the actions when they were chosen.
    values: float32 [T, N], of the positions, for the player to move.
    rewards: float32 [T, N], for the player who moved. ended: bool [T, N], the move ended its game.
    after: uint8 [N, K], the positions after the last moves; bootstrap: float32 [N], their values for the
        player to move there. Where the last move ended a game they belong to the next one: do not use them.

    With searches (C candidates) also:
    tried: int16 [T, N, C], the actions that a search has tried, then -1; gains: float32 [T, N, C], what it
        would add to their logits. surprise: float32 [T, N], the divergence between the policy with these
        gains and the policy without; 0 where nothing was searched.
    """

    packed: npt.NDArray[np.uint8]
    actions: npt.NDArray[np.int32]
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    rewards: npt.NDArray[np.float32]
    ended: npt.NDArray[np.bool_]
    after: npt.NDArray[np.uint8]
    bootstrap: npt.NDArray[np.float32]
    tried: npt.NDArray[np.int16]
    gains: npt.NDArray[np.float32]
    surprise: npt.NDArray[np.float32]

    @classmethod
    def empty(cls, shape: SegmentShape) -> Self:
        """Return arrays of zeros, to be filled."""
        return cls.over(bytearray(shape.nbytes), shape)

    @classmethod
    def over(cls, memory: bytearray | memoryview, shape: SegmentShape) -> Self:
        """Return arrays that are views of this memory, from its start."""
        arrays = {}
        offset = 0
        for name, kind, size in shape.layout():
            arrays[name] = np.ndarray(size, kind, memory, offset)
            offset += arrays[name].nbytes
        return cls(**arrays)

    @property
    def shape(self) -> SegmentShape:
        """The size of the segment."""
        steps, streams, packed_bytes = self.packed.shape
        return SegmentShape(steps, streams, packed_bytes, self.tried.shape[2])

    def __len__(self) -> int:
        """Return the number of moves, T * N."""
        return self.actions.size


class HasSegment(Protocol):
    """The result of a rollout, here or in a worker."""

    @property
    def segment(self) -> Segment:
        """The moves."""
