"""The learner's weights, versioned, in memory that the workers read: neither side ever waits.

There are two buffers. The learner writes to the older one, so a reader has until the next broadcast but one
to finish, and a learner that dies while writing leaves the newest intact. A sequence number (odd during a
write) and a checksum tell the reader whether it read a complete copy.
"""

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.training.parallel.shared_memory import SharedMemory

Weights = Mapping[str, npt.NDArray[Any]]

_HEADER_BYTES = 128
_NEWEST = 0  # the word holding the number of the newest buffer plus 1; 0 is none
_WORDS = (4, 8)  # where each buffer's words start: sequence number, version, checksum
_TRIES = 100
_PAUSE_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class SyncStatistics:
    """Broadcasts so far; bytes and milliseconds of the last one, milliseconds of all."""

    count: int
    version: int
    bytes: int
    milliseconds: float
    total_milliseconds: float


@dataclass(frozen=True, slots=True)
class _Field:
    """An array of weights and its place in a buffer."""

    name: str
    shape: tuple[int, ...]
    kind: np.dtype[Any]
    offset: int

    def array(self, memory: memoryview | bytes | bytearray) -> npt.NDArray[Any]:
        return np.ndarray(self.shape, self.kind, memory, self.offset)


class ModelSynchronizer:
    """The publisher of a network's weights, arrays by name; `weights` shows their shapes.

    interval: moves between two publications; 1 publishes after every update. compressed: send floating-point
    weights as float16.
    """

    def __init__(self, weights: Weights, *, interval: int = 1, compressed: bool = False) -> None:
        self._interval = interval
        self._fields, self._size = _layout(weights, compressed)
        self._memory = SharedMemory(_HEADER_BYTES + 2 * self._size)
        self._words = _words(self._memory)
        self._count, self._version = 0, -1
        self._milliseconds = self._total_milliseconds = 0.0

    @property
    def version(self) -> int:
        """The last published version, -1 if none."""
        return self._version

    def reader(self) -> "WeightsReader":
        """Return a reader to pass to a worker's process as an argument."""
        return WeightsReader(self._memory, self._fields, self._size)

    def is_due(self, version: int, moves: int) -> bool:
        """Return whether to publish this version, given the moves collected since the last publication."""
        enough = self._version < 0 or self._interval == 1 or moves >= self._interval
        return version > self._version and enough

    def publish(self, weights: Weights, version: int) -> None:
        """Publish the weights as this version, which must be newer than the last one."""

        def fill(memory: memoryview) -> None:
            for field in self._fields:
                target = field.array(memory)
                with np.errstate(over="ignore"):
                    target[...] = weights[field.name]
                if field.kind == np.float16 and not np.isfinite(target).all():
                    raise OverflowError(
                        f"{field.name} has weights that half precision cannot hold; "
                        "set training.parallel.compression_enabled: false"
                    )

        self._publish(fill, version)

    def publish_packed(self, packed: bytes | memoryview, version: int) -> None:
        """Publish weights as another synchronizer of the same layout has packed them."""
        if len(packed) != self._size:
            raise ValueError(f"{len(packed)} bytes of weights, expected {self._size}")

        def fill(memory: memoryview) -> None:
            memory[:] = packed

        self._publish(fill, version)

    def _publish(self, fill: Callable[[memoryview], None], version: int) -> None:
        if version <= self._version:
            raise ValueError(f"weights version {version} is not newer than {self._version}")
        start = time.perf_counter()
        buffer = self._count % 2
        memory = _buffer(self._memory, buffer, self._size)
        words = self._words[_WORDS[buffer] :]
        words[0] = 2 * self._count + 1
        fill(memory)
        words[1] = version
        words[2] = _checksum(version, memory)
        words[0] = 2 * self._count + 2
        self._words[_NEWEST] = buffer + 1
        self._count, self._version = self._count + 1, version
        self._milliseconds = 1000 * (time.perf_counter() - start)
        self._total_milliseconds += self._milliseconds

    @property
    def packed(self) -> memoryview:
        """The newest weights as they lie in memory, after the first publication."""
        return _buffer(self._memory, int(self._words[_NEWEST]) - 1, self._size)

    def layout(self) -> list[tuple[str, list[int], str]]:
        """Return name, shape and type of each array, as they are published."""
        return [(field.name, list(field.shape), field.kind.str) for field in self._fields]

    @classmethod
    def of_layout(cls, layout: Sequence[tuple[str, Sequence[int], str]]) -> "ModelSynchronizer":
        """Return a synchronizer for what another one has packed."""
        return cls({name: np.empty(tuple(shape), kind) for name, shape, kind in layout})

    def statistics(self) -> SyncStatistics:
        """Return the cost of the broadcasts."""
        return SyncStatistics(
            self._count, self._version, self._size, self._milliseconds, self._total_milliseconds
        )

    def close(self) -> None:
        """Stop handing out readers; a second call does nothing."""
        self._memory.close()


class WeightsReader:
    """A reader of published weights."""

    def __init__(self, memory: SharedMemory, fields: tuple[_Field, ...], size: int) -> None:
        self._memory, self._fields, self._size = memory, fields, size
        self._words = _words(memory)
        self.version = -1

    def __getstate__(self) -> tuple[Any, ...]:
        return self._memory, self._fields, self._size

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        WeightsReader.__init__(self, *state)

    def refresh(self, load: Callable[[dict[str, npt.NDArray[Any]]], None]) -> int:
        """Load the newest weights if newer than those loaded; return the version loaded.

        If no complete copy can be read, because the learner died while writing or writes faster than this
        reads, the old weights stay loaded; without old ones, raise TimeoutError.
        """
        for attempt in range(_TRIES):
            found = self._read()
            if found is not None:
                break
            time.sleep(_PAUSE_SECONDS * min(attempt, 10))
        else:
            if self.version < 0:
                raise TimeoutError(f"no complete weights in {_TRIES} tries")
            return self.version
        version, data = found
        if version > self.version:
            load({field.name: field.array(data) for field in self._fields})
            self.version = version
        return self.version

    def _read(self) -> tuple[int, bytearray] | None:
        """Return the newest version and a copy of its buffer; None if it was overwritten meanwhile."""
        newest = int(self._words[_NEWEST])
        if newest == 0:
            return None
        words = self._words[_WORDS[newest - 1] :]
        sequence, version, checksum = (int(word) for word in words[:3])
        if version == self.version and sequence % 2 == 0:
            return version, bytearray()
        data = bytearray(_buffer(self._memory, newest - 1, self._size))
        whole = sequence % 2 == 0 and int(words[0]) == sequence and _checksum(version, data) == checksum
        return (version, data) if whole else None


def _layout(weights: Weights, compressed: bool) -> tuple[tuple[_Field, ...], int]:
    """Return the place of each tensor in a buffer, and the size of a buffer."""
    fields = []
    offset = 0
    for name, array in weights.items():
        halved = compressed and np.issubdtype(array.dtype, np.floating)
        kind = np.dtype(np.float16) if halved else array.dtype
        fields.append(_Field(name, array.shape, kind, offset))
        offset += -(-array.size * kind.itemsize // 8) * 8
    return tuple(fields), offset


def _words(memory: SharedMemory) -> npt.NDArray[np.int64]:
    return np.ndarray(_HEADER_BYTES // 8, np.int64, memory.view)


def _buffer(memory: SharedMemory, number: int, size: int) -> memoryview:
    begin = _HEADER_BYTES + number * size
    return memory.view[begin : begin + size]


def _checksum(version: int, data: memoryview | bytearray) -> int:
    return zlib.crc32(data, version & 0xFFFFFFFF)
