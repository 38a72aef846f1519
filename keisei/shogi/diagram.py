"""A position split into board and hands, for drawings and records.

Expects SFEN that the engine has accepted or written; it checks nothing itself.
"""

import re
from dataclasses import dataclass

from keisei.shogi.outcome import Color

HAND_ORDER = "RBGSNLP"  # as SFEN lists a hand
RANKS = "abcdefghi"


@dataclass(frozen=True)
class Diagram:
    """Board by square name ("7g") in SFEN letters ("P", "+r"), hands by letter, side and move number."""

    board: dict[str, str]
    hands: tuple[dict[str, int], dict[str, int]]
    turn: Color = Color.BLACK
    move_number: int = 1

    @classmethod
    def from_sfen(cls, sfen: str) -> "Diagram":
        """Parse a valid SFEN."""
        rows, side, hands_text, number = sfen.split()
        board: dict[str, str] = {}
        for rank, row in zip(RANKS, rows.split("/"), strict=True):
            file = 9
            for piece in re.findall(r"\d|\+?[A-Za-z]", row):
                if piece.isdigit():
                    file -= int(piece)
                else:
                    board[f"{file}{rank}"] = piece
                    file -= 1
        hands: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for count, letter in re.findall(r"(\d*)([A-Za-z])", hands_text):
            hands[letter.islower()][letter.upper()] = int(count or 1)
        return cls(board, hands, Color.BLACK if side == "b" else Color.WHITE, int(number))

    def to_sfen(self) -> str:
        """Return the SFEN; it is not checked against the rules."""
        rows = []
        for rank in RANKS:
            row = "".join(self.board.get(f"{file}{rank}", ".") for file in range(9, 0, -1))
            rows.append(re.sub(r"\.+", lambda gap: str(len(gap.group())), row))
        texts = []
        for color, hand in zip(Color, self.hands, strict=True):
            for letter in HAND_ORDER:
                if count := hand.get(letter, 0):
                    name = letter if color is Color.BLACK else letter.lower()
                    texts.append(f"{count if count > 1 else ''}{name}")
        side = "b" if self.turn is Color.BLACK else "w"
        return f"{'/'.join(rows)} {side} {''.join(texts) or '-'} {self.move_number}"
