"""Moves in Japanese notation: ７六歩, 同銀成, ５八金右, ５五角打, and KIF's ７六歩(77).

A text describes a move; `moves_described` decides which of a position's legal moves it means. Words such as
右 (the right one) and 上 (moving forward) choose between pieces of one kind that can go to the same square.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from keisei._native import Move, NotationError
from keisei.shogi.bod import BOARD_KANJI, FULL_WIDTH_FILES, KANJI_NUMBERS, PIECE_OF_KANJI
from keisei.shogi.diagram import HAND_ORDER, RANKS
from keisei.shogi.outcome import Color
from keisei.shogi.shogi_game import ShogiGame

# Where there is room, some promoted pieces have two-letter names.
MOVE_KANJI = BOARD_KANJI | {"+L": "成香", "+N": "成桂", "+S": "成銀"}
PIECE_OF_NAME = PIECE_OF_KANJI | {kanji: piece for piece, kanji in MOVE_KANJI.items()}

_NAMES = "|".join(sorted(PIECE_OF_NAME, key=len, reverse=True))
_MOVE = re.compile(
    r"(?:([１-９1-9])([一二三四五六七八九])|(同)[\s　]*)"
    rf"({_NAMES})([右左]?)([直上行入引寄]?)(成|不成)?(?:(打)|\(([1-9])([1-9])\))?"
)


# Side and way, in the order in which they are tried.
_WORDS = (
    *(("", way) for way in ("", "上", "寄", "引", "直")),
    *((side, way) for way in ("", "上", "寄", "引") for side in "右左"),
)


@dataclass(frozen=True, slots=True)
class MoveDescription:
    """What a text says about a move.

    to: the square it ends on. piece: as it stands before the move, "P" or "+R". start: None if not told.
    drops: True for a drop, False for a move on the board, None if not told. promotes: None if not told.
    side: 右 (the right one of several), 左 or "". way: 上 forward, 直 one step straight ahead, 引 back, 寄
    sideways or "".
    """

    to: str
    piece: str
    start: str | None = None
    drops: bool | None = None
    promotes: bool | None = None
    side: str = ""
    way: str = ""


def read_description(
    text: str, last_square: str, *, examples: str = "７六歩, ５八金右 or ５五角打"
) -> MoveDescription:
    """Read a move; last_square: where the move before ended, for 同, or "" if there was none."""
    match = _MOVE.fullmatch(text)
    if match is None:
        raise NotationError(f"expected a move such as {examples}")
    file, rank, same, name, side, way, promotion, drop, from_file, from_rank = match.groups()
    if same and not last_square:
        raise NotationError("同 without a previous move")
    piece = PIECE_OF_NAME[name]
    if drop and (piece not in HAND_ORDER or promotion or side or way):
        raise NotationError("only an unpromoted piece can be dropped")
    return MoveDescription(
        to=last_square if same else _square(file, rank),
        piece=piece,
        start=f"{from_file}{RANKS[int(from_rank) - 1]}" if from_file else None,
        drops=True if drop else False if from_file or side or way else None,
        promotes=promotion == "成" if promotion else None,
        side=side,
        way="上" if way in ("行", "入") else way,
    )


def moves_described(game: ShogiGame, told: MoveDescription) -> list[Move]:
    """Return the legal moves that a description fits.

    A piece on the board comes before one in hand, as is usual where 打 is left out.
    """
    fitting = [move for move in game.legal_moves() if _fits(game, move, told)]
    fitting = [move for move in fitting if move.dropped is None] or fitting
    if told.side:
        rightness = {move: _rightness(str(move.from_square), game.turn) for move in fitting}
        wanted = (max if told.side == "右" else min)(rightness.values(), default=0)
        fitting = [move for move in fitting if rightness[move] == wanted]
    return fitting


def japanese_move(game: ShogiGame, move: Move, last_square: str = "") -> str:
    """Return a legal move before it is played, by the fewest words that tell it: ７六歩, 同　銀, ５八金右.

    last_square: where the move before ended, for 同. How a piece moves comes first, then its side, then both,
    as the Japan Shogi Association has it.
    """
    same = move.to_square == last_square
    place = "同　" if same else japanese_square(move.to_square)
    if move.from_square is None:
        piece = str(move.dropped)
        told = MoveDescription(move.to_square, piece)
        return f"{place}{MOVE_KANJI[piece]}{'' if moves_described(game, told) == [move] else '打'}"
    piece = (game.piece_at(move.from_square) or "").upper()
    promotions = {other.promotes for other in game.legal_moves() if _same_step(other, move)}
    ending = "成" if move.promotes else "不成" if True in promotions else ""
    for side, way in _WORDS:
        if way == "直" and piece in ("R", "B", "+R", "+B"):  # never said of these
            continue
        told = MoveDescription(move.to_square, piece, None, False, move.promotes, side, way)
        if moves_described(game, told) == [move]:
            return f"{place}{MOVE_KANJI[piece]}{side}{way}{ending}"
    start = f"({move.from_square[0]}{RANKS.index(move.from_square[1]) + 1})"  # as KIF tells it
    return f"{place}{MOVE_KANJI[piece]}{ending}{start}"


def japanese_square(square: str) -> str:
    """Return a square such as 7f as ７六."""
    return f"{FULL_WIDTH_FILES[int(square[0])]}{KANJI_NUMBERS[RANKS.index(square[1]) + 1]}"


def usi_texts(moves: Sequence[Move]) -> str:
    """Return moves as a list for messages."""
    return " ".join(sorted(map(str, moves)))


def _fits(game: ShogiGame, move: Move, told: MoveDescription) -> bool:
    """Return whether a legal move is as told, apart from right and left."""
    if move.to_square != told.to or told.promotes not in (None, move.promotes):
        return False
    if move.from_square is None:
        return move.dropped == told.piece and told.drops is not False
    return (
        not told.drops
        and told.start in (None, move.from_square)
        and (game.piece_at(move.from_square) or "").upper() == told.piece
        and told.way in ("", *_ways(move.from_square, move.to_square, game.turn))
    )


def _ways(start: str, to: str, turn: Color) -> tuple[str, ...]:
    """Return the words for how a piece moves, as its player sees it."""
    ahead = (ord(start[1]) - ord(to[1])) * (1 if turn is Color.BLACK else -1)
    if ahead == 0:
        return ("寄",)
    if ahead < 0:
        return ("引",)
    return ("上", "直") if ahead == 1 and start[0] == to[0] else ("上",)


def _rightness(square: str, turn: Color) -> int:
    """Return how far to the right a square is, as its player sees it."""
    return -int(square[0]) if turn is Color.BLACK else int(square[0])


def _same_step(one: Move, other: Move) -> bool:
    return (one.from_square, one.to_square) == (other.from_square, other.to_square)


def _square(file: str, rank: str) -> str:
    digit = str(FULL_WIDTH_FILES.find(file)) if file in FULL_WIDTH_FILES else file
    return f"{digit}{RANKS[KANJI_NUMBERS.index(rank) - 1]}"
