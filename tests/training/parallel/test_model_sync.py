"""ModelSynchronizer: weights arrive complete and never go back, whoever writes, reads or dies meanwhile."""

import multiprocessing
import random
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from weights_play import Weights, read_on, write_on

from keisei.training.parallel.model_sync import ModelSynchronizer

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["keisei.training.parallel.self_play_worker"])


def array_of(values: list[float]) -> dict[str, npt.NDArray[Any]]:
    return {"weight": np.array(values, np.float32)}


# ------------------------------------------------------------------------ publish and read


def test_what_is_published_is_read() -> None:
    source, target = Weights(), Weights()
    synchronizer = ModelSynchronizer(source.arrays)
    reader = synchronizer.reader()
    generator = np.random.default_rng(1)
    for version in (0, 1, 5, 6, 7):
        for array in source.arrays.values():
            array[...] = generator.normal(size=array.shape)
        source.arrays["count"].fill(2**40 + version)
        synchronizer.publish(source.arrays, version)
        assert reader.refresh(target.load) == version == reader.version == synchronizer.version
        for name, array in source.arrays.items():
            assert target.arrays[name].tobytes() == array.tobytes(), name
    target.fill(3)
    assert reader.refresh(target.load) == 7
    assert target.number() == 3  # nothing newer, so nothing is loaded
    synchronizer.close()
    synchronizer.close()


def test_a_late_reader_gets_the_newest_only() -> None:
    source, target = Weights(), Weights()
    synchronizer = ModelSynchronizer(source.arrays)
    for version in range(4):
        source.fill(version)
        synchronizer.publish(source.arrays, version)
    assert synchronizer.reader().refresh(target.load) == 3
    assert target.number() == 3
    synchronizer.close()


def test_weights_in_other_memory_formats_arrive() -> None:
    weights = {"weight": np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1)}
    synchronizer = ModelSynchronizer(weights)
    synchronizer.publish(weights, 0)
    read: dict[str, npt.NDArray[Any]] = {}
    synchronizer.reader().refresh(read.update)
    np.testing.assert_array_equal(read["weight"], weights["weight"])
    synchronizer.close()


def test_without_weights_a_reader_gives_up_in_the_end() -> None:
    synchronizer = ModelSynchronizer(Weights().arrays)
    assert synchronizer.version == -1
    with pytest.raises(TimeoutError, match=r"^no complete weights in 100 tries$"):
        synchronizer.reader().refresh(Weights().load)
    synchronizer.close()


@pytest.mark.parametrize("version", [2, 3])
def test_only_newer_weights_are_published(version: int) -> None:
    source = Weights()
    synchronizer = ModelSynchronizer(source.arrays)
    synchronizer.publish(source.arrays, 3)
    with pytest.raises(ValueError, match=f"^weights version {version} is not newer than 3$"):
        synchronizer.publish(source.arrays, version)
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
    synchronizer = ModelSynchronizer(source.arrays, interval=interval)
    published, moves = [], 0
    for version in range(4, 10):
        if synchronizer.is_due(version, moves):
            synchronizer.publish(source.arrays, version)
            published.append(version)
            moves = 0
        assert not synchronizer.is_due(synchronizer.version, 10_000)  # they have it
        moves += 100
    assert published == due
    synchronizer.close()


def test_every_update_is_due_by_default_also_without_new_moves() -> None:
    source = Weights()
    synchronizer = ModelSynchronizer(source.arrays)
    synchronizer.publish(source.arrays, 0)
    assert synchronizer.is_due(1, 0)
    synchronizer.close()


def test_statistics_count_broadcasts_bytes_and_time() -> None:
    source = Weights()
    synchronizer = ModelSynchronizer(source.arrays)
    assert (synchronizer.statistics().count, synchronizer.statistics().version) == (0, -1)
    synchronizer.publish(source.arrays, 3)
    first = synchronizer.statistics()
    synchronizer.publish(source.arrays, 4)
    second = synchronizer.statistics()
    assert (first.count, first.version, second.count, second.version) == (1, 3, 2, 4)
    needed = sum(array.nbytes for array in source.arrays.values())
    assert needed <= first.bytes <= needed + 8 * len(source.arrays)
    assert first.milliseconds == first.total_milliseconds > 0
    assert second.total_milliseconds == pytest.approx(first.milliseconds + second.milliseconds)
    synchronizer.close()


