"""ExperienceBuffer: segments in, minibatches with advantages and returns out."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from keisei.core.advantages import Floats, advantages_and_returns
from keisei.core.segment import HasSegment, Segment, SegmentShape


@dataclass(frozen=True, slots=True, eq=False)
class Minibatch:
    """B moves. packed: uint8 [B, K]. actions: int32 [B]. tried: int16 [B, C]. gains: float32 [B, C].

    The rest: float32 [B]. As in Segment; weights: how much a move counts in a search's value loss.
    """

    packed: npt.NDArray[np.uint8]
    actions: npt.NDArray[np.int32]
    log_probs: Floats
    values: Floats
    advantages: Floats
    returns: Floats
    surprise: Floats
    weights: Floats
    tried: npt.NDArray[np.int16]
    gains: Floats

    @classmethod
    def over(cls, memory: memoryview, moves: int, packed_bytes: int, candidates: int) -> "Minibatch":
        """Return room for so many moves as views of this memory, from its start."""
        offset = 0
        arrays = {}
        for name, kind, tail in cls._layout(packed_bytes, candidates):
            arrays[name] = np.ndarray((moves, *tail), kind, memory, offset)
            offset += arrays[name].nbytes
        return cls(**arrays)

    @classmethod
    def nbytes(cls, moves: int, packed_bytes: int, candidates: int) -> int:
        """Return the size of the memory that `over` needs."""
        layout = cls._layout(packed_bytes, candidates)
        return moves * sum(math.prod(tail) * np.dtype(kind).itemsize for _, kind, tail in layout)

    @staticmethod
    def _layout(
        packed_bytes: int, candidates: int
    ) -> tuple[tuple[str, type[np.generic], tuple[int, ...]], ...]:
        """Return name, type and further dimensions of the arrays; wide types first: all are aligned."""
        floats = ("log_probs", "values", "advantages", "returns", "surprise", "weights")
        return (
            ("actions", np.int32, ()),
            *((name, np.float32, ()) for name in floats),
            ("gains", np.float32, (candidates,)),
            ("tried", np.int16, (candidates,)),
            ("packed", np.uint8, (packed_bytes,)),
        )

    def __len__(self) -> int:
        """Return the number of moves."""
        return len(self.actions)

    def rows(self, rows: slice | npt.NDArray[np.intp]) -> "Minibatch":
        """Return some of the moves: views for a slice, copies for indices."""
        return Minibatch(*(getattr(self, name)[rows] for name in Minibatch.__slots__))


def joined(parts: Sequence[Minibatch]) -> Minibatch:
    """Return all moves as one batch, in their order."""
    if len(parts) == 1:
        return parts[0]
    return Minibatch(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in Minibatch.__slots__)
    )


class ExperienceBuffer:
    """The moves between two updates, from one segment or from many workers' segments of any size.

    Positions stay packed; the consumer of a minibatch decodes them.
    """

    def __init__(self, *, gamma: float, gae_lambda: float) -> None:
        self._gamma, self._gae_lambda = gamma, gae_lambda
        self._parts: list[Minibatch] = []
        self._open: list[tuple[npt.NDArray[np.uint8], int, float, float, float, bool]] = []

    def __len__(self) -> int:
        """Return the number of moves that can be learned from."""
        return sum(len(part.actions) for part in self._parts)

    def add_batch(self, batch: Segment | HasSegment | Sequence[Segment | HasSegment]) -> None:
        """Add a segment, an object with a .segment, or a sequence of them; anything else is a TypeError.

        Advantages are computed for each stream of each segment.
        """
        for segment in _segments(batch):
            if len(segment):
                self._add_segment(segment)

    def _add_segment(self, segment: Segment) -> None:
        shape = segment.shape
        advantages, returns = advantages_and_returns(
            segment.rewards,
            segment.values,
            segment.ended,
            segment.bootstrap,
            gamma=self._gamma,
            gae_lambda=self._gae_lambda,
        )
        self._parts.append(
            Minibatch(
                segment.packed.reshape(len(segment), -1),
                segment.actions.ravel(),
                segment.log_probs.ravel(),
                segment.values.ravel(),
                advantages.ravel(),
                returns.ravel(),
                np.zeros(len(segment), np.float32) if not shape.candidates else segment.surprise.ravel(),
                np.ones(len(segment), np.float32),
                segment.tried.reshape(len(segment), shape.candidates),
                segment.gains.reshape(len(segment), shape.candidates),
            )
        )

    def add(
        self,
        packed: npt.NDArray[np.uint8],
        action: int,
        log_prob: float,
        value: float,
        reward: float,
        *,
        ended: bool,
    ) -> None:
        """Add one move, packed: uint8 [K], of a single stream of games; call `close` after the last."""
        self._open.append((packed, action, log_prob, value, reward, ended))

    def close(self, bootstrap: float = 0.0) -> None:
        """End the single stream; bootstrap is the value of the next position, if the game is not over."""
        if not self._open:
            return
        packed, *columns = zip(*self._open, strict=True)
        segment = Segment.empty(SegmentShape(len(packed), 1, packed[0].size))
        segment.packed[:, 0] = packed
        for array, column in zip(
            (segment.actions, segment.log_probs, segment.values, segment.rewards, segment.ended),
            columns,
            strict=True,
        ):
            array[:, 0] = column
        segment.bootstrap[0] = bootstrap
        self.add_batch(segment)
        self._open.clear()

    def merge(self, other: "ExperienceBuffer") -> None:
        """Add all moves of another buffer, keeping their advantages."""
        other._check_closed()
        self._parts += other._parts

    def merge_buffers(self, others: Sequence["ExperienceBuffer"]) -> None:
        """Add all moves of other buffers, in order, or of none if one of them is not closed."""
        for other in others:
            other._check_closed()
        for other in others:
            self.merge(other)

    def clear(self) -> None:
        """Remove all moves."""
        self._parts.clear()
        self._open.clear()

    def all(self) -> Minibatch:
        """Return all moves as one batch, in the order they were added."""
        self._check_closed()
        if not self._parts:
            raise ValueError("the buffer is empty")
        self._parts = [joined(self._parts)]
        return self._parts[0]

    def minibatches(self, size: int, random: np.random.Generator) -> Iterator[Minibatch]:
        """Yield all moves once, shuffled, `size` at a time; a lone last move joins the batch before it."""
        moves = self.all()
        order = random.permutation(len(moves.actions))
        ends = [*range(size, len(order) - 1, size), len(order)]
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            yield moves.rows(order[start:end])

    def _check_closed(self) -> None:
        if self._open:
            raise ValueError(
                f"{len(self._open)} single moves are not closed, so their advantages are unknown"
            )


def _segments(batch: Segment | HasSegment | Sequence[Segment | HasSegment]) -> list[Segment]:
    # An object with a segment may itself be a sequence: a named tuple.
    several = isinstance(batch, Sequence) and not hasattr(batch, "segment")
    found: list[Segment] = []
    for one in cast(Sequence[object], batch) if several else [batch]:
        segment = getattr(one, "segment", one)
        if not isinstance(segment, Segment):
            kind = type(one).__name__
            raise TypeError(
                f"expected a Segment, an object with a .segment, or a sequence of them, got {kind}"
            )
        found.append(segment)
    return found
