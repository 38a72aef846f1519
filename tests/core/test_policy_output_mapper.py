"""Moves as outputs of the network: the mapper's actions, and the labels of the policy head."""

from collections import defaultdict

import numpy as np
import pytest
from conftest import random_play
from encoding_reference import ACTIONS, NO_LABEL, Action, action_of, every_action, label_of

from keisei.core import policy_output_mapper
from keisei.core.policy_labels import ACTION_LABELS, LABELS
from keisei.shogi import Color, Move, ShogiGame, encoding
from keisei.utils import PolicyOutputMapper

EVERY_ACTION = list(every_action())
STARTS = [
    None,
    "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1",
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "1+P+L+N+S+B+R2/4K4/9/9/9/9/9/4k4/2+r+b+s+n+l+p1 w GSNL8Pgsnl8p 1",
]


@pytest.fixture(scope="module")
def mapper() -> PolicyOutputMapper:
    return PolicyOutputMapper()


# ------------------------------------------------------------------------ the mapper


def test_the_mapper_is_one_class_under_both_names() -> None:
    assert PolicyOutputMapper is policy_output_mapper.PolicyOutputMapper


@pytest.mark.parametrize("color", Color)
def test_every_index_is_a_move_and_back(mapper: PolicyOutputMapper, color: Color) -> None:
    assert mapper.total_actions == ACTIONS == len(EVERY_ACTION)
    usi = [action.usi(str(color)[0]) for action in EVERY_ACTION]
    moves = [mapper.index_to_move(index, color) for index in range(ACTIONS)]
    assert all(isinstance(move, Move) for move in moves)
    assert [str(move) for move in moves] == usi
    for written in (moves, usi):
        assert [mapper.move_to_index(move, color) for move in written] == list(range(ACTIONS))


def test_many_indices_are_mapped_as_one_by_one(mapper: PolicyOutputMapper) -> None:
    indices = np.random.default_rng(1).permutation(ACTIONS).astype(np.int32)
    turns = [Color(int(index) % 2) for index in indices]
    moves = mapper.indices_to_moves(indices, turns)
    assert moves == [mapper.index_to_move(int(i), turn) for i, turn in zip(indices, turns, strict=True)]
    for written in (moves, [str(move) for move in moves]):
        back = mapper.moves_to_indices(written, turns)
        assert back.dtype == np.int32
        assert np.array_equal(back, indices)
    assert mapper.moves_to_indices([], []).shape == (0,)
    assert mapper.indices_to_moves([], []) == []


def test_the_legal_indices_are_those_of_the_legal_moves(mapper: PolicyOutputMapper) -> None:
    for number, start in enumerate(STARTS):
        for game in random_play(number, 120, start):
            expected = sorted(action_of(str(move), str(game.turn)[0]) for move in game.legal_moves())
            indices = mapper.legal_indices(game)
            assert indices.dtype == np.int32
            assert sorted(indices.tolist()) == expected, game.sfen()
            assert mapper.indices_to_moves(indices, [game.turn] * len(indices)) == game.legal_moves()
            mask = mapper.legal_mask(game)
            assert (mask.shape, mask.dtype) == ((ACTIONS,), np.dtype(np.bool_))
            assert np.flatnonzero(mask).tolist() == expected, game.sfen()
            assert np.array_equal(mapper.legal_masks(encoding.pack([game])), mask[None])


def test_a_game_that_is_over_has_no_legal_index(mapper: PolicyOutputMapper) -> None:
    long_enough = ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b R 101", max_moves=100)
    resigned = ShogiGame()
    resigned.resign()
    mated = ShogiGame("4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1")
    for game in (long_enough, resigned, mated):
        assert game.outcome() is not None
        assert mapper.legal_indices(game).shape == (0,)
        assert mapper.legal_indices(game).dtype == np.int32
        assert mapper.legal_mask(game).shape == (ACTIONS,)
        assert not mapper.legal_mask(game).any()


def test_what_is_no_index_or_no_move_is_refused(mapper: PolicyOutputMapper) -> None:
    for index in (-1, ACTIONS, 2**40):
        with pytest.raises(ValueError, match=f"action is {index}, expected 0 to 13526"):
            mapper.index_to_move(index, Color.WHITE)
        with pytest.raises(ValueError, match=f"action is {index}, expected 0 to 13526"):
            mapper.indices_to_moves([0, index], [Color.WHITE, Color.WHITE])
    for text in ("", "7g7g", "K*5e"):
        with pytest.raises(ValueError, match="bad usi move"):
            mapper.move_to_index(text, Color.WHITE)
        with pytest.raises(ValueError, match="bad usi move"):
            mapper.moves_to_indices(["7g7f", text], [Color.BLACK, Color.BLACK])
    for turns in ([], [Color.BLACK], [Color.BLACK] * 3):
        with pytest.raises(ValueError, match="one side each"):
            mapper.moves_to_indices(["7g7f", "3c3d"], turns)
        with pytest.raises(ValueError, match="one side each"):
            mapper.indices_to_moves([0, 1], turns)


