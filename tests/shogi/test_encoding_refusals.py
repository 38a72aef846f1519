"""Invalid packed positions, arrays and actions are rejected by name and do no harm."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from encoding_play import (
    IN_CHECK,
    KINGS,
    OUTS,
    Rows,
    actions_of_each,
    positions,
)
from encoding_reference import ACTIONS, planes
from reference import format_sfen, parse_sfen, square_named

from keisei import _native
from keisei.shogi import START_SFEN, Color, RulesError, ShogiGame, encoding


@pytest.fixture(scope="module")
def packed() -> Rows:
    return encoding.pack([one.game for one in positions()])


READERS: list[Callable[..., Any]] = [
    encoding.unpack_sfens,
    encoding.planes,
    encoding.legal_actions,
    encoding.legal_mask,
]


def row_of(pieces: str, in_hand: str = "-") -> Rows:
    """Return the row of a position with Black to move, its pieces given as "k5a K5i"."""
    position, _ = parse_sfen(f"9/9/9/9/9/9/9/9/9 b {in_hand} 1")
    position.board = {square_named(word[-2:]): word[:-2] for word in pieces.split()}
    row: Rows = encoding.pack_sfens([format_sfen(position, 1)])[0]
    return row


def bytes_of(square: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the bytes of a row that hold this square."""
    there: npt.NDArray[np.bool_] = row_of("k1a K1i") != row_of(f"k1a K1i G{square}")
    assert 1 <= there.sum() <= 2
    return there


def put(row: Rows, square: str, other: Rows | int) -> Rows:
    """Return the row with one square copied from the other row."""
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
    with pytest.raises(RulesError, match=f"row {row} of packed: legal actions do not match the offsets"):
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
    row.setflags(write=False)  # fine for input
    with pytest.raises(ValueError, match=r"shape \(N, 104\), got uint8 of shape \(104,\)$"):
        encoding.planes(row)


def is_accepted(row: Rows) -> bool:
    """Return True if all readers read the same legal position from the row, False if all reject it."""
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
        with pytest.raises(RulesError, match=r"row \d of packed: legal actions do not match the offsets"):
            encoding.legal_actions(packed, offsets=np.array(wrong, np.int32))
    short = np.zeros(34, np.int32)
    with pytest.raises(RulesError, match="row 1 of packed: legal actions do not match"):
        _native.legal_actions(packed, offsets, short, 1)


def test_what_another_thread_writes_meanwhile_is_never_believed() -> None:
    """A row is read once, so no unchecked piece gets through; the sanitized build would notice."""
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
