"""A small checkpoint, how two are compared, and a disk that fails."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from keisei.runs.checkpoint import Checkpoint


def tiny(step: int = 7, value: float = 1.5) -> Checkpoint:
    return Checkpoint(
        step,
        {"weights": {"w": torch.tensor([value, 2.5])}},
        {"games": b"\x00game\xff"},
        {"updates": 3, "name": "形勢"},
    )


def assert_same(left: Checkpoint, right: Checkpoint) -> None:
    """Compare bit for bit, NaNs included."""
    assert (left.step, dict(left.blobs), dict(left.state)) == (
        right.step,
        dict(right.blobs),
        dict(right.state),
    )
    assert left.tensors.keys() == right.tensors.keys()
    for name, group in left.tensors.items():
        assert group.keys() == right.tensors[name].keys()
        for key, tensor in group.items():
            other = right.tensors[name][key]
            assert (tensor.dtype, tensor.shape) == (other.dtype, other.shape)
            assert tensor.contiguous().view(-1).view(torch.uint8).tolist() == (
                other.contiguous().view(-1).view(torch.uint8).tolist()
            )


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """Stop this process from writing larger files: a real failure midway, on any machine."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
