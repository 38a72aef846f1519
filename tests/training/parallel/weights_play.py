"""Processes that read and write weights as fast as they can, for the tests of ModelSynchronizer."""

import time
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import nn

from keisei.training.parallel.model_sync import ModelSynchronizer, WeightsReader, _words


class Weights(nn.Module):
    """A network whose numbers are all equal. Some tensors have odd sizes, one is an integer."""

    count: torch.Tensor

    def __init__(self, width: int = 300) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(3, 5)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.fill(0)

    @torch.no_grad()
    def fill(self, number: int) -> None:
        for tensor in self.state_dict().values():
            tensor.fill_(number)

    def number(self) -> int | None:
        """The common value; None if they differ."""
        lows = {float(tensor.min()) for tensor in self.state_dict().values()}
        highs = {float(tensor.max()) for tensor in self.state_dict().values()}
        return int(lows.pop()) if len(lows | highs) == 1 else None


def read_on(reader: WeightsReader, results: Connection, seconds: float) -> None:
    """Read for some seconds; send (reads, versions seen, what was wrong)."""
    torch.set_num_threads(1)
    network, versions, wrong, reads = Weights(), [-1], [], 0
    deadline = time.monotonic() + seconds
    results.send("ready")
    while time.monotonic() < deadline:
        version = reader.refresh(network)
        reads += 1
        if network.number() != version or version < versions[-1]:
            wrong.append((version, network.number(), versions[-1]))
        if version != versions[-1]:
            versions.append(version)
    results.send((reads, versions[1:], wrong))


def write_on(reader: WeightsReader, results: Connection) -> None:
    """Publish until this process is killed, in the memory that a reader looks at."""
    torch.set_num_threads(1)
    network = Weights()
    writer: Any = ModelSynchronizer(network)
    writer._memory.close()
    writer._memory, writer._words = reader._memory, _words(reader._memory)
    version = 0
    while True:
        network.fill(version)
        writer.publish(network, version)
        if version == 0:
            results.send("begun")
        version += 1
