"""A drawing of a position for notebooks and web pages."""

from keisei._native import Move
from keisei.shogi.bod import BOARD_KANJI, FULL_WIDTH_FILES, KANJI_NUMBERS
from keisei.shogi.diagram import HAND_ORDER, RANKS, Diagram
from keisei.shogi.outcome import Color

_CELL = 40
_LEFT, _TOP = 70, 40  # the hands are beside the board, the file numbers above it
_WIDTH, _HEIGHT = 9 * _CELL + 2 * _LEFT, 9 * _CELL + 2 * _TOP - 20
_FONT = "'Noto Serif CJK JP','Hiragino Mincho ProN','Yu Mincho',serif"


def draw_svg(sfen: str, last_move: Move | None, size: int) -> str:
    """Return an SVG document `size` pixels wide; the squares of the last move are coloured."""
    position = Diagram.from_sfen(sfen)
    marked = {last_move.from_square, last_move.to_square} if last_move else set()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{size}" '
        f'height="{size * _HEIGHT // _WIDTH}" font-family="{_FONT}" text-anchor="middle">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{9 * _CELL}" height="{9 * _CELL}" fill="#f5d79c"/>',
    ]
    for row, rank in enumerate(RANKS):
        parts.append(_text(_LEFT + 9 * _CELL + 12, _TOP + (row + 0.5) * _CELL, KANJI_NUMBERS[row + 1], 14))
        parts.append(_text(_LEFT + (row + 0.5) * _CELL, _TOP - 12, FULL_WIDTH_FILES[9 - row], 14))
        for column in range(9):
            name = f"{9 - column}{rank}"
            x, y = _LEFT + column * _CELL, _TOP + row * _CELL
            fill = "#e8a860" if name in marked else "none"
            parts.append(f'<path d="M{x} {y}h{_CELL}v{_CELL}h-{_CELL}z" fill="{fill}" stroke="#000"/>')
            if piece := position.board.get(name):
                parts.append(_piece(x + _CELL / 2, y + _CELL / 2, piece))
    return "".join([*parts, _hand(position, Color.BLACK), _hand(position, Color.WHITE), "</svg>"])


def _text(x: float, y: float, text: str, size: int, *, turned: bool = False, fill: str = "#000") -> str:
    rotation = f' transform="rotate(180 {x:g} {y:g})"' if turned else ""
    place = f'x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}"{rotation}'
    # dy, because not every SVG renderer knows dominant-baseline
    return f'<text {place} dy=".36em">{text}</text>'


def _piece(x: float, y: float, piece: str) -> str:
    fill = "#c00" if piece.startswith("+") else "#000"
    return _text(x, y, BOARD_KANJI[piece.upper()], 28, turned=piece[-1].islower(), fill=fill)


def _hand(position: Diagram, color: Color) -> str:
    """Draw a hand: Black's runs up from the lower right, White's down from the upper left; ● is to move."""
    turned = color is Color.WHITE
    x = _LEFT / 2 - 8 if turned else _WIDTH - _LEFT / 2 + 8
    start, step = (_TOP + 14, 30) if turned else (_TOP + 9 * _CELL - 14, -30)
    items = [("☖" if turned else "☗") + ("●" if position.turn is color else "")]
    hand = position.hands[color]
    items += [f"{BOARD_KANJI[p]}{hand[p] if hand[p] > 1 else ''}" for p in HAND_ORDER if p in hand]
    return "".join(_text(x, start + i * step, item, 20, turned=turned) for i, item in enumerate(items))
