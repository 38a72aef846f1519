"""ExperienceBuffer: what goes in comes out, once, with its advantage."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.core.advantages import advantages_and_returns
from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.segment import Segment, SegmentShape
from keisei.core.self_play import Collected

FIELDS = ("packed", "actions", "log_probs", "values", "advantages", "returns")


def numbered_segment(steps: int, streams: int, first: int = 0, width: int = 5) -> Segment:
    """Every move is told by its action, and every field of it differs."""
    segment = Segment.empty(SegmentShape(steps, streams, width))
    actions = np.arange(first, first + steps * streams).reshape(steps, streams)
    random = np.random.default_rng(first + 1)
    segment.actions[:] = actions
    segment.packed[:] = (actions[:, :, None] * 7 + np.arange(width)) % 251
    segment.log_probs[:] = -actions / 1000 - 1
    segment.values[:] = random.uniform(-1, 1, actions.shape)
    segment.rewards[:] = random.uniform(-1, 1, actions.shape)
    segment.ended[:] = random.random(actions.shape) < 0.3
    segment.bootstrap[:] = random.uniform(-1, 1, streams)
    return segment


def new_buffer() -> ExperienceBuffer:
    return ExperienceBuffer(gamma=0.9, gae_lambda=0.8)


def add_singly(buffer: ExperienceBuffer, segment: Segment, stream: int) -> None:
    for t in range(len(segment.actions)):
        buffer.add(
            segment.packed[t, stream].copy(),
            int(segment.actions[t, stream]),
            float(segment.log_probs[t, stream]),
            float(segment.values[t, stream]),
            float(segment.rewards[t, stream]),
            ended=bool(segment.ended[t, stream]),
        )
    buffer.close(float(segment.bootstrap[stream]))


def expected_moves(*segments: Segment) -> dict[int, tuple[object, ...]]:
    """All fields of each move, by its action."""
    moves = {}
    for s in segments:
        advantages, returns = advantages_and_returns(
            s.rewards, s.values, s.ended, s.bootstrap, gamma=0.9, gae_lambda=0.8
        )
        for at in np.ndindex(s.actions.shape):
            moves[int(s.actions[at])] = (
                s.packed[at].tobytes(),
                *(float(array[at]) for array in (s.log_probs, s.values, advantages, returns)),
            )
    return moves


def moves_of(batches: Sequence[Minibatch]) -> list[tuple[int, tuple[object, ...]]]:
    return [
        (
            int(batch.actions[i]),
            (
                batch.packed[i].tobytes(),
                *(float(getattr(batch, name)[i]) for name in FIELDS[2:]),
            ),
        )
        for batch in batches
        for i in range(len(batch.actions))
    ]


def test_moves_one_by_one_are_the_same_as_a_segment() -> None:
    segment = numbered_segment(9, 1)
    assert segment.ended.any()
    assert not segment.ended[-1, 0]
    whole, singly = new_buffer(), new_buffer()
    whole.add_batch(segment)
    add_singly(singly, segment, 0)
    assert len(whole) == len(singly) == 9
    for name in FIELDS:
        one, other = getattr(whole.all(), name), getattr(singly.all(), name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other), name


def test_several_streams_one_after_the_other() -> None:
    segment, buffer = numbered_segment(6, 3), new_buffer()
    for stream in range(3):
        add_singly(buffer, segment, stream)
    assert dict(moves_of([buffer.all()])) == expected_moves(segment)


def test_a_game_that_is_over_needs_no_value_after_it() -> None:
    buffer = new_buffer()
    buffer.add(np.zeros(3, np.uint8), 1, -1.0, 0.25, 1.0, ended=True)
    buffer.close()
    assert buffer.all().advantages.tolist() == [0.75]
    assert buffer.all().returns.tolist() == [1.0]


def test_segments_of_any_sizes_come_together() -> None:
    segments = [numbered_segment(4, 3), numbered_segment(1, 1, 100), numbered_segment(7, 2, 200)]
    together, other = new_buffer(), new_buffer()
    together.add_batch(segments[0])
    together.add_batch(Segment.empty(SegmentShape(0, 4, 5)))
    for segment in segments[1:]:
        other.add_batch(segment)
    together.merge(other)
    assert len(together) == 12 + 1 + 14
    moves = together.all()
    assert moves.packed.shape == (27, 5)
    assert moves.actions.tolist() == [*range(12), 100, *range(200, 214)], "in the order in which they came"
    assert dict(moves_of([moves])) == expected_moves(*segments)
    assert len(other) == 15
    assert dict(moves_of([other.all()])) == expected_moves(*segments[1:])
    together.add_batch(numbered_segment(2, 2, 300))
    assert len(together.all().actions) == len(together) == 31


class Played(NamedTuple):
    segment: Any


@pytest.mark.parametrize("kind", [list, tuple])
def test_segments_come_alone_in_what_was_played_and_in_sequences(kind: type) -> None:
    segments = [numbered_segment(2, 3, 100 * i) for i in range(6)]
    collected = Collected(segments[1], [])
    buffer = new_buffer()
    buffer.add_batch(segments[0])
    buffer.add_batch(collected)
    buffer.add_batch(kind([segments[2], Collected(segments[3], []), Played(segments[4])]))
    buffer.add_batch(Played(segments[5]))
    buffer.add_batch([])
    expected = new_buffer()
    for segment in segments:
        expected.add_batch(segment)
    assert len(buffer) == 36
    for name in FIELDS:
        assert np.array_equal(getattr(buffer.all(), name), getattr(expected.all(), name)), name


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (None, "NoneType"),
        ({"actions": 1}, "dict"),
        (np.zeros(3), "ndarray"),
        (iter([numbered_segment(2, 2)]), "list_iterator"),
        ([numbered_segment(2, 2), 7], "int"),
        ([[numbered_segment(2, 2)]], "list"),
        (Played(numbered_segment(2, 2).packed), "Played"),
        ((Played(None),), "Played"),
    ],
)
def test_what_has_no_moves_is_refused_and_nothing_is_taken(wrong: Any, kind: str) -> None:
    buffer = new_buffer()
    message = "^expected a Segment, an object with a .segment, or a sequence of them, got "
    with pytest.raises(TypeError, match=f"{message}{kind}$"):
        buffer.add_batch(wrong)
    assert len(buffer) == 0


def test_buffers_are_merged_in_their_order_or_not_at_all() -> None:
    segments = [numbered_segment(3, 2, 100 * i) for i in range(4)]
    whole, *others = (new_buffer() for _ in segments)
    for buffer, segment in zip((whole, *others), segments, strict=True):
        buffer.add_batch(segment)
    others[-1].add(np.zeros(5, np.uint8), 1, -1.0, 0.0, 0.0, ended=True)
    with pytest.raises(ValueError, match="1 single moves are not closed"):
        whole.merge_buffers(others)
    assert len(whole) == 6
    others[-1].clear()
    others[-1].add_batch(segments[-1])
    whole.merge_buffers(others)
    assert whole.all().actions.tolist() == [100 * i + move for i in range(4) for move in range(6)]
    assert dict(moves_of([whole.all()])) == expected_moves(*segments)
    assert [len(other) for other in others] == [6, 6, 6]
    whole.merge_buffers([])
    assert len(whole) == 24


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=4), st.integers(1, 9))
def test_every_move_comes_once_in_an_epoch(shapes: list[tuple[int, int]], size: int) -> None:
    segments = [numbered_segment(*shape, 100 * i) for i, shape in enumerate(shapes)]
    buffer = new_buffer()
    for segment in segments:
        buffer.add_batch(segment)
    batches = list(buffer.minibatches(size, np.random.default_rng(1)))
    moves = moves_of(batches)
    assert len(moves) == len(buffer)
    assert dict(moves) == expected_moves(*segments)
    assert all(isinstance(batch.actions, np.ndarray) for batch in batches)


@pytest.mark.parametrize(
    ("moves", "size", "sizes"),
    [
        (12, 4, [4, 4, 4]),
        (14, 4, [4, 4, 4, 2]),
        (13, 4, [4, 4, 5]),  # a single move has no deviation to be normalised by
        (5, 4, [5]),
        (4, 8, [4]),
        (1, 8, [1]),
        (2, 1, [2]),
        (4, 1, [1, 1, 2]),
    ],
)
def test_the_last_minibatch_may_be_smaller_but_not_a_single_move(
    moves: int, size: int, sizes: list[int]
) -> None:
    buffer = new_buffer()
    buffer.add_batch(numbered_segment(moves, 1))
    batches = list(buffer.minibatches(size, np.random.default_rng(1)))
    assert [len(batch.actions) for batch in batches] == sizes


def test_the_order_is_the_generators() -> None:
    buffer = new_buffer()
    buffer.add_batch(numbered_segment(20, 10))

    def order(seed: int) -> list[int]:
        batches = buffer.minibatches(16, np.random.default_rng(seed))
        return [action for batch in batches for action in batch.actions.tolist()]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(1) == np.random.default_rng(1).permutation(200).tolist()
    assert buffer.all().actions.tolist() == list(range(200)), "the buffer itself is not shuffled"


def test_what_is_not_there_or_not_closed_is_an_error() -> None:
    buffer = new_buffer()
    buffer.close()
    with pytest.raises(ValueError, match="buffer is empty"):
        buffer.all()
    with pytest.raises(ValueError, match="buffer is empty"):
        next(buffer.minibatches(4, np.random.default_rng(1)))
    buffer.add_batch(numbered_segment(2, 2))
    for _ in range(2):
        buffer.add(np.zeros(5, np.uint8), 1, -1.0, 0.0, 0.0, ended=False)
    assert len(buffer) == 4
    with pytest.raises(ValueError, match="2 single moves are not closed"):
        buffer.all()
    other = new_buffer()
    with pytest.raises(ValueError, match="2 single moves are not closed"):
        other.merge(buffer)
    buffer.close(0.5)
    other.merge(buffer)
    assert len(buffer) == len(other) == len(buffer.all().actions) == 6


def test_it_can_be_emptied() -> None:
    buffer = new_buffer()
    buffer.add_batch(numbered_segment(2, 2))
    buffer.add(np.zeros(5, np.uint8), 1, -1.0, 0.0, 0.0, ended=False)
    buffer.clear()
    assert len(buffer) == 0
    with pytest.raises(ValueError, match="buffer is empty"):
        buffer.all()
    add_singly(buffer, numbered_segment(3, 1), 0)
    assert buffer.all().actions.tolist() == [0, 1, 2]
