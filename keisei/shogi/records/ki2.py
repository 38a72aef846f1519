"""KI2 records: ▲７六歩 △３四歩, several moves on a line, without the squares that the pieces come from.

They are only read. Headers, comments and the summary are those of KIF; which piece moves is told by 右, 左,
直, 上, 引 and 寄 where several could. Variations (変化) are skipped.
"""

import re

from keisei._native import Move, NotationError, RulesError
from keisei.shogi.japanese_moves import moves_described, read_description, usi_texts
from keisei.shogi.outcome import Color
from keisei.shogi.records.kif import KifReader
from keisei.shogi.records.record import GameRecord, decode, lines_of, play
from keisei.shogi.shogi_game import ShogiGame

SIDE_MARKS = {"▲": Color.BLACK, "☗": Color.BLACK, "△": Color.WHITE, "☖": Color.WHITE, "▽": Color.WHITE}

_ANY_MARK = "".join(SIDE_MARKS)
_MOVES = re.compile(rf"[\s　]*[{_ANY_MARK}].*")
_ONE_MOVE = re.compile(rf"([{_ANY_MARK}])([^{_ANY_MARK}]*)")


def read_ki2(data: str | bytes) -> GameRecord:
    """Read the main line of a game, finding the legal move that each text means."""
    return _Ki2Reader().read(lines_of(decode(data)))


class _Ki2Reader(KifReader):
    """A reader of KIF's headers and of lines with marked moves."""

    kind = "ki2"

    def read_moves(self, line: str) -> bool:
        if _MOVES.fullmatch(line) is None:
            return False
        game = self.begun()
        for mark, text in _ONE_MOVE.findall(line):
            if SIDE_MARKS[mark] != game.turn:
                raise NotationError(f"move {self.draft.moves_played + 1}: it is {game.turn}'s move")
            move = self._meant(game, text.strip(" 　\t"))
            play(game, move)
            self.last_square = move.to_square
        return True

    def _meant(self, game: ShogiGame, text: str) -> Move:
        """Return the one legal move that a text fits; as in KIF, without 成 it does not promote."""
        number = self.draft.moves_played + 1
        try:
            told = read_description(text, self.last_square)
        except NotationError as error:
            raise NotationError(f"move {number} {text[:20]!r}: {error}") from error
        found = moves_described(game, told)
        if told.promotes is None:
            found = [move for move in found if not move.promotes]
        if not found:
            raise RulesError(
                f"line {self.line_number}: move {number}: no legal move is {text} in position {game.sfen()}"
            )
        if len(found) > 1:
            raise NotationError(
                f"move {number} {text}: expected words that tell which of {usi_texts(found)} it is"
            )
        return found[0]
