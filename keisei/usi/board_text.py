"""The board of a game in the terminal: ranks in kanji and letters, the last move marked, colours."""

import os
from collections.abc import Mapping
from typing import TextIO

from keisei.language import ENGLISH, Speaker
from keisei.shogi import Color, Move, ShogiGame
from keisei.shogi.bod import FULL_WIDTH_FILES
from keisei.shogi.diagram import HAND_ORDER, RANKS
from keisei.shogi.records.kif import kif_move

_FIRST_RANK = 3  # the line of a diagram with rank a
_LAST_MOVE, _FROM, _PROMOTED, _CHECK, _QUIET = "7", "4", "31", "1;31", "2"  # of ECMA-48


def wants_colors(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a stream is a terminal with colours; NO_COLOR turns them off."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def board_text(game: ShogiGame, *, colors: bool, speaker: Speaker = ENGLISH) -> str:
    """Return the position, with the last move named and marked with a star, and a warning of check."""
    lines = speaker.sides(str(game)).split("\n")
    lines[0] += _letters(game, Color.WHITE)
    lines[1] = _painted(
        " " + "".join(f" {file} " for file in FULL_WIDTH_FILES[:0:-1]).rstrip(), _QUIET, colors
    )
    lines[2] = lines[12] = f"+{'-' * 36}+"
    lines[13] += _letters(game, Color.BLACK)
    history = game.history
    last = history[-1] if history else None
    for row, rank in enumerate(RANKS, _FIRST_RANK):
        cells = (lines[row][start : start + 2] for start in range(1, 19, 2))
        squares = (f"{file}{rank}" for file in range(9, 0, -1))
        drawn = "".join(
            _cell(game, cell, square, last, colors) for cell, square in zip(cells, squares, strict=True)
        )
        lines[row] = f"|{drawn}|" + _painted(f"{lines[row][-1]} {rank}", _QUIET, colors)
    if last is not None:
        before = game.copy()
        before.pop()
        kif = kif_move(before, last) if speaker == ENGLISH else speaker.move(before, last)
        lines.append(speaker("play.last", usi=last, kif=kif))
    if game.is_check():
        lines.append(_painted(speaker("play.check"), _CHECK, colors))
    return "\n".join(lines)


def _cell(game: ShogiGame, cell: str, square: str, last: Move | None, colors: bool) -> str:
    """Return a square: side, piece, and a star if the last move ended there."""
    moved = last is not None and square == last.to_square
    if (game.piece_at(square) or "").startswith("+"):
        cell = cell[0] + _painted(cell[1:], _PROMOTED, colors and not moved)
    elif last is not None and square == last.from_square:
        cell = cell[0] + _painted(cell[1:], _FROM, colors)
    return _painted(f"{cell}*", _LAST_MOVE, colors) if moved else f"{cell} "


def _letters(game: ShogiGame, color: Color) -> str:
    """Return a hand in the letters that drops are typed with."""
    hand = game.hand(color)
    held = [f"{hand[piece] if hand[piece] > 1 else ''}{piece}" for piece in HAND_ORDER if piece in hand]
    return f"  ({' '.join(held)})" if held else ""


def _painted(text: str, code: str, colors: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colors else text
