"""What the network sees of a position and how its moves are numbered, against the slow reference."""

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from conftest import random_play, table
from encoding_reference import ACTIONS, action_of, every_action, network_square, planes
from reference import Position, ReferenceGame, flip_sfen, flip_usi, format_sfen, parse_sfen, square_named

from keisei import _native
from keisei.shogi import START_SFEN, Color, Move, RulesError, ShogiGame, encoding

Rows = npt.NDArray[np.uint8]

KINGS = "4k4/9/9/9/9/9/9/9/4K4 b - 1"
FULL_HAND = "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1"
FULL_HAND_OF_WHITE = "4k4/9/9/9/9/9/9/9/4K4 w 2r2b4g4s4n4l18p 1"
ENDGAME = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1"
ALL_PROMOTED = "1+P+L+N+S+B+R2/4K4/9/9/9/9/9/4k4/2+r+b+s+n+l+p1 b GSNL8Pgsnl8p 500"
IN_CHECK = "4k4/9/4+R4/9/9/9/9/3PPP3/3LKL3 w RB2G2S2N7Pb2g2s2n2l8p 77"
# A start, the maximum length, how many random games, how many moves each, and among how many moves to choose
# (None: all of them). Choosing between two, games turn in circles.
PLAYS: list[tuple[str, int | None, int, int, int | None]] = [
    (START_SFEN, 512, 6, 200, None),
    (START_SFEN, None, 3, 200, None),
    (FULL_HAND, 256, 6, 80, None),
    (FULL_HAND_OF_WHITE, 1, 1, 1, None),
    (FULL_HAND_OF_WHITE, 999_998, 6, 80, None),
    (ENDGAME, 300, 8, 100, None),
    (ALL_PROMOTED, 513, 8, 12, None),
    (ALL_PROMOTED, None, 8, 100, None),
    (IN_CHECK, 107, 20, 30, None),
    ("k8/9/9/9/9/9/9/9/8K b - 1", 512, 12, 100, 2),
    ("k8/9/9/9/9/9/9/9/8K w - 601", 700, 12, 100, 2),
    ("k8/9/9/9/9/9/9/9/8K w - 601", 512, 1, 1, 2),  # later than its maximum length
    ("k8/9/9/9/9/9/9/9/8K w - 1000000", None, 1, 1, 2),
    ("4k4/9/9/4+R4/9/9/9/9/4K4 w - 1", None, 12, 100, 2),
    ("4k4/9/9/9/4+r4/9/9/9/4K4 b - 1", 512, 12, 100, 2),
]


# What has an out, and which one fits eight rows.
OUTS: list[tuple[Callable[..., Any], tuple[int, ...], np.dtype[Any]]] = [
    (encoding.planes, (8, 46, 9, 9), np.dtype(np.float32)),
    (encoding.legal_mask, (8, ACTIONS), np.dtype(np.bool_)),
]


class Seen(NamedTuple):
    game: ShogiGame
    sfen: str
    earlier: int  # occurrences before, counted by the reference's positions

    @property
    def side(self) -> str:
        return str(self.game.turn)[0]


def play(seed: int, sfen: str, max_moves: int | None, plies: int, among: int | None) -> Iterator[Seen]:
    choose = random.Random(seed)
    game = ShogiGame(sfen, max_moves=max_moves, declaration="off")
    before: list[Position] = []
    while True:
        position, _ = parse_sfen(game.sfen())
        yield Seen(game.copy(), game.sfen(), before.count(position))
        before.append(position)
        moves = game.legal_moves()
        if not moves or len(before) > plies:
            return
        game.push(choose.choice(moves[:among]))


@pytest.fixture(scope="module")
def seen() -> list[Seen]:
    found = [
        one
        for sfen, max_moves, games, plies, among in PLAYS
        for seed in range(games)
        for one in play(seed, sfen, max_moves, plies, among)
    ]
    assert len(found) > 5_000
    return found


