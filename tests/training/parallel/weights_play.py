"""Processes that read and write weights as fast as they can, for the tests of ModelSynchronizer."""

import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.training.parallel.model_sync import ModelSynchronizer, WeightsReader, _words


class Weights:
    """Weights whose numbers are all equal. Some arrays have odd sizes, one is an integer."""

    def __init__(self, width: int = 300) -> None:
        self.arrays: dict[str, npt.NDArray[Any]] = {
            "first.weight": np.zeros((width, width), np.float32),
            "first.bias": np.zeros(width, np.float32),
            "second.weight": np.zeros((3, 5), np.float32),
            "second.bias": np.zeros(5, np.float32),
            "count": np.zeros((), np.int64),
        }

    def fill(self, number: float) -> None:
        for array in self.arrays.values():
            array.fill(number)

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        for name, array in self.arrays.items():
            array[...] = arrays[name]

    def number(self) -> int | None:
        """The common value; None if they differ."""
        numbers = {float(bound) for array in self.arrays.values() for bound in (array.min(), array.max())}
        return int(numbers.pop()) if len(numbers) == 1 else None


def read_on(reader: WeightsReader, results: Connection, seconds: float) -> None:
    """Read for some seconds; send (reads, versions seen, what was wrong)."""
    weights, versions, wrong, reads = Weights(), [-1], [], 0
    deadline = time.monotonic() + seconds
    results.send("ready")
    while time.monotonic() < deadline:
        version = reader.refresh(weights.load)
        reads += 1
        if weights.number() != version or version < versions[-1]:
            wrong.append((version, weights.number(), versions[-1]))
        if version != versions[-1]:
            versions.append(version)
    results.send((reads, versions[1:], wrong))


def write_on(reader: WeightsReader, results: Connection) -> None:
    """Publish until this process is killed, in the memory that a reader looks at."""
    weights = Weights()
    writer: Any = ModelSynchronizer(weights.arrays)
    writer._memory.close()
    writer._memory, writer._words = reader._memory, _words(reader._memory)
    version = 0
    while True:
        weights.fill(version)
        writer.publish(weights.arrays, version)
        if version == 0:
            results.send("begun")
        version += 1