# ------------------------------------------------------------------------ labels


def test_the_labels_are_those_of_the_reference() -> None:
    assert LABELS == 2_187
    assert (ACTION_LABELS.shape, ACTION_LABELS.dtype) == ((ACTIONS,), np.dtype(np.int16))
    assert ACTION_LABELS.tolist() == [label_of(action) for action in EVERY_ACTION]
    assert not ACTION_LABELS.flags.writeable


@pytest.mark.parametrize(
    ("usi", "label"),
    [
        ("7g7f", 47),  # up, to row 5 col 2
        ("8h2b+", 12 * 81 + 16),  # up-right with promotion, to row 1 col 7
        ("2h2i", 5 * 81 + 79),
        ("5i6h", 1 * 81 + 66),
        ("2h9h", 3 * 81 + 63),
        ("2i3g", 8 * 81 + 60),  # the knight to the left
        ("8i7g", 9 * 81 + 56),
        ("4e3c+", 19 * 81 + 24),
        ("P*5e", 20 * 81 + 40),
        ("R*1i", 26 * 81 + 80),
        ("3g2i", NO_LABEL),  # no knight jumps back
        ("9a1b", NO_LABEL),
    ],
)
def test_some_labels_by_hand(mapper: PolicyOutputMapper, usi: str, label: int) -> None:
    assert ACTION_LABELS[mapper.move_to_index(usi, Color.BLACK)] == label


def test_the_labels_are_those_of_another_engine() -> None:
    policy = pytest.importorskip("rsshogi.policy", reason="rsshogi has no build for this Python")
    types = pytest.importorskip("rsshogi.types")
    colors = {"b": types.Color.BLACK, "w": types.Color.WHITE}
    assert policy.MOVE_LABEL_COUNT == LABELS
    for index, action in enumerate(EVERY_ACTION):
        if ACTION_LABELS[index] == NO_LABEL:
            continue
        for side, color in colors.items():
            plane, square = divmod(policy.move_label(action.usi(side), color), 81)
            if plane >= 20:
                plane = 20 + "PLNSGBR".index("PLNSBRG"[plane - 20])
            file, rank = divmod(square, 9)  # it counts the squares down the files, from the right
            assert ACTION_LABELS[index] == plane * 81 + rank * 9 + 8 - file, action


def test_legal_moves_have_labels_and_share_none(mapper: PolicyOutputMapper) -> None:
    for seed in range(24):
        for game in random_play(seed, 150, STARTS[seed % len(STARTS)]):
            labels = ACTION_LABELS[mapper.legal_indices(game)]
            assert (labels >= 0).all(), game.sfen()
            assert len(np.unique(labels)) == len(labels), game.sfen()


def squares_between(action: Action) -> set[int]:
    """The squares strictly between origin and target, which are on one line."""
    assert action.origin is not None
    (row, column), (last_row, last_column) = divmod(action.origin, 9), divmod(action.target, 9)
    steps = max(abs(last_row - row), abs(last_column - column))
    assert (last_row - row) % steps == (last_column - column) % steps == 0, "not on a line"
    row_step, column_step = (last_row - row) // steps, (last_column - column) // steps
    return {(row + row_step * i) * 9 + column + column_step * i for i in range(1, steps)}


def test_no_two_actions_of_a_label_can_be_legal_at_once() -> None:
    """Of two origins the nearer one is in the way of the farther, and what jumps is alone with its label."""
    sharing: dict[int, list[Action]] = defaultdict(list)
    for action, label in zip(EVERY_ACTION, ACTION_LABELS.tolist(), strict=True):
        if label != NO_LABEL:
            assert 0 <= label < LABELS
            sharing[label].append(action)
    assert max(len(actions) for actions in sharing.values()) == 8
    for label, actions in sharing.items():
        plane, target = divmod(label, 81)
        assert {(action.target, action.promotes) for action in actions} == {(target, 10 <= plane < 20)}
        if plane in (8, 9, 18, 19) or plane >= 20:
            assert len(actions) == 1
            continue
        nearest_first = sorted(actions, key=lambda action: len(squares_between(action)))
        for nearer in range(len(actions)):
            for farther in nearest_first[nearer + 1 :]:
                assert nearest_first[nearer].origin in squares_between(farther), label
