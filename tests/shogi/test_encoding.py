"""The planes of a position and the numbering of its moves, against the slow reference."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import random_play, table
from encoding_play import (
    ALL_PROMOTED,
    ENDGAME,
    FULL_HAND,
    FULL_HAND_OF_WHITE,
    KINGS,
    OUTS,
    Rows,
    Seen,
    actions_of_each,
    positions,
)
from encoding_reference import ACTIONS, action_of, every_action, network_square, planes
from reference import ReferenceGame, flip_sfen, flip_usi

from keisei.shogi import START_SFEN, Color, Move, ShogiGame, encoding


@pytest.fixture(scope="module")
def seen() -> list[Seen]:
    return positions()


@pytest.fixture(scope="module")
def packed() -> Rows:
    return encoding.pack([one.game for one in positions()])


# ------------------------------------------------------------------------------------------ planes


def test_the_planes_are_those_of_the_reference(seen: list[Seen], packed: Rows) -> None:
    assert (encoding.PLANES, encoding.ACTIONS, encoding.PACKED_BYTES) == (46, 13_527, 104)
    assert (packed.shape, packed.dtype) == ((len(seen), 104), np.dtype(np.uint8))
    result = encoding.planes(packed)
    assert (result.shape, result.dtype) == ((len(seen), 46, 9, 9), np.dtype(np.float32))
    for one, got in zip(seen, result, strict=True):
        expected = planes(one.sfen, one.game.max_moves, one.earlier)
        wrong = [plane for plane in range(46) if not np.array_equal(got[plane], expected[plane])]
        assert not wrong, (one.sfen, one.game.max_moves, one.earlier)


def test_the_positions_compared_show_every_plane(seen: list[Seen], packed: Rows) -> None:
    result = encoding.planes(packed)
    assert (result.max(axis=(0, 2, 3)) > 0).all()
    assert (result.min(axis=(0, 2, 3)) == 0).all()
    assert min(Counter(one.side for one in seen).values()) > 2_000
    earlier = Counter(one.earlier for one in seen)
    assert min(earlier[times] for times in (1, 2, 3)) > 30
    assert result[:, 45, 0, 0].sum() > 200


def test_a_position_given_by_its_sfen_has_no_earlier_ones(seen: list[Seen]) -> None:
    for max_moves in (512, None, 77):
        some = seen[::50]
        result = encoding.planes(encoding.pack_sfens([one.sfen for one in some], max_moves=max_moves))
        for one, got in zip(some, result, strict=True):
            assert np.array_equal(got, planes(one.sfen, max_moves, 0)), one.sfen
    assert np.array_equal(encoding.pack_sfens([KINGS]), encoding.pack_sfens([KINGS], max_moves=512))


def test_the_planes_of_the_start_by_hand() -> None:
    start = encoding.planes(encoding.pack([ShogiGame()]))[0]
    assert (start[0, 6] == 1).all()  # own pawns on rank g
    assert (start[14, 2] == 1).all()
    for plane, row, column in [(5, 7, 1), (6, 7, 7), (7, 8, 4), (19, 1, 7), (20, 1, 1), (21, 0, 4)]:
        assert start[plane].sum() == start[plane, row, column] == 1
    assert start[:28].sum() == 40
    assert (start[42] == 1).all()
    assert not start[28:42].any()
    assert not start[43:].any()


# ----------------------------------------------------------------------------------------- actions


def test_the_legal_actions_are_those_of_the_reference(seen: list[Seen], packed: Rows) -> None:
    for number, (one, got) in enumerate(zip(seen, actions_of_each(packed), strict=True)):
        # A game that starts here, because the game itself may be over by repetition or length.
        from_here = ShogiGame(f"{one.sfen.rpartition(' ')[0]} 1", max_moves=None, declaration="off")
        moves = {str(move) for move in from_here.legal_moves()}
        if number % 20 == 0:
            assert moves == ReferenceGame(one.sfen).legal_moves(), one.sfen
        assert got == sorted(action_of(usi, one.side) for usi in moves), one.sfen


def test_the_mask_is_true_for_the_legal_actions_alone(packed: Rows) -> None:
    rows = packed[::7].copy()
    mask = encoding.legal_mask(rows)
    assert (mask.shape, mask.dtype) == ((len(rows), ACTIONS), np.dtype(np.bool_))
    assert [np.flatnonzero(row).tolist() for row in mask] == actions_of_each(rows)


@pytest.mark.parametrize("color", Color)
def test_every_action_is_a_move_and_back(color: Color) -> None:
    side = str(color)[0]
    every = list(every_action())
    assert len(every) == ACTIONS
    for number, action in enumerate(every):
        usi = action.usi(side)
        assert number == action_of(usi, side)
        assert encoding.action_of(usi, color) == number
        move = encoding.move_of(number, color)
        assert isinstance(move, Move)
        assert str(move) == usi
        assert encoding.action_of(move, color) == number


@pytest.mark.parametrize(
    ("black", "white", "action"),
    [
        ("7g7f", "3c3d", 9_054),  # row 6 col 2 = 56 to 47: 56 * 160 + 47 * 2
        ("8h2b+", "2b8h+", 10_273),  # 64 to 16: 64 * 160 + 16 * 2 + 1
        ("2h2i", "8b8a", 11_356),  # 70 to 79, past the origin: 70 * 160 + 78 * 2
        ("8i7g", "2a3c", 11_792),  # 73 to 56
        ("9a8a", "1i2i", 0),
        ("1i2i+", "9a8a+", 12_959),
        ("P*9a", "P*1i", 12_960),
        ("P*5e", "P*5e", 13_240),  # 12960 + 40 * 7
        ("G*7f", "G*3d", 13_293),  # 12960 + 47 * 7 + 4
        ("R*1i", "R*9a", 13_526),
    ],
)
def test_some_actions_by_hand(black: str, white: str, action: int) -> None:
    assert encoding.action_of(black, Color.BLACK) == encoding.action_of(white, Color.WHITE) == action
    assert str(encoding.move_of(action, Color.BLACK)) == black
    assert str(encoding.move_of(action, Color.WHITE)) == white


def test_exchanging_the_colours_changes_nothing_but_the_plane_of_the_colour(seen: list[Seen]) -> None:
    sfens = [one.sfen for one in seen]
    here, there = encoding.pack_sfens(sfens), encoding.pack_sfens([flip_sfen(sfen) for sfen in sfens])
    assert actions_of_each(here) == actions_of_each(there)
    ours, theirs = encoding.planes(here), encoding.planes(there)
    assert (ours[:, 42] + theirs[:, 42] == 1).all()
    ours[:, 42] = theirs[:, 42] = 0
    assert np.array_equal(ours, theirs)
    for one in seen[::20]:
        for move in one.game.legal_moves():
            flipped = encoding.action_of(flip_usi(str(move)), one.game.turn.opponent)
            assert encoding.action_of(move, one.game.turn) == flipped


def test_20000_positions_have_the_legal_moves_of_another_engine() -> None:
    core = pytest.importorskip("rsshogi.core", reason="rsshogi has no build for this Python")

    @cache
    def theirs(value: int, side: str) -> int:
        move = core.Move(value)
        target = network_square(side, (move.to_sq.file + 1, move.to_sq.rank + 1))
        if move.is_drop():
            return 12_960 + target * 7 + "PLNSGBR".index(move.dropped_piece_type.to_usi())
        origin = network_square(side, (move.from_sq.file + 1, move.from_sq.rank + 1))
        return origin * 160 + (target - 1 if target > origin else target) * 2 + int(move.is_promotion())

    sfens: list[str] = []
    expected: list[list[int]] = []
    starts = (START_SFEN, ENDGAME, FULL_HAND, FULL_HAND_OF_WHITE, ALL_PROMOTED, START_SFEN)
    for seed in range(1_000):
        for game in random_play(seed, 150, starts[seed % len(starts)]):
            sfens.append(game.sfen())
            side = str(game.turn)[0]
            expected.append(sorted(theirs(move.value, side) for move in core.Board(sfens[-1]).legal_moves()))
        if len(sfens) >= 20_000:
            break
    assert len(sfens) >= 20_000
    for sfen, ours, other in zip(sfens, actions_of_each(encoding.pack_sfens(sfens)), expected, strict=True):
        assert ours == other, sfen


# ----------------------------------------------------------------------------------------- packing


def test_an_sfen_is_packed_and_unpacked_the_same(seen: list[Seen], packed: Rows) -> None:
    sfens = [one.sfen for one in seen] + [row[0] for row in table("perft.tsv")]
    sfens += [row[1] for row in table("legality.tsv")]
    assert encoding.unpack_sfens(encoding.pack_sfens(sfens)) == sfens
    assert encoding.unpack_sfens(packed) == [one.sfen for one in seen]


def test_a_row_is_unpacked_and_packed_the_same_but_for_its_history(seen: list[Seen], packed: Rows) -> None:
    for one, row in zip(seen, packed, strict=True):
        again = encoding.pack_sfens([one.sfen], max_moves=one.game.max_moves)[0]
        assert (row != again).sum() == (one.earlier > 0), one.sfen


def test_no_rows_are_no_results() -> None:
    none = encoding.pack([])
    assert none.shape == encoding.pack_sfens([]).shape == (0, 104)
    assert encoding.unpack_sfens(none) == []
    assert encoding.planes(none).shape == (0, 46, 9, 9)
    assert encoding.legal_mask(none).shape == (0, ACTIONS)
    assert actions_of_each(none) == []


@pytest.mark.parametrize("rows", [None, 0, 1, 2])
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(packed: Rows, rows: int | None, threads: int) -> None:
    some = packed[:rows]
    assert np.array_equal(encoding.planes(some, threads=threads), encoding.planes(some))
    for ours, theirs in zip(
        encoding.legal_actions(some, threads=threads), encoding.legal_actions(some), strict=True
    ):
        assert np.array_equal(ours, theirs)
    some = some[:1_000]
    assert np.array_equal(encoding.legal_mask(some, threads=threads), encoding.legal_mask(some))


@pytest.mark.parametrize(("read", "shape", "dtype"), OUTS)
def test_results_are_written_over_what_out_held(
    packed: Rows, read: Callable[..., Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    out = np.ones(shape, dtype)
    assert np.shares_memory(read(packed[:8], out=out), out)
    assert np.array_equal(out, read(packed[:8]))


def test_the_parts_of_a_row_have_their_names() -> None:
    game = ShogiGame("4k4/9/9/4+R4/9/9/9/9/4K4 w 3PLr 40", max_moves=300)
    for move in ["5a4a", "5d4d", "4a5a", "4d5d"] * 2:
        game.push(move)
    (parts,) = encoding.pack([game]).view(encoding.PACKED)[:, 0]
    assert (parts["ply"], parts["max_moves"], parts["flags"]) == (47, 300, 1 | 1 << 1 | 2 << 2)
    assert parts["hands"].tolist() == [[3, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]]
    assert np.flatnonzero(parts["board"]).tolist() == [4 * 9, 4 * 9 + 3, 4 * 9 + 8]
    both = encoding.pack([game, ShogiGame()])
    assert encoding.turns(both).tolist() == [1, 0]
    assert encoding.plies(both).tolist() == [47, 0]
