"""The learner's weights, versioned, in memory that the workers read: nobody waits for anybody.

There are two buffers. The learner writes the one that is not the newest, so a worker that reads has the whole
time until the next but one broadcast, and a learner that dies while it writes leaves the newest untouched. A
sequence number (odd while it is written) and a checksum tell the reader whether what it read is whole.
"""

import time
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from keisei.training.parallel.shared_memory import SharedMemory

_HEADER_BYTES = 128
_NEWEST = 0  # the word with the number of the newest buffer, plus 1; 0 is none
_WORDS = (4, 8)  # where the words of each buffer begin: sequence number, version, checksum
_TRIES = 100
_PAUSE_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class SyncStatistics:
    """Broadcasts so far; bytes and milliseconds of the last one, and milliseconds of all."""

    count: int
    version: int
    bytes: int
    milliseconds: float
    total_milliseconds: float


@dataclass(frozen=True, slots=True)
class _Field:
    """A tensor of the network and how it lies in a buffer."""

    name: str
    shape: tuple[int, ...]
    kind: np.dtype[Any]
    offset: int

    def array(self, memory: memoryview | bytes | bytearray) -> npt.NDArray[Any]:
        return np.ndarray(self.shape, self.kind, memory, self.offset)


class ModelSynchronizer:
    """Publishes a network's weights.

    interval: moves between two publications; 1 is after every update. compressed: floating-point weights
    travel as float16.
    """

    def __init__(self, network: nn.Module, *, interval: int = 1, compressed: bool = False) -> None:
        self._interval = interval
        self._fields, self._size = _layout(network, compressed)
        self._memory = SharedMemory(_HEADER_BYTES + 2 * self._size)
        self._words = _words(self._memory)
        self._count, self._version = 0, -1
        self._milliseconds = self._total_milliseconds = 0.0

    @property
    def version(self) -> int:
        """The version that was published last, -1 if none was."""
        return self._version

    def reader(self) -> "WeightsReader":
        """Return what a worker reads the weights with; to be given to its process as an argument."""
        return WeightsReader(self._memory, self._fields, self._size)

    def is_due(self, version: int, moves: int) -> bool:
        """Tell whether to publish this version, with so many moves collected since the last publication."""
        enough = self._version < 0 or self._interval == 1 or moves >= self._interval
        return version > self._version and enough

    def publish(self, network: nn.Module, version: int) -> None:
        """Let the workers have the weights of this version, which must be newer than the last one."""
        if version <= self._version:
            raise ValueError(f"weights version {version} is not newer than {self._version}")
        start = time.perf_counter()
        buffer = self._count % 2
        memory = _buffer(self._memory, buffer, self._size)
        words = self._words[_WORDS[buffer] :]
        words[0] = 2 * self._count + 1
        tensors = network.state_dict()
        for field in self._fields:
            target = torch.from_numpy(field.array(memory))
            target.copy_(tensors[field.name].detach())
            if field.kind == np.float16 and not bool(torch.isfinite(target).all()):
                raise OverflowError(
                    f"{field.name} has weights that half precision cannot hold; "
                    "set training.parallel.compression_enabled: false"
                )
        words[1] = version
        words[2] = _checksum(version, memory)
        words[0] = 2 * self._count + 2
        self._words[_NEWEST] = buffer + 1
        self._count, self._version = self._count + 1, version
        self._milliseconds = 1000 * (time.perf_counter() - start)
        self._total_milliseconds += self._milliseconds

    def statistics(self) -> SyncStatistics:
        """Return what the broadcasts cost."""
        return SyncStatistics(
            self._count, self._version, self._size, self._milliseconds, self._total_milliseconds
        )

    def close(self) -> None:
        """Let no further worker read; a second call does nothing."""
        self._memory.close()


class WeightsReader:
    """Reads what the learner has published into a network."""

    def __init__(self, memory: SharedMemory, fields: tuple[_Field, ...], size: int) -> None:
        self._memory, self._fields, self._size = memory, fields, size
        self._words = _words(memory)
        self.version = -1

    def __getstate__(self) -> tuple[Any, ...]:
        return self._memory, self._fields, self._size

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        WeightsReader.__init__(self, *state)

    def refresh(self, network: nn.Module) -> int:
        """Load the newest weights if there are newer ones than those loaded; return the version loaded.

        Weights that cannot be had whole, because the learner died while writing or writes faster than this
        reads, leave the old ones loaded; without old ones that is a TimeoutError.
        """
        for attempt in range(_TRIES):
            found = self._read()
            if found is not None:
                break
            time.sleep(_PAUSE_SECONDS * min(attempt, 10))
        else:
            if self.version < 0:
                raise TimeoutError(f"no whole weights in {_TRIES} tries")
            return self.version
        version, data = found
        if version > self.version:
            tensors: dict[str, Tensor] = network.state_dict()
            with torch.no_grad():
                for field in self._fields:
                    tensors[field.name].copy_(torch.from_numpy(field.array(data)))
            self.version = version
        return self.version

    def _read(self) -> tuple[int, bytearray] | None:
        """Return the newest version and a copy of its buffer; None if it was written meanwhile."""
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


def _layout(network: nn.Module, compressed: bool) -> tuple[tuple[_Field, ...], int]:
    """Return where each tensor lies in a buffer, and the size of a buffer."""
    fields = []
    offset = 0
    for name, tensor in network.state_dict().items():
        kind = torch.empty(0, dtype=tensor.dtype).numpy().dtype
        if compressed and tensor.is_floating_point():
            kind = np.dtype(np.float16)
        fields.append(_Field(name, tuple(tensor.shape), kind, offset))
        offset += -(-tensor.numel() * kind.itemsize // 8) * 8
    return tuple(fields), offset


def _words(memory: SharedMemory) -> npt.NDArray[np.int64]:
    return np.ndarray(_HEADER_BYTES // 8, np.int64, memory.view)


def _buffer(memory: SharedMemory, number: int, size: int) -> memoryview:
    begin = _HEADER_BYTES + number * size
    return memory.view[begin : begin + size]


def _checksum(version: int, data: memoryview | bytearray) -> int:
    return zlib.crc32(data, version & 0xFFFFFFFF)
