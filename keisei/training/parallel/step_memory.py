"""StepMemory: where the learner lays out a gradient step for its workers, and each leaves its gradients.

One sequence number for each layout tells a worker that was asked about an earlier one, and was stopped or
slow, that what it has read may be a mixture of both.
"""

import struct
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from keisei.core.experience_buffer import Minibatch
from keisei.core.gradient_step import PARTS, Floats, GradientStep
from keisei.shogi.encoding import PACKED_BYTES
from keisei.training.parallel.shared_memory import SharedMemory

_TASK = struct.Struct("<qqqqdq")
_HEADER_BYTES = 64
_BEING_WRITTEN = -1


@dataclass(frozen=True, slots=True)
class LearnTask:
    """A worker's share of the step with this sequence number: its moves from begin to end.

    minibatch, entropy_coef, targets: as in GradientStep.
    """

    sequence: int
    begin: int
    end: int
    minibatch: int
    entropy_coef: float
    targets: int

    def pack(self) -> bytes:
        """Return it as the body of a message."""
        return _TASK.pack(*astuple(self))

    @classmethod
    def unpack(cls, body: bytes) -> "LearnTask":
        """Return the task in the body of a message."""
        return cls(*_TASK.unpack(body))


class StepMemory:
    """Shared memory for one step at a time, passed to the workers' processes as an argument.

    weights: floats of the network. moves: of the largest minibatch. workers: how many leave gradients.
    candidates: as in SegmentShape.
    """

    def __init__(self, *, weights: int, moves: int, workers: int, candidates: int = 0) -> None:
        self._sizes = (weights, moves, workers, candidates)
        floats = weights + workers * (weights + PARTS)
        of_moves = Minibatch.nbytes(moves, PACKED_BYTES, candidates)
        self._open(SharedMemory(_HEADER_BYTES + 4 * floats + of_moves))

    def _open(self, memory: SharedMemory) -> None:
        self._memory = memory
        weights, moves, workers, candidates = self._sizes
        offset = 0

        def array(kind: type[np.generic], *shape: int) -> Any:
            nonlocal offset
            found: Any = np.ndarray(shape, kind, memory.view, offset)
            offset += found.nbytes
            return found

        self._words = array(np.int64, _HEADER_BYTES // 8)
        self._weights = array(np.float32, weights)
        self._gradients = array(np.float32, workers, weights + PARTS)
        self._moves = Minibatch.over(memory.view[offset:], moves, PACKED_BYTES, candidates)

    def __getstate__(self) -> tuple[Any, ...]:
        return self._sizes, self._memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._sizes, memory = state
        self._open(memory)

    def lay_out(self, weights: Floats, step: GradientStep) -> int:
        """Write a step's weights and moves, and return its sequence number."""
        sequence = int(self._words[1]) + 1
        self._words[:2] = _BEING_WRITTEN, sequence
        self._weights[:] = weights
        for name in Minibatch.__slots__:
            getattr(self._moves, name)[: len(step)] = getattr(step.moves, name)
        self._words[0] = sequence
        return sequence

    @property
    def weights(self) -> Floats:
        """The weights laid out now, to be copied; then ask `is_current`."""
        found: Floats = self._weights
        return found

    def share_of(self, task: LearnTask) -> GradientStep:
        """Return a copy of a task's moves; then ask `is_current`."""
        rows = np.arange(task.begin, task.end)
        return GradientStep(self._moves.rows(rows), task.minibatch, task.entropy_coef, task.targets)

    def is_current(self, task: LearnTask) -> bool:
        """Return whether the task's step is still laid out, so that what was copied before is whole."""
        return int(self._words[0]) == task.sequence

    def gradients_of(self, worker: int) -> Floats:
        """Return where a worker leaves the gradients and loss's parts of its share."""
        found: Floats = self._gradients[worker]
        return found

    def close(self) -> None:
        """Stop handing it to new processes; a second call does nothing."""
        self._memory.close()
