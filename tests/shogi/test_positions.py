"""Positions: the contents match the encodings, whatever they were made from."""

import numpy as np
import pytest
from conftest import random_play

from keisei.shogi import encoding
from keisei.shogi.positions import Positions
from keisei.shogi.vector import Batch, VectorGames


@pytest.fixture
def packed() -> encoding.Packed:
    return np.concatenate([encoding.pack([game]) for game in random_play(3, 40) if game.legal_moves()])


def assert_same(found: Positions, packed: encoding.Packed) -> None:
    offsets, actions = encoding.legal_actions(packed)
    assert np.array_equal(found.planes, encoding.planes(packed))
    assert np.array_equal(found.offsets, offsets)
    assert np.array_equal(found.actions, actions)
    assert len(found) == len(packed)
    for row in range(len(packed)):
        mask = encoding.legal_mask(packed[row : row + 1])[0]
        assert sorted(found.legal(row).tolist()) == np.flatnonzero(mask).tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_packed_positions_are_decoded(packed: encoding.Packed, threads: int) -> None:
    assert_same(Positions.of_packed(packed, threads), packed)


def test_games_are_seen_where_they_stand() -> None:
    games = [game.copy() for game in random_play(5, 12) if game.legal_moves()]
    assert_same(Positions.of_games(games), encoding.pack(games))


def test_there_may_be_none() -> None:
    none = Positions.of_packed(np.zeros((0, encoding.PACKED_BYTES), np.uint8))
    assert none.planes.shape == (0, 46, 9, 9)
    assert none.offsets.tolist() == [0]
    assert len(none) == len(none.actions) == 0


def test_legal_actions_of_a_position_that_is_not_there_are_refused(packed: encoding.Packed) -> None:
    some = Positions.of_packed(packed[:3])
    for index in (-1, 3):
        with pytest.raises(IndexError, match=f"position is {index}, expected 0 to 2"):
            some.legal(index)


def test_a_batch_has_them_as_views_that_end_with_the_last_legal_action() -> None:
    games, batch = VectorGames(5, seed=1), Batch.empty(5)
    games.observe(batch)
    batch.actions[batch.offsets[-1] :] = -1
    for _ in range(3):
        positions = batch.positions
        assert_same(positions, batch.packed)
        assert positions.planes is batch.planes
        assert np.shares_memory(positions.actions, batch.actions)
        games.step(np.array([positions.legal(slot)[-1] for slot in range(5)]), batch)


def test_a_batch_without_planes_has_none() -> None:
    with pytest.raises(ValueError, match="the batch has no planes, expected one created with planes=True"):
        _ = Batch.empty(2, planes=False).positions
