"""Segment: its arrays lie in one memory, one after the other, and its shape says how large that is."""

import numpy as np
import pytest

from keisei.core.segment import Segment, SegmentShape

SHAPES = [SegmentShape(6, 3), SegmentShape(1, 1, 5), SegmentShape(3, 5, 7), SegmentShape(0, 4)]


def test_a_position_of_shogi_takes_104_bytes_and_a_move_with_its_numbers_121() -> None:
    shape = SegmentShape(64, 32)
    assert shape == SegmentShape(64, 32, 104)
    assert shape.moves == 2048
    assert shape.nbytes == 2048 * (104 + 4 * 4 + 1) + 32 * (104 + 4)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_array_has_its_own_aligned_part_of_the_memory(shape: SegmentShape) -> None:
    memory = bytearray(shape.nbytes + 3)
    segment = Segment.over(memory, shape)
    arrays = [getattr(segment, name) for name in Segment.__slots__]
    assert sum(array.nbytes for array in arrays) == shape.nbytes
    for number, array in enumerate(arrays, 1):
        assert array.flags.aligned
        array.view(np.uint8)[...] = number
    for number, array in enumerate(arrays, 1):
        assert (array.view(np.uint8) == number).all(), "another array lies there too"
        assert memory.count(number) == array.nbytes
    assert bytes(memory[shape.nbytes :]) == bytes(3)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_segment_knows_its_shape(shape: SegmentShape) -> None:
    segment = Segment.empty(shape)
    assert segment.shape == shape
    assert len(segment) == shape.moves
    assert not any(getattr(segment, name).any() for name in Segment.__slots__)
    assert segment.packed.shape == (shape.steps, shape.streams, shape.packed_bytes)
    assert segment.after.shape == (shape.streams, shape.packed_bytes)
    assert segment.bootstrap.shape == (shape.streams,)


def test_memory_that_is_too_small_is_refused() -> None:
    with pytest.raises(TypeError, match="buffer is too small"):
        Segment.over(bytearray(SHAPES[0].nbytes - 1), SHAPES[0])