# ------------------------------------------------------------------------ half precision


def test_half_precision_rounds_as_numpy_does_and_leaves_integers_alone() -> None:
    values = [0.0, -0.0, 1.0, 1 / 3, 65504.0, 65519.0, 6e-8, 2.9e-8, 1e-10, 2049.0, 2051.0, -1.00048828125]
    source = array_of(values)
    source["count"] = np.array([2**53 + 1, -(2**62)])
    source["flags"] = np.array([True, False, True])
    synchronizer = ModelSynchronizer(source, compressed=True)
    synchronizer.publish(source, 0)
    read: dict[str, npt.NDArray[Any]] = {}
    synchronizer.reader().refresh(read.update)
    assert read["weight"].tobytes() == source["weight"].astype(np.float16).tobytes()
    assert read["count"].tolist() == [2**53 + 1, -(2**62)]
    assert read["flags"].tolist() == [True, False, True]
    synchronizer.close()


def test_half_precision_takes_half_the_bytes() -> None:
    whole, half = (ModelSynchronizer(Weights().arrays, compressed=compressed) for compressed in (False, True))
    assert whole.statistics().bytes == pytest.approx(2 * half.statistics().bytes, rel=0.01)
    for synchronizer in (whole, half):
        synchronizer.close()


@pytest.mark.parametrize("value", [65520.0, -1e30, float("inf"), float("nan")])
def test_half_precision_refuses_what_it_cannot_hold_and_the_old_weights_stay(value: float) -> None:
    good, bad = array_of([1.0, 2.0]), array_of([3.0, value])
    target, fresh = array_of([0.0, 0.0]), array_of([0.0, 0.0])
    synchronizer = ModelSynchronizer(good, compressed=True)
    reader = synchronizer.reader()
    synchronizer.publish(good, 0)
    for _ in range(3):
        with pytest.raises(
            OverflowError, match=r"^weight has .*; set training\.parallel\.compression_enabled: f"
        ):
            synchronizer.publish(bad, 1)
        assert reader.refresh(target.update) == 0
        assert target["weight"].tolist() == [1.0, 2.0]
    assert synchronizer.reader().refresh(fresh.update) == 0
    assert fresh["weight"].tolist() == [1.0, 2.0]
    synchronizer.publish(good, 1)
    assert reader.refresh(target.update) == 1
    synchronizer.close()


# ------------------------------------------------------------------------ readers, writers and death


def test_a_reader_never_sees_torn_weights_nor_older_ones() -> None:
    weights = Weights()
    synchronizer = ModelSynchronizer(weights.arrays)
    synchronizer.publish(weights.arrays, 0)
    mine, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=read_on, args=(synchronizer.reader(), theirs, 2.5))
    process.start()
    assert mine.recv() == "ready"
    version = 0
    while not mine.poll():
        version += 1
        weights.fill(version)
        synchronizer.publish(weights.arrays, version)
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
        weights = Weights()
        memory = ModelSynchronizer(weights.arrays)
        reader = memory.reader()
        mine, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=write_on, args=(reader, theirs))
        process.start()
        assert mine.recv() == "begun"
        time.sleep(choose.random() * 0.02)
        process.kill()
        process.join(30)
        process.close()
        version = reader.refresh(weights.load)
        assert weights.number() == version >= 0
        in_the_middle += any(int(memory._words[word]) % 2 for word in (4, 8))
        memory.close()
    assert in_the_middle > 3


def test_weights_that_are_being_written_for_ever_leave_the_old_ones_in_place() -> None:
    """The newest buffer has an odd sequence number, or a checksum that does not match its data."""
    weights, target = Weights(), Weights()
    for word, value in ((4, 1), (6, 12345)):
        synchronizer = ModelSynchronizer(weights.arrays)
        reader = synchronizer.reader()
        weights.fill(0)
        synchronizer.publish(weights.arrays, 0)
        reader.refresh(target.load)
        for version in (1, 2):
            weights.fill(version)
            synchronizer.publish(weights.arrays, version)
        synchronizer._words[word] = value
        assert reader.refresh(target.load) == 0
        assert target.number() == 0
        with pytest.raises(TimeoutError):
            synchronizer.reader().refresh(target.load)
        synchronizer.close()