@pytest.fixture(scope="module")
def packed(seen: list[Seen]) -> Rows:
    return encoding.pack([one.game for one in seen])


def actions_of_each(rows: Rows, threads: int = 1) -> list[list[int]]:
    offsets, actions = encoding.legal_actions(rows, threads=threads)
    assert offsets.dtype == actions.dtype == np.int32
    assert (offsets[0], offsets[-1], offsets.shape) == (0, len(actions), (len(rows) + 1,))
    return [sorted(actions[a:b].tolist()) for a, b in pairwise(offsets.tolist())]


# ------------------------------------------------------------------------ planes


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


# ------------------------------------------------------------------------ actions


def test_the_legal_actions_are_those_of_the_reference(seen: list[Seen], packed: Rows) -> None:
    for number, (one, got) in enumerate(zip(seen, actions_of_each(packed), strict=True)):
        # A game that begins here, as the game itself may be over by repetition or length.
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


# ------------------------------------------------------------------------ packing


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


# ------------------------------------------------------------------------ what is refused

READERS: list[Callable[..., Any]] = [
    encoding.unpack_sfens,
    encoding.planes,
    encoding.legal_actions,
    encoding.legal_mask,
]


def row_of(pieces: str, in_hand: str = "-") -> Rows:
    """The row of a position with Black to move, its pieces given as "k5a K5i"."""
    position, _ = parse_sfen(f"9/9/9/9/9/9/9/9/9 b {in_hand} 1")
    position.board = {square_named(word[-2:]): word[:-2] for word in pieces.split()}
    row: Rows = encoding.pack_sfens([format_sfen(position, 1)])[0]
    return row


def bytes_of(square: str) -> npt.NDArray[np.bool_]:
    """Where a row says what stands on this square."""
    there: npt.NDArray[np.bool_] = row_of("k1a K1i") != row_of(f"k1a K1i G{square}")
    assert 1 <= there.sum() <= 2
    return there


def put(row: Rows, square: str, other: Rows | int) -> Rows:
    """The row with one square as it is in the other row."""
    return np.where(bytes_of(square), other, row).astype(np.uint8)


def one_more(fewer: Rows, most: Rows) -> Rows:
    return most + (most - fewer)


