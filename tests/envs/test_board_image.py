"""Pictures as arrays: where things are drawn, and that nothing else changes."""

import numpy as np
import numpy.typing as npt
import pytest

from keisei.envs.board_image import draw_rgb
from keisei.shogi import START_SFEN, Move

Image = npt.NDArray[np.uint8]

CELL, LINE, LEFT, TOP = 48, 2, 108, 24
EMPTY = "9/9/9/9/9/9/9/9/9"
KINDS = ["P", "L", "N", "S", "G", "B", "R", "K", "+P", "+L", "+N", "+S", "+B", "+R"]
ALL_IN_HAND = f"{EMPTY} b 2R2B4G4S4N4L18P2r2b4g4s4n4l18p 1"


def square(image: Image, name: str) -> Image:
    """Return the pixels of a square without its lines."""
    x, y = LEFT + (9 - int(name[0])) * CELL, TOP + "abcdefghi".index(name[1]) * CELL
    return image[y + LINE : y + CELL, x + LINE : x + CELL]


def alone(piece: str) -> Image:
    """Return the square of a lone piece in the middle of the board."""
    return square(draw_rgb(f"9/9/9/9/4{piece}4/9/9/9/9 b - 1"), "5e")


def differs(one: Image, other: Image) -> npt.NDArray[np.bool_]:
    changed: npt.NDArray[np.bool_] = (one != other).any(axis=2)
    return changed


def changed_squares(one: Image, other: Image) -> set[str]:
    """Return the squares that differ, after checking that nothing else does."""
    names = [f"{file}{rank}" for file in range(1, 10) for rank in "abcdefghi"]
    found = {name for name in names if (square(one, name) != square(other, name)).any()}
    inside = sum(int(differs(square(one, name), square(other, name)).sum()) for name in found)
    assert inside == differs(one, other).sum()
    return found


def has_color(image: Image, color: tuple[int, int, int]) -> bool:
    return bool((image == color).all(axis=2).any())


@pytest.mark.parametrize("cell", [16, 17, 33, 48, 256])
def test_size_follows_from_the_cell(cell: int) -> None:
    image = draw_rgb(ALL_IN_HAND, cell=cell)
    assert image.shape == (9 * cell + 2 * (cell // 2), 9 * cell + 2 * (9 * cell // 4), 3)
    assert image.dtype == np.uint8


def test_same_position_gives_the_same_image_whatever_was_done_to_the_last_one() -> None:
    first = draw_rgb(START_SFEN)
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(draw_rgb(START_SFEN), kept)


def test_every_piece_of_either_side_looks_different() -> None:
    pieces = KINDS + [kind.lower() for kind in KINDS]
    assert len({alone(piece).tobytes() for piece in pieces}) == len(pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_white_s_piece_is_black_s_turned_round_and_only_promoted_ones_are_red(kind: str) -> None:
    assert np.array_equal(alone(kind.lower()), alone(kind)[::-1, ::-1])
    assert has_color(alone(kind), (204, 0, 0)) == kind.startswith("+")


@pytest.mark.parametrize(
    ("board", "name"),
    [("P8/9/9/9/9/9/9/9/9", "9a"), ("9/9/9/9/9/9/2P6/9/9", "7g"), ("9/9/9/9/9/9/9/9/8P", "1i")],
)
def test_piece_is_drawn_on_its_square(board: str, name: str) -> None:
    assert changed_squares(draw_rgb(f"{EMPTY} b - 1"), draw_rgb(f"{board} b - 1")) == {name}


@pytest.mark.parametrize(
    ("move", "names"), [("7g7f", {"7g", "7f"}), ("P*5e", {"5e"}), ("2h2b+", {"2h", "2b"})]
)
def test_exactly_the_squares_of_the_last_move_change(move: str, names: set[str]) -> None:
    marked = draw_rgb(START_SFEN, Move.from_usi(move))
    assert changed_squares(draw_rgb(START_SFEN), marked) == names
    assert all(has_color(square(marked, name), (232, 168, 96)) for name in names)


@pytest.mark.parametrize(
    ("hand", "other"), [("-", "P"), ("P", "2P"), ("12P", "13P"), ("RB2G", "RB2G2S2N2L9P")]
)
def test_hands_change_only_their_own_area(hand: str, other: str) -> None:
    right, left = LEFT + 9 * CELL + CELL // 2, LEFT - CELL // 2
    black = differs(draw_rgb(f"{EMPTY} b {hand} 1"), draw_rgb(f"{EMPTY} b {other} 1"))
    white = differs(draw_rgb(f"{EMPTY} b {hand.lower()} 1"), draw_rgb(f"{EMPTY} b {other.lower()} 1"))
    assert black[:, right:].any()
    assert not black[:, :right].any()
    assert white[:, :left].any()
    assert not white[:, left:].any()


def test_black_s_hand_begins_below_and_white_s_above() -> None:
    empty = draw_rgb(f"{EMPTY} b - 1")
    black, white = (differs(empty, draw_rgb(f"{EMPTY} b {hand} 1")) for hand in "Pp")
    assert black[TOP + 7 * CELL : TOP + 8 * CELL].sum() == black.sum() > 0
    assert white[TOP + CELL : TOP + 2 * CELL].sum() == white.sum() > 0


def test_side_to_move_is_marked_beside_its_hand() -> None:
    black, white = (draw_rgb(f"{EMPTY} {side} - 1") for side in "bw")
    changed = differs(black, white)
    at_right, at_left = changed[TOP + 8 * CELL :, LEFT + 9 * CELL :], changed[: TOP + CELL, :LEFT]
    assert at_right.sum() + at_left.sum() == changed.sum()
    assert black[:, LEFT:].sum() < white[:, LEFT:].sum()  # ink is dark
    assert white[:, :LEFT].sum() < black[:, :LEFT].sum()


@pytest.mark.parametrize("cell", [3, 15, 257, -48, True])
def test_cell_of_a_bad_size_is_refused(cell: int) -> None:
    with pytest.raises(ValueError, match=rf"^cell is {cell}, expected 16 to 256$"):
        draw_rgb(START_SFEN, cell=cell)


def test_cell_that_is_no_int_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^cell is 48\.0, expected an int from 16 to 256$"):
        draw_rgb(START_SFEN, cell=48.0)  # type: ignore[arg-type]
