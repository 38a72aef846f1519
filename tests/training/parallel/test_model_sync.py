"""ModelSynchronizer: weights arrive complete and never go back, whoever writes, reads or dies meanwhile."""

import multiprocessing
import random
import time

import numpy as np
import pytest
import torch
from torch import nn
from weights_play import Weights, read_on, write_on

from keisei.training.parallel.model_sync import ModelSynchronizer

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["keisei.training.parallel.self_play_worker"])


def network_with(values: list[float]) -> nn.Module:
    layer = nn.Linear(len(values), 1)
    with torch.no_grad():
        layer.weight[0] = torch.tensor(values)
    return layer


# ------------------------------------------------------------------------ publish and read


def test_what_is_published_is_read() -> None:
    source, target = Weights(), Weights()
    synchronizer = ModelSynchronizer(source)
    reader = synchronizer.reader()
    generator = torch.Generator().manual_seed(1)
    for version in (0, 1, 5, 6, 7):
        with torch.no_grad():
            for parameter in source.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
            source.count.fill_(2**40 + version)
        synchronizer.publish(source, version)
        assert reader.refresh(target) == version == reader.version == synchronizer.version
        for name, tensor in source.state_dict().items():
            assert target.state_dict()[name].numpy().tobytes() == tensor.numpy().tobytes(), name
    with torch.no_grad():
        target.first.weight.fill_(3)
    assert reader.refresh(target) == 7
    assert float(target.first.weight.detach().max()) == 3  # nothing newer, so nothing is loaded
    synchronizer.close()
    synchronizer.close()


def test_a_late_reader_gets_the_newest_only() -> None:
    source, target = Weights(), Weights()
    synchronizer = ModelSynchronizer(source)
    for version in range(4):
        source.fill(version)
        synchronizer.publish(source, version)
    assert synchronizer.reader().refresh(target) == 3
    assert target.number() == 3
    synchronizer.close()