BAD_ROWS: dict[str, Callable[[], Rows]] = {
    "two kings": lambda: put(row_of("k5a K5i"), "9e", row_of("k5a K9e")),
    "no king": lambda: put(row_of("k5a K5i"), "5i", row_of("k5a K9e")),
    "king to be taken": lambda: put(row_of("k5a K5i"), "5b", row_of("k1a K5i G5b")),
    "two pawns on a file": lambda: put(row_of("k5a K5i P9d"), "9g", row_of("k5a K5i P9g")),
    "one pawn too many": lambda: put(row_of("k5a K5i", "18P"), "9g", row_of("k5a K5i P9g")),
    "19 pawns in hand": lambda: one_more(row_of("k5a K5i", "17P"), row_of("k5a K5i", "18P")),
    "three rooks in hand": lambda: one_more(row_of("k5a K5i", "r"), row_of("k5a K5i", "2r")),
    "unknown piece": lambda: put(row_of("k5a K5i"), "5e", 255),
    "zeros": lambda: np.zeros(104, np.uint8),
    "ones": lambda: np.full(104, 255, np.uint8),
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("what", BAD_ROWS)
def test_a_row_that_is_no_legal_position_is_refused_by_its_number(
    packed: Rows, what: str, read: Callable[..., Any]
) -> None:
    rows = packed[:20].copy()
    rows[13] = BAD_ROWS[what]()
    for threads in [{}] if read is encoding.unpack_sfens else [{}, {"threads": 3}]:
        with pytest.raises(RulesError, match=r"row 13\b"):
            read(rows, **threads)


@pytest.mark.parametrize("read", READERS)
def test_an_array_of_another_shape_or_type_is_refused(packed: Rows, read: Callable[..., Any]) -> None:
    some = packed[:8]
    wider = np.concatenate([some, some[:, :1]], axis=1)
    for bad in (some[0], some[None], some[:, :103].copy(), wider, wider[:, :104], some[:, ::-1],
                np.asfortranarray(some), some.astype(np.int8), some.astype(np.int32)):  # fmt: skip
        with pytest.raises(ValueError, match=r"packed: expected a C-contiguous uint8 array of"):
            read(bad)
    some = some.copy()
    some.setflags(write=False)  # nothing is written to it
    read(some)


@pytest.mark.parametrize(("read", "shape", "dtype"), OUTS)
def test_an_out_that_does_not_fit_is_refused_and_left_as_it_was(
    packed: Rows, read: Callable[..., Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    fixed = np.zeros(shape, dtype)
    fixed.setflags(write=False)
    other = np.dtype(np.float64) if dtype == np.float32 else np.dtype(np.uint8)
    for bad in (np.zeros((9, *shape[1:]), dtype), np.zeros((7, *shape[1:]), dtype), np.zeros(shape, other),
                np.zeros((*shape[:-1], shape[-1] + 1), dtype), np.zeros(shape, dtype).ravel(),
                np.zeros((16, *shape[1:]), dtype)[::2], np.zeros(shape, dtype, order="F"),
                fixed):  # fmt: skip
        with pytest.raises(ValueError, match=r"out: expected a writable C-contiguous (float32|bool)"):
            read(packed[:8], out=bad)
        assert not bad.any()


def test_what_is_no_action_or_no_move_is_refused() -> None:
    for action in (-1, ACTIONS, 2**31, 2**40, -(2**40)):
        with pytest.raises(ValueError, match=f"action is {action}, expected 0 to 13526"):
            encoding.move_of(action, Color.BLACK)
    for text in ("", "7g7g", "7g7f++", "K*5e", "0a1b", "7g"):
        with pytest.raises(ValueError, match="bad usi move"):
            encoding.action_of(text, Color.BLACK)
    for thing in (5, b"7g7f", None):
        with pytest.raises(TypeError, match=r"a Move or its USI text|incompatible"):
            encoding.action_of(thing, Color.BLACK)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"turn is 2, expected 0 \(black\) or 1 \(white\)"):
        encoding.move_of(0, 2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="games must be ShogiGames"):
        encoding.pack([ShogiGame.__new__(ShogiGame)])
    with pytest.raises(ValueError, match="expected a list of SFENs"):
        encoding.pack_sfens(KINGS)
    for sfen in ("", "9/9/9/9/9/9/9/9/9 b - 1", KINGS.replace("4K4", "9")):
        with pytest.raises(ValueError, match=r"^sfens\[1\]: bad sfen"):
            encoding.pack_sfens([KINGS, sfen])


@pytest.mark.parametrize(
    ("offsets", "row"),
    [
        ([0, 29, 60, 90], 0),
        ([0, 30, 61, 91], 1),
        ([0, 30, 60, 89], 2),
        ([0, 30, 60, 91], 2),
        ([-30, 0, 30, 60], 0),
        ([2**30, 2**30 + 30, 2**30 + 60, 90], 0),
        ([2**31 - 1, -(2**31) + 29, -(2**31) + 59, 90], 0),
        ([0, 30, 30, 60], 1),
    ],
)
def test_the_first_row_that_the_offsets_do_not_fit_is_named(offsets: list[int], row: int) -> None:
    starts = encoding.pack_sfens([START_SFEN] * 3)
    with pytest.raises(
        RulesError, match=f"row {row} of packed: not as many legal actions as the offsets say"
    ):
        encoding.legal_actions(starts, offsets=np.array(offsets, np.int32))


@pytest.mark.parametrize("count", [3, 5])
def test_too_few_or_too_many_offsets_are_refused(count: int) -> None:
    starts = encoding.pack_sfens([START_SFEN] * 3)
    with pytest.raises(
        ValueError, match=r"^offsets: expected a C-contiguous int32 array of shape \(4,\), got int32"
    ):
        encoding.legal_actions(starts, offsets=np.arange(count, dtype=np.int32) * 30)


@pytest.mark.parametrize("read", READERS)
def test_the_first_of_several_bad_rows_is_named(packed: Rows, read: Callable[..., Any]) -> None:
    rows = packed[:20].copy()
    rows[[7, 8, 13, 19]] = 0
    for threads in (1, 3):
        with pytest.raises(RulesError, match=r"^row 7 of packed: "):
            read(rows, threads=threads)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("threads", [0, -1])
def test_fewer_threads_than_one_are_refused(packed: Rows, read: Callable[..., Any], threads: int) -> None:
    with pytest.raises(ValueError, match=f"threads is {threads}, expected at least 1"):
        read(packed[:3], threads=threads)


def test_what_is_no_side_is_refused() -> None:
    for nobody in (2, -1):
        side: Any = nobody
        with pytest.raises(ValueError, match=f"turn is {nobody}, expected 0"):
            encoding.action_of("7g7f", side)
        with pytest.raises(ValueError, match=f"turn is {nobody}, expected 0"):
            encoding.move_of(0, side)


def test_only_games_and_texts_are_packed() -> None:
    wrong: Any = [ShogiGame(), START_SFEN]
    with pytest.raises(TypeError, match="games must be ShogiGames"):
        encoding.pack(wrong)
    wrong.reverse()
    with pytest.raises(TypeError, match=r"sfens\[1\]: expected an SFEN text"):
        encoding.pack_sfens(wrong)


def test_an_array_that_does_not_fit_is_described(packed: Rows) -> None:
    fixed = np.zeros((1, 46, 9, 9), np.float32)
    fixed.setflags(write=False)
    apart = np.zeros((1, 46, 9, 18), np.float32)[..., ::2]
    wanted = "out: expected a writable C-contiguous float32 array of shape (1, 46, 9, 9), got "
    for out, got in [
        (np.zeros((2, 3)), "float64 of shape (2, 3)"),
        (fixed, "float32 of shape (1, 46, 9, 9), read-only"),
        (apart, "float32 of shape (1, 46, 9, 9), not C-contiguous"),
        ([1.0], "list"),
    ]:
        wrong: Any = out
        with pytest.raises(ValueError, match=r".") as caught:
            encoding.planes(packed[:1], out=wrong)
        assert str(caught.value) == wanted + got
    row = packed[0].copy()
    row.setflags(write=False)  # no fault of what is only read
    with pytest.raises(ValueError, match=r"shape \(N, 104\), got uint8 of shape \(104,\)$"):
        encoding.planes(row)


def test_the_parts_of_a_row_have_their_names() -> None:
    game = ShogiGame("4k4/9/9/4+R4/9/9/9/9/4K4 w 3PLr 40", max_moves=300)
    for move in ["5a4a", "5d4d", "4a5a", "4d5d"] * 2:
        game.push(move)
    (parts,) = encoding.pack([game]).view(encoding.PACKED)[:, 0]
    assert (parts["ply"], parts["max_moves"], parts["flags"]) == (47, 300, 1 | 1 << 1 | 2 << 2)
    assert parts["hands"].tolist() == [[3, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]]
    assert np.flatnonzero(parts["board"]).tolist() == [4 * 9, 4 * 9 + 3, 4 * 9 + 8]
    assert encoding.turns(encoding.pack([game, ShogiGame()])).tolist() == [1, 0]


def is_accepted(row: Rows) -> bool:
    """Whether all readers refuse the row (False), or all read the same legal position from it (True)."""
    rows = row[None]
    try:
        (sfen,) = encoding.unpack_sfens(rows)
    except ValueError:
        for read in READERS:
            with pytest.raises(ValueError, match="row 0 of packed: "):
                read(rows)
        return False
    result, expected = encoding.planes(rows)[0], planes(sfen, 512, 0)
    assert np.isfinite(result).all(), sfen
    assert result[44, 0, 0] <= 1, sfen
    expected[43:45] = result[43:45]  # the row has its own maximum length and history
    assert np.array_equal(result, expected), sfen
    legal = actions_of_each(rows)
    assert legal == actions_of_each(encoding.pack_sfens([sfen])), sfen
    assert np.flatnonzero(encoding.legal_mask(rows)[0]).tolist() == legal[0]
    return True


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        ("ply", 999_999, 1_000_000),
        ("max_moves", 999_999, 1_000_000),
        ("max_moves", 1, 0),
        ("flags", 0b1100, 0b10000),
        ("flags", 0b0001, 0b0010),
    ],
)
def test_a_part_of_a_row_is_refused_from_its_limit_on(part: str, good: int, bad: int) -> None:
    row = encoding.pack_sfens([KINGS])
    for value, accepted in ((good, True), (bad, False)):
        row.view(encoding.PACKED)[part] = value
        assert is_accepted(row[0]) is accepted


