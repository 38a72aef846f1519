"""A picture of a position as an array of RGB pixels, from its SFEN and the last move.

For Gymnasium's `render_mode="rgb_array"`, with the layout and colours of keisei/shogi/svg.py. The glyphs are
the bitmaps below, scaled by whole numbers. Counts in White's hand stay upright, so that a 6 is not a 9. An
even `cell` gives an even width and height, as most video formats require.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from keisei.shogi import Move
from keisei.shogi.bod import BOARD_KANJI, KANJI_NUMBERS
from keisei.shogi.diagram import HAND_ORDER, RANKS, Diagram
from keisei.shogi.outcome import Color

_Image = npt.NDArray[np.uint8]
_Mask = npt.NDArray[np.bool_]
_Rgb = tuple[int, int, int]

_PAPER, _INK, _RED = (255, 255, 255), (0, 0, 0), (204, 0, 0)
_BOARD, _MARKED, _WOOD, _EDGE = (245, 215, 156), (232, 168, 96), (255, 242, 208), (120, 80, 32)


def _glyphs(names: str, art: str) -> dict[str, _Mask]:
    """Split a row of bitmaps and name each one."""
    columns = zip(*(line.split() for line in art.strip().splitlines()), strict=True)
    pairs = zip(names.split(), columns, strict=True)
    return {name: np.array([[dot == "#" for dot in row] for row in rows]) for name, rows in pairs}


_SIGNS = _glyphs("歩 香 桂 銀 金", """
.......#....... .........###... ...#......#.... ...#....######. .......#.......
...#...#....... ...######...... ...#......#.... ..#.#...#....#. ......#.#......
...#...#####... .......#....... ...#...#######. .#...#..#....#. .....#...#.....
...#...#....... .......#....... ######....#.... #.....#.######. ....#.....#....
...#...#....... ############### ...#......#.... .#####..#....#. ..##.......##..
############### .....#.#.#..... ...#..######### ...#....#....#. ##..#######..##
.......#....... ...##..#..##... ..###.......... ...#....######. .......#.......
...#...#.#..... .##....#....##. ..##.#....#.... #######.#.#...# .......#.......
..#....#..#..#. #..#########..# .#.#..#...#.... ...#....#.#..#. ..###########..
.#.....#.....#. ...#.......#... .#.#...#######. #..#..#.#..##.. .......#.......
#......#....#.. ...#.......#... #..#......#.... .#.#.#..#..#... ...#...#...#...
.....###..##... ...#########... #..#......#.... .#.#.#..#...#.. ....#..#..#....
.........#..... ...#.......#... ...#......#.... ...###..#.#.#.. ....#..#..#....
......###...... ...#.......#... ...#..######### ####....##...#. .......#.......
..####......... ...#########... ...#........... .......##.....# ###############
""") | _glyphs("角 飛 玉 と 杏", """
....#.......... .#########...#. .#############. ....#.......... .......#.......
....#######.... .........#..#.. .......#....... ....#.......... .......#.......
...#.....#..... .....#...#.#... .......#....... ....#......##.. ###############
..#.....#...... ..###..#.###... .......#....... .....#...##.... ......###......
.#############. ....#..#..#.##. .......#....... .....#.##...... .....#.#.#.....
...#....#....#. ....#..#..#...# .......#....... .....##........ ....#..#..#....
...#....#....#. ....#..#...###. ..###########.. ...##.......... ..##...#...##..
...###########. ##########...#. .......#....... ..#............ ##.....#.....##
...#....#....#. ....#..#.#..#.. .......#.#..... .#............. ...............
...#....#....#. ....#..#.#.#... .......#..#.... .#............. ...#########...
...###########. ....#..#.###... .......#...#... .#............. ...#.......#...
...#.........#. ...#...#..#.##. .......#....#.. .#............. ...#.......#...
..#..........#. ...#...#..#...# .......#....... ..#............ ...#.......#...
.#...........#. ..#....#...#..# .......#....... ...##......##.. ...#########...
#..........##.. ##.....#....##. ############### .....######.... ...#.......#...
""") | _glyphs("圭 全 馬 龍", """
.......#....... .......#....... ..###########.. ...#....#......
.......#....... ......#.#...... ..#....#....... .#####..#######
.......#....... .....#...#..... ..#....#....... .#...#..#......
..###########.. ....#.....#.... ..##########... ..#.#...######.
.......#....... ..##.......##.. ..#....#....... #######......#.
.......#....... ##...........## ..#....#....... ........######.
.#############. ...#########... ..##########... .#####..#......
............... .......#....... ..#....#....... .#...#..######.
.......#....... .......#....... ..#....#....... .#####..#......
.......#....... .......#....... ..############. .#...#..######.
..###########.. ..###########.. .............#. .#####..#......
.......#....... .......#....... #..#..#..#...#. .#...#..######.
.......#....... .......#....... #..#..#..#...#. .#...#..#......
.......#....... .......#....... #...#..#..#..#. .#...#..#.....#
############### ############### ...........##.. .#..##..#######
""")  # fmt: skip
_NUMBERS = _glyphs(" ".join(KANJI_NUMBERS[1:]), """
....... ....... ####### ####### ####### ...#... ..#.... ..#.#.. ..#....
....... .#####. ....... #.#.#.# ...#... ...#... ..#.... ..#.#.. ..#....
....... ....... ....... #.#.#.# .#####. ####### ####### ..#.#.. #####..
####### ....... .#####. #.#.### ...#.#. ....... ..#.... ..#..#. ..#.#..
....... ....... ....... ##....# ..#..#. ..#.#.. ..#.... .#...#. ..#.#..
....... ....... ....... ####### ..#..#. .#...#. ..#...# .#...#. .#..#.#
....... ####### ####### #.....# ####### #.....# ..##### #.....# #...###
""") | _glyphs("0 1 2 3 4 5 6 7 8 9", """
.###. ..#.. .###. .###. ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... .#... ....# #...# #...#
#...# ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#...# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .####
#...# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# ..#.. #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. ..#.. .###. .##..
""")  # fmt: skip


def draw_rgb(sfen: str, last_move: Move | None = None, *, cell: int = 48) -> npt.NDArray[np.uint8]:
    """Return a picture [H, W, 3] of a valid SFEN: squares `cell` pixels wide, the last move highlighted."""
    if not isinstance(cell, int) or not 16 <= cell <= 256:
        kind = "" if isinstance(cell, int) else "an int from "
        raise ValueError(f"cell is {cell!r}, expected {kind}16 to 256")
    position = Diagram.from_sfen(sfen)
    image = _empty_board(cell).copy()
    left, top = _margins(cell)
    marked = {last_move.to_square, last_move.from_square or last_move.to_square} if last_move else set()
    for name in position.board.keys() | marked:
        x, y = left + (9 - int(name[0])) * cell, top + RANKS.index(name[1]) * cell
        tile = _tile(position.board.get(name, ""), cell, _MARKED if name in marked else _BOARD)
        _paste(image, tile, x + _line(cell), y + _line(cell))
    for color in Color:
        _draw_hand(image, position, color, cell)
    return image


def _margins(cell: int) -> tuple[int, int]:
    """Return the margins: beside the board for a hand with counts, above it for the file numbers."""
    return 9 * cell // 4, cell // 2


def _scale(cell: int) -> int:
    """Return the size in pixels of a bitmap's dot."""
    return max(1, cell // 20)


def _line(cell: int) -> int:
    """Return the line width, adjusted by one where needed to centre glyphs exactly in their squares."""
    width = max(1, cell // 48)
    return width + (width + cell + _scale(cell)) % 2


def _paste(image: _Image, tile: _Image, x: int, y: int) -> None:
    image[y : y + tile.shape[0], x : x + tile.shape[1]] = tile


def _stamp(image: _Image, mask: _Mask, x: int, y: int, scale: int = 1, ink: _Rgb = _INK) -> None:
    """Draw a scaled bitmap centred on x, y."""
    mask = mask.repeat(scale, axis=0).repeat(scale, axis=1)
    height, width = mask.shape
    left, top = x - width // 2, y - height // 2
    image[top : top + height, left : left + width][mask] = ink


def _write(image: _Image, text: str, x: int, y: int, cell: int) -> None:
    gap = np.zeros((7, 1), dtype=np.bool_)
    parts = [part for sign in text for part in (gap, _NUMBERS[sign])][1:]
    _stamp(image, np.hstack(parts), x, y, _scale(cell))


def _body(size: int) -> _Mask:
    """Return the five-sided outline of a piece, pointing up, in a square."""
    steps = (2 * np.arange(size) + 1) / size - 1
    half_width = np.interp(steps, [-0.97, -0.66, 0.95], [0.06, 0.7, 0.92], left=-1, right=-1)
    return np.abs(steps)[None, :] <= half_width[:, None]


def _inside(body: _Mask, edge: int) -> _Mask:
    """Return a shape without its edge."""
    for _ in range(edge):
        padded = np.pad(body, 1)
        body = body & padded[2:, 1:-1] & padded[:-2, 1:-1] & padded[1:-1, 2:] & padded[1:-1, :-2]
    return body


@lru_cache(maxsize=128)
def _tile(piece: str, cell: int, ground: _Rgb) -> _Image:
    """Draw a square without its lines; White's pieces are Black's rotated by 180°."""
    if piece and piece[-1].islower():
        return _tile(piece.upper(), cell, ground)[::-1, ::-1]
    size, scale = cell - _line(cell), _scale(cell)
    tile = np.full((size, size, 3), ground, dtype=np.uint8)
    if piece:
        body = _body(size)
        tile[body] = _EDGE
        tile[_inside(body, (cell + 18) // 40)] = _WOOD
        lower = size // 2 + min(cell // 20, (size - 15 * scale) // 2)  # where the piece is wider
        _stamp(tile, _SIGNS[BOARD_KANJI[piece]], size // 2, lower, scale, _RED if piece[0] == "+" else _INK)
    return tile


@lru_cache(maxsize=4)
def _empty_board(cell: int) -> _Image:
    """Draw the board, the coordinates and each side's symbol at the start of its hand."""
    (left, top), line = _margins(cell), _line(cell)
    image = np.full((9 * cell + 2 * top, 9 * cell + 2 * left, 3), _PAPER, dtype=np.uint8)
    end_x, end_y = left + 9 * cell + line, top + 9 * cell + line
    image[top:end_y, left:end_x] = _BOARD
    for i in range(10):
        image[top + i * cell : top + i * cell + line, left:end_x] = _INK
        image[top:end_y, left + i * cell : left + i * cell + line] = _INK
    for i, number in enumerate(KANJI_NUMBERS[1:]):
        middle = i * cell + (cell + line) // 2
        _write(image, str(9 - i), left + middle, top // 2, cell)
        _write(image, number, end_x + cell // 4, top + middle, cell)
    body = _body(cell * 2 // 3)
    for color in Color:
        (x, y), _ = _hand_places(color, 0, cell)
        sign = body if color is Color.BLACK else (body & ~_inside(body, line))[::-1, ::-1]
        _stamp(image, sign, x + (cell - line) // 2, y + (cell - line) // 2)
    return image


def _hand_places(color: Color, row: int, cell: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return a tile's corner and its count's centre; Black's run up on the right, White's down the left."""
    (left, top), line = _margins(cell), _line(cell)
    if color is Color.BLACK:
        x, y = left + 9 * cell + cell // 2 + line, top + line + (8 - row) * cell
        return (x, y), (x + cell + cell // 3, y + cell // 2)
    x, y = left - cell // 2 - (cell - line), top + line + row * cell
    return (x, y), (x - cell // 3 - line, y + cell // 2)


def _draw_hand(image: _Image, position: Diagram, color: Color, cell: int) -> None:
    """Draw a side's pieces, with counts above one; a disc beside its symbol marks the side to move."""
    if position.turn is color:
        _, (x, y) = _hand_places(color, 0, cell)
        steps = np.arange(-(cell // 6), cell // 6 + 1)
        _stamp(image, steps[:, None] ** 2 + steps**2 <= (cell / 6) ** 2, x, y)
    hand = position.hands[color]
    for row, piece in enumerate((piece for piece in HAND_ORDER if piece in hand), start=1):
        (x, y), middle = _hand_places(color, row, cell)
        _paste(image, _tile(piece if color is Color.BLACK else piece.lower(), cell, _PAPER), x, y)
        if hand[piece] > 1:
            _write(image, str(hand[piece]), *middle, cell)
