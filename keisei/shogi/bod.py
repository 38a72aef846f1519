"""BOD, the board diagram that Japanese shogi programs print and that KIF records begin with."""

import re

from keisei._native import NotationError
from keisei.shogi.diagram import HAND_ORDER, RANKS, Diagram
from keisei.shogi.outcome import Color

KANJI_NUMBERS = "〇一二三四五六七八九"
FULL_WIDTH_FILES = "０１２３４５６７８９"
SIDE_NAMES = ("先手", "後手")

# One character each: a board square has room for no more.
BOARD_KANJI = {
    "P": "歩", "L": "香", "N": "桂", "S": "銀", "G": "金", "B": "角", "R": "飛", "K": "玉",
    "+P": "と", "+L": "杏", "+N": "圭", "+S": "全", "+B": "馬", "+R": "龍",
}  # fmt: skip
PIECE_OF_KANJI = {kanji: piece for piece, kanji in BOARD_KANJI.items()} | {"王": "K", "竜": "+R"}

_FILES = "  ９ ８ ７ ６ ５ ４ ３ ２ １"
_RULE = "+---------------------------+"
_HAND_LINE = re.compile(r"(先手|後手|下手|上手)の持駒[：:](.*)")
_SIDE_OF_NAME = {"先手": Color.BLACK, "下手": Color.BLACK, "後手": Color.WHITE, "上手": Color.WHITE}
_HAND_ITEM = re.compile(r"(.)([1-9][0-9]?|十?[一二三四五六七八九]?)")  # some programs write 歩18


def write_bod(sfen: str) -> str:
    """Return the diagram of a valid SFEN, White's hand first."""
    position = Diagram.from_sfen(sfen)
    lines = [f"後手の持駒：{_hand_text(position.hands[Color.WHITE])}", _FILES, _RULE]
    for rank, name in zip(RANKS, KANJI_NUMBERS[1:], strict=True):
        row = "".join(_square_text(position.board.get(f"{file}{rank}")) for file in range(9, 0, -1))
        lines.append(f"|{row}|{name}")
    lines += [_RULE, f"先手の持駒：{_hand_text(position.hands[Color.BLACK])}"]
    lines.append(f"{SIDE_NAMES[position.turn]}番")
    lines.append(f"手数＝{position.move_number - 1}")
    return "\n".join(lines)


def is_bod_line(line: str) -> bool:
    """Return whether a line belongs to a diagram rather than to a record's other headers."""
    return (
        line.startswith(("|", "+--", "  ９", "手数＝"))
        or line.strip() in {"先手番", "後手番", "下手番", "上手番"}
        or _HAND_LINE.match(line) is not None
    )


class BodReader:
    """A line-by-line reader of diagrams; it does not check the position against the rules."""

    def __init__(self) -> None:
        self._board: dict[str, str] = {}
        self._hands: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._turn = Color.BLACK
        self._move_number = 1
        self._ranks_read = 0

    def read(self, line: str) -> None:
        """Read the next line, one that `is_bod_line` accepts."""
        if line.startswith("|"):
            if self._ranks_read == 9:
                raise NotationError("more than nine ranks in the diagram")
            _read_rank(line, RANKS[self._ranks_read], self._board)
            self._ranks_read += 1
        elif match := _HAND_LINE.match(line):
            self._hands[_SIDE_OF_NAME[match[1]]].update(_read_hand(match[2]))
        elif line.strip() in {"後手番", "上手番"}:
            self._turn = Color.WHITE
        elif match := re.match(r"手数＝(\d{1,6})(?!\d)", line):
            self._move_number = int(match[1]) + 1

    def sfen(self) -> str:
        """Return the SFEN of the diagram that was read."""
        if self._ranks_read != 9:
            raise NotationError(f"bad diagram: expected nine ranks, got {self._ranks_read}")
        return Diagram(self._board, self._hands, self._turn, self._move_number).to_sfen()


def _square_text(piece: str | None) -> str:
    if piece is None:
        return " ・"
    return f"{'v' if piece[-1].islower() else ' '}{BOARD_KANJI[piece.upper()]}"


def _hand_text(hand: dict[str, int]) -> str:
    items = [f"{BOARD_KANJI[letter]}{_count_text(hand[letter])}" for letter in HAND_ORDER if letter in hand]
    return "　".join(items) or "なし"


def _count_text(count: int) -> str:
    if count == 1:
        return ""
    return f"{'十' if count >= 10 else ''}{KANJI_NUMBERS[count % 10] if count % 10 else ''}"


def _read_rank(line: str, rank: str, board: dict[str, str]) -> None:
    cells = re.findall(r"([ v])(\S)", line[1:].split("|")[0])
    if len(cells) != 9:
        raise NotationError(f"expected nine squares, got {len(cells)}")
    for file, (side, kanji) in zip(range(9, 0, -1), cells, strict=True):
        if kanji in "・.":
            continue
        if kanji not in PIECE_OF_KANJI:
            raise NotationError(f"unknown piece {kanji!r}")
        piece = PIECE_OF_KANJI[kanji]
        board[f"{file}{rank}"] = piece.lower() if side == "v" else piece


def _read_hand(text: str) -> dict[str, int]:
    text = re.sub(r"[\s　]", "", text)
    if text in {"", "なし"}:
        return {}
    hand: dict[str, int] = {}
    for kanji, number in _HAND_ITEM.findall(text):
        letter = PIECE_OF_KANJI.get(kanji, "")
        if letter not in HAND_ORDER or not letter or letter in hand:
            raise NotationError(f"unknown or repeated piece in hand {kanji!r}")
        hand[letter] = _read_count(number)
    return hand


def _read_count(number: str) -> int:
    if number.isdecimal():
        return int(number)
    tens, units = number.startswith("十"), number.lstrip("十")
    return (10 * tens + (KANJI_NUMBERS.index(units) if units else 0)) or 1