def test_weights_in_other_memory_formats_arrive() -> None:
    convolution = nn.Conv2d(4, 6, 3)
    spread = nn.Conv2d(4, 6, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    synchronizer = ModelSynchronizer(convolution)
    synchronizer.publish(spread, 0)
    other = nn.Conv2d(4, 6, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    synchronizer.reader().refresh(other)
    assert torch.equal(other.weight, spread.weight)
    synchronizer.close()


def test_without_weights_a_reader_gives_up_in_the_end() -> None:
    synchronizer = ModelSynchronizer(Weights())
    assert synchronizer.version == -1
    with pytest.raises(TimeoutError, match=r"^no complete weights in 100 tries$"):
        synchronizer.reader().refresh(Weights())
    synchronizer.close()


@pytest.mark.parametrize("version", [2, 3])
def test_only_newer_weights_are_published(version: int) -> None:
    source = Weights()
    synchronizer = ModelSynchronizer(source)
    synchronizer.publish(source, 3)
    with pytest.raises(ValueError, match=f"^weights version {version} is not newer than 3$"):
        synchronizer.publish(source, version)
    synchronizer.close()


@pytest.mark.parametrize(
    ("interval", "due"),
    [
        (1, [4, 5, 6, 7, 8, 9]),
        (10, [4, 5, 6, 7, 8, 9]),
        (100, [4, 5, 6, 7, 8, 9]),
        (101, [4, 6, 8]),
        (200, [4, 6, 8]),
        (301, [4, 8]),
    ],
)
def test_weights_are_due_after_the_update_that_reaches_the_moves(interval: int, due: list[int]) -> None:
    """A hundred moves are collected per update."""
    source = Weights()
    synchronizer = ModelSynchronizer(source, interval=interval)
    published, moves = [], 0
    for version in range(4, 10):
        if synchronizer.is_due(version, moves):
            synchronizer.publish(source, version)
            published.append(version)
            moves = 0
        assert not synchronizer.is_due(synchronizer.version, 10_000)  # they have it
        moves += 100
    assert published == due
    synchronizer.close()


def test_every_update_is_due_by_default_also_without_new_moves() -> None:
    source = Weights()
    synchronizer = ModelSynchronizer(source)
    synchronizer.publish(source, 0)
    assert synchronizer.is_due(1, 0)
    synchronizer.close()


def test_statistics_count_broadcasts_bytes_and_time() -> None:
    source = Weights()
    synchronizer = ModelSynchronizer(source)
    assert (synchronizer.statistics().count, synchronizer.statistics().version) == (0, -1)
    synchronizer.publish(source, 3)
    first = synchronizer.statistics()
    synchronizer.publish(source, 4)
    second = synchronizer.statistics()
    assert (first.count, first.version, second.count, second.version) == (1, 3, 2, 4)
    needed = sum(tensor.numel() * tensor.element_size() for tensor in source.state_dict().values())
    assert needed <= first.bytes <= needed + 8 * len(source.state_dict())
    assert first.milliseconds == first.total_milliseconds > 0
    assert second.total_milliseconds == pytest.approx(first.milliseconds + second.milliseconds)
    synchronizer.close()


# ------------------------------------------------------------------------ half precision


def test_half_precision_rounds_as_numpy_does_and_leaves_integers_alone() -> None:
    values = [0.0, -0.0, 1.0, 1 / 3, 65504.0, 65519.0, 6e-8, 2.9e-8, 1e-10, 2049.0, 2051.0, -1.00048828125]
    source, target = network_with(values), network_with([9.0] * len(values))
    for layer in (source, target):
        layer.register_buffer("count", torch.tensor([2**53 + 1, -(2**62)]))
        layer.register_buffer("flags", torch.tensor([True, False, True]))
    synchronizer = ModelSynchronizer(source, compressed=True)
    synchronizer.publish(source, 0)
    synchronizer.reader().refresh(target)
    read = target.state_dict()
    expected = np.array(values, np.float32).astype(np.float16).astype(np.float32)
    assert read["weight"].numpy()[0].tobytes() == expected.tobytes()
    assert read["count"].tolist() == [2**53 + 1, -(2**62)]
    assert read["flags"].tolist() == [True, False, True]
    synchronizer.close()


def test_half_precision_takes_half_the_bytes() -> None:
    whole, half = (ModelSynchronizer(Weights(), compressed=compressed) for compressed in (False, True))
    assert whole.statistics().bytes == pytest.approx(2 * half.statistics().bytes, rel=0.01)
    for synchronizer in (whole, half):
        synchronizer.close()


@pytest.mark.parametrize("value", [65520.0, -1e30, float("inf"), float("nan")])
def test_half_precision_refuses_what_it_cannot_hold_and_the_old_weights_stay(value: float) -> None:
    good, bad, target = network_with([1.0, 2.0]), network_with([3.0, value]), network_with([0.0, 0.0])
    synchronizer = ModelSynchronizer(good, compressed=True)
    reader = synchronizer.reader()
    synchronizer.publish(good, 0)
    for _ in range(3):
        with pytest.raises(
            OverflowError, match=r"^weight has .*; set training\.parallel\.compression_enabled: f"
        ):
            synchronizer.publish(bad, 1)
        assert reader.refresh(target) == 0
        assert target.state_dict()["weight"].tolist() == [[1.0, 2.0]]
    fresh = network_with([0.0, 0.0])
    assert synchronizer.reader().refresh(fresh) == 0
    assert fresh.state_dict()["weight"].tolist() == [[1.0, 2.0]]
    synchronizer.publish(good, 1)
    assert reader.refresh(target) == 1
    synchronizer.close()


# ------------------------------------------------------------------------ readers, writers and death


def test_a_reader_never_sees_torn_weights_nor_older_ones() -> None:
    network = Weights()
    synchronizer = ModelSynchronizer(network)
    synchronizer.publish(network, 0)
    mine, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=read_on, args=(synchronizer.reader(), theirs, 2.5))
    process.start()
    assert mine.recv() == "ready"
    version = 0
    while not mine.poll():
        version += 1
        network.fill(version)
        synchronizer.publish(network, version)
    reads, versions, wrong = mine.recv()
    process.join(30)
    assert process.exitcode == 0
    assert wrong == []
    assert versions == sorted(set(versions))
    assert reads > 10
    assert len(versions) > 3
    assert version > 10
    synchronizer.close()
    process.close()


def test_a_writer_that_dies_in_the_middle_leaves_whole_weights() -> None:
    choose = random.Random(1)
    in_the_middle = 0
    for _ in range(25):
        network = Weights()
        memory = ModelSynchronizer(network)
        reader = memory.reader()
        mine, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=write_on, args=(reader, theirs))
        process.start()
        assert mine.recv() == "begun"
        time.sleep(choose.random() * 0.02)
        process.kill()
        process.join(30)
        process.close()
        version = reader.refresh(network)
        assert network.number() == version >= 0
        in_the_middle += any(int(memory._words[word]) % 2 for word in (4, 8))
        memory.close()
    assert in_the_middle > 3


def test_weights_that_are_being_written_for_ever_leave_the_old_ones_in_place() -> None:
    """The newest buffer has an odd sequence number, or a checksum that does not match its data."""
    network, target = Weights(), Weights()
    for word, value in ((4, 1), (6, 12345)):
        synchronizer = ModelSynchronizer(network)
        reader = synchronizer.reader()
        network.fill(0)
        synchronizer.publish(network, 0)
        reader.refresh(target)
        for version in (1, 2):
            network.fill(version)
            synchronizer.publish(network, version)
        synchronizer._words[word] = value
        assert reader.refresh(target) == 0
        assert target.number() == 0
        with pytest.raises(TimeoutError):
            synchronizer.reader().refresh(target)
        synchronizer.close()