def test_any_one_byte_changed_is_refused_or_another_legal_position() -> None:
    row = encoding.pack_sfens([IN_CHECK])[0]
    verdicts: Counter[bool] = Counter()
    for place in range(104):
        for value in range(256):
            changed = row.copy()
            changed[place] = value
            verdicts[is_accepted(changed)] += 1
    assert min(verdicts[True], verdicts[False]) > 200


@pytest.mark.parametrize("values", [256, 32, 2])
def test_rows_of_random_bytes_are_refused(values: int) -> None:
    rows = np.random.default_rng(values).integers(0, values, (3_000, 104), np.uint8)
    assert not any(is_accepted(row) for row in rows)


def test_rows_with_some_random_bytes_do_no_harm(packed: Rows) -> None:
    choose = np.random.default_rng(1)
    for row in packed[choose.integers(0, len(packed), 3_000)]:
        there = choose.integers(0, 104, choose.integers(1, 5))
        row[there] = choose.integers(0, choose.choice([4, 32, 256]), len(there))
        is_accepted(row)


def test_offsets_that_are_not_those_of_the_positions_are_refused() -> None:
    packed = encoding.pack_sfens([START_SFEN, KINGS])
    offsets, actions = encoding.legal_actions(packed)
    again, same = encoding.legal_actions(packed, offsets=offsets)
    assert again is offsets
    assert np.array_equal(actions, same)
    for wrong in ([-30, 0, 5], [0, 29, 34], [0, 31, 36], [5, 35, 40], [0, 30, 36]):
        with pytest.raises(RulesError, match=r"row \d of packed: not as many legal actions as the offsets"):
            encoding.legal_actions(packed, offsets=np.array(wrong, np.int32))
    short = np.zeros(34, np.int32)
    with pytest.raises(RulesError, match="row 1 of packed: not as many"):
        _native.legal_actions(packed, offsets, short, 1)


def test_what_another_thread_writes_meanwhile_is_never_believed() -> None:
    """A row is checked and read once: never a piece that was not checked. The sanitized build would tell."""
    packed = np.repeat(encoding.pack_sfens([START_SFEN]), 2000, axis=0)
    out = np.empty((2000, 46, 9, 9), np.float32)
    done = threading.Event()

    def scribble() -> None:
        while not done.is_set():
            packed[:, 60] = 255
            packed[:, 60] = 0

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        for _ in range(30):
            with contextlib.suppress(RulesError):
                encoding.planes(packed, out=out)
    finally:
        done.set()
        writer.join()
    assert encoding.planes(packed[:1])[0, :28].sum() in (39, 40)
