"""KIF records: the format of Japanese shogi programs and web sites.

Reads UTF-8 and Shift-JIS, writes UTF-8. Only the main line is read; variations (変化) are skipped.
In a handicap game the player who gives the handicap (上手, White) moves first. As in CSA, a win by the try
rule is written as a resignation.
"""

import re

from keisei._native import START_SFEN, Move, NotationError
from keisei.shogi.bod import (
    FULL_WIDTH_FILES,
    KANJI_NUMBERS,
    BodReader,
    is_bod_line,
    write_bod,
)
from keisei.shogi.diagram import RANKS
from keisei.shogi.japanese_moves import MOVE_KANJI, read_description
from keisei.shogi.outcome import Color, Outcome, Reason
from keisei.shogi.records.record import (
    Draft,
    Ending,
    GameRecord,
    comment_lines,
    decode,
    ending_outcome,
    ending_word,
    lines_of,
    one_line,
    play,
    start_game,
)
from keisei.shogi.shogi_game import ShogiGame

HANDICAPS = {
    "平手": START_SFEN,
    "香落ち": "lnsgkgsn1/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "右香落ち": "1nsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "角落ち": "lnsgkgsnl/1r7/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "飛車落ち": "lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "飛香落ち": "lnsgkgsn1/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "二枚落ち": "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "三枚落ち": "lnsgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "四枚落ち": "1nsgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "五枚落ち": "2sgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "左五枚落ち": "1nsgkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "六枚落ち": "2sgkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "左七枚落ち": "2sgkg3/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "右七枚落ち": "3gkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "八枚落ち": "3gkg3/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "十枚落ち": "4k4/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
}
_HANDICAP_OF_SFEN = {sfen: name for name, sfen in HANDICAPS.items()}
_PLAYER_KEYS = {"先手": Color.BLACK, "下手": Color.BLACK, "後手": Color.WHITE, "上手": Color.WHITE}

_ENDINGS: dict[str, Ending] = {
    "投了": (False, Reason.RESIGNATION),
    "詰み": (False, Reason.CHECKMATE),
    "千日手": (None, Reason.REPETITION),
    "入玉勝ち": (True, Reason.DECLARATION),
    "最大手数": (None, Reason.MAXIMUM_LENGTH),
    "切れ負け": (False, Reason.TIME),
    "反則負け": (False, Reason.ILLEGAL_MOVE),
    "反則勝ち": (True, Reason.ILLEGAL_MOVE),
    "不戦敗": (False, Reason.FORFEIT),
    "不戦勝": (True, Reason.FORFEIT),
    "持将棋": (None, Reason.AGREED_IMPASSE),
    "裁定引分": (None, Reason.ADJUDICATION),
}
_UNFINISHED = {"中断", "封じ手", "不詰", "詰ミ不詰", "Error"}

# まで93手で先手の勝ち: in records whose moves end without a word, the only result.
_SUMMARY = re.compile(r"まで\d+手で(時間切れにより)?(先手|後手|下手|上手)の(反則)?(勝ち|負け)")
_SUMMARY_OF_A_DRAW = re.compile(r"まで\d+手で(千日手|持将棋)")
_NUMBERED = re.compile(r"\s*(\d{1,6})[\s　]+(\S.*)")
_TIME = re.compile(r"\(\s*(\d{1,9}):(\d{1,2})(?::(\d{1,2}))?(?:\.\d+)?\s*(?:/[^()]*)?\)\s*(?:\+\s*)?$")

_EXAMPLES = "７六歩(77), ５五角打 or 投了"


def write_kif(record: GameRecord) -> str:
    """Return the record as KIF text."""
    lines = ["# KIF version=2.0 encoding=UTF-8"]
    lines += [f"{key}：{one_line(value)}" for key, value in record.headers.items() if _is_header_key(key)]
    game = start_game(record.sfen)
    handicap = _HANDICAP_OF_SFEN.get(game.start_sfen)
    # Records rarely give the number of moves before a diagram, and some programs do not know that line.
    diagram = write_bod(game.start_sfen).removesuffix("\n手数＝0")
    lines += [f"手合割：{handicap}"] if handicap else diagram.split("\n")
    first, second = ("下手", "上手") if handicap and handicap != "平手" else ("先手", "後手")
    lines += [f"{first}：{one_line(record.black)}", f"{second}：{one_line(record.white)}"]
    lines.append("手数----指手---------消費時間--")
    lines += comment_lines(record, 0, "*")
    totals = [0, 0]
    last_square = ""
    for number, move in enumerate(record.moves, 1):
        text = kif_move(game, move, last_square)
        if record.seconds:
            seconds = record.seconds[number - 1]
            totals[game.turn] += seconds
            text += f"   ({_clock(seconds, totals[game.turn])})"
        lines.append(f"{number:4d} {text}")
        play(game, move)
        last_square = move.to_square
        lines += comment_lines(record, number, "*")
    count = len(record.moves)
    if word := _ending(record.outcome, game.turn):
        lines.append(f"{count + 1:4d} {word}")
    else:
        lines.append(f"まで{count}手で{(first, second)[game.turn]}の勝ち")
    return "\n".join(lines) + "\n"


def read_kif(data: str | bytes) -> GameRecord:
    """Read the main line of a game and check every move against the rules."""
    return KifReader().read(lines_of(decode(data)))


def _is_header_key(key: str) -> bool:
    """Return whether a key is one of KIF's and its line reads back as a header."""
    line = f"{key}："
    return (
        not key.isascii()
        and key == key.strip()
        and re.search(r"[：:\r\n]", key) is None
        and not line.startswith(("*", "#", "&", "変化", "まで", "手数----"))
        and not is_bod_line(line)
        and _NUMBERED.fullmatch(line) is None
        and key not in _PLAYER_KEYS
        and key != "手合割"
    )


def _clock(seconds: int, total: int) -> str:
    hours, rest = divmod(total, 3600)
    return f"{seconds // 60:2d}:{seconds % 60:02d}/{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"


def kif_move(game: ShogiGame, move: Move, last_square: str = "") -> str:
    """Return a move as KIF writes it, before it is played; last_square: where the one before ended."""
    to = move.to_square
    place = f"{FULL_WIDTH_FILES[int(to[0])]}{KANJI_NUMBERS[RANKS.index(to[1]) + 1]}"
    if to == last_square:
        place = "同　"
    if move.from_square is None:
        return f"{place}{MOVE_KANJI[str(move.dropped)]}打"
    # The move may be illegal; play() then rejects it, with its number.
    piece = (game.piece_at(move.from_square) or "P").upper()
    start = f"({move.from_square[0]}{RANKS.index(move.from_square[1]) + 1})"
    return f"{place}{MOVE_KANJI[piece]}{'成' if move.promotes else ''}{start}"


def _ending(outcome: Outcome | None, turn: Color) -> str | None:
    """Return the word that ends the moves, or None for a win by the side to move that has no word."""
    if outcome is None:
        return "中断"
    if word := ending_word(_ENDINGS, outcome, turn):
        return word
    # KIF has no word for it: use the nearest that keeps the winner.
    if outcome.winner is None:
        return "裁定引分"
    if outcome.reason == Reason.PERPETUAL_CHECK:
        return "反則勝ち" if outcome.winner == turn else "反則負け"
    return "投了" if outcome.winner != turn else None


class KifReader:
    """A top-to-bottom reader of a record: headers, then numbered moves, then the ending.

    A format with the same headers and other moves overrides `kind` and `read_moves`.
    """

    kind = "kif"

    def __init__(self) -> None:
        self.draft = Draft()
        self.last_square = ""
        self.line_number = 0
        self._diagram: BodReader | None = None
        self._handicap = "平手"
        self._ending: str | None = None
        self._summary: Outcome | None = None  # the side to move may contradict its reason
        self._empty = True  # apart from comments and bookmarks

    def read(self, lines: list[str]) -> GameRecord:
        """Return the record in these lines."""
        for number, line in enumerate(lines, 1):
            if line.startswith("変化"):  # variations follow the main line
                break
            self.line_number = number
            try:
                self._line(line)
            except NotationError as error:
                raise NotationError(f"bad {self.kind} line {number} {line[:80]!r}: {error}") from error
        if self._empty:
            raise NotationError(f"bad {self.kind} record: neither a header nor a move")
        game = self.begun()
        return self.draft.finish(game, self._claimed(game.turn))

    def _line(self, line: str) -> None:
        if line.startswith("*"):
            self.draft.add_comment(line[1:])
        elif line.strip() and not line.startswith(("#", "&")):
            self._empty = False
            self._content(line)

    def _content(self, line: str) -> None:
        if line.startswith("手数----"):
            return
        if line.startswith("まで"):
            self._summary = _read_summary(line)
        elif is_bod_line(line) and self.draft.game is None:
            self._diagram = self._diagram or BodReader()
            self._diagram.read(line)
        elif self.read_moves(line):
            return
        elif match := re.fullmatch(r"([^：:]+)[：:](.*)", line):
            self._header(match[1].strip(), match[2].strip())
        else:
            raise NotationError("neither a header, a move nor a comment")

    def _header(self, key: str, value: str) -> None:
        if self.draft.game is not None:
            raise NotationError("header after the first move")
        if key in _PLAYER_KEYS:
            self.draft.names[_PLAYER_KEYS[key]] = value
        elif key == "手合割":
            if value != "その他" and value not in HANDICAPS:
                raise NotationError(f"unknown handicap {value!r}")
            self._handicap = value
        else:
            self.draft.headers[key] = value

    def begun(self) -> ShogiGame:
        """Return the game, after setting up its first position."""
        if self.draft.game is None:
            if self._diagram:
                sfen = self._diagram.sfen()
            elif self._handicap == "その他":
                raise NotationError(f"bad {self.kind} record: handicap その他 without a board diagram")
            else:
                sfen = HANDICAPS[self._handicap]
            return self.draft.begin(sfen)
        return self.draft.game

    def read_moves(self, line: str) -> bool:
        """Play the moves of a line; return False if it has none."""
        match = _NUMBERED.fullmatch(line)
        if match:
            self._numbered(int(match[1]), match[2].strip())
        return match is not None

    def _numbered(self, number: int, text: str) -> None:
        game = self.begun()
        if self._ending is not None:
            raise NotationError("move after the end of the game")
        if number != self.draft.moves_played + 1:
            raise NotationError(f"expected move {self.draft.moves_played + 1}")
        time = _TIME.search(text)
        if time:
            text = text[: time.start()]
        text = text.strip(" 　\t+")
        if text in _ENDINGS or text in _UNFINISHED:
            self._ending = text
            return
        self._move(game, text)
        if time:
            self.draft.seconds[number] = _seconds(time)

    def _move(self, game: ShogiGame, text: str) -> None:
        if not text.endswith(("打", ")")):
            raise NotationError(f"expected a move such as {_EXAMPLES}")
        told = read_description(text, self.last_square, examples=_EXAMPLES)
        if told.start is None:
            play(game, f"{told.piece}*{told.to}")
        else:
            standing = game.piece_at(told.start)
            if told.start == told.to or standing is None or standing.upper() != told.piece:
                raise NotationError(f"no {MOVE_KANJI[told.piece]} on {told.start} to move to {told.to}")
            play(game, f"{told.start}{told.to}{'+' if told.promotes else ''}")
        self.last_square = told.to

    def _claimed(self, turn: Color) -> Outcome | None:
        """Return the result given by the record's last word or its summary; the two must agree."""
        by_word = ending_outcome(_ENDINGS[self._ending], turn) if self._ending in _ENDINGS else None
        if by_word and self._summary and by_word.winner != self._summary.winner:
            raise NotationError(
                f"bad {self.kind} record: its moves end with {by_word}, its summary says {self._summary}"
            )
        if self._ending or self._summary is None:
            return by_word
        if self._summary == Outcome(turn, Reason.RESIGNATION):  # nobody wins by resignation on their own turn
            return Outcome(turn, Reason.ADJUDICATION)
        return self._summary


def _read_summary(line: str) -> Outcome | None:
    if match := _SUMMARY_OF_A_DRAW.match(line):
        return ending_outcome(_ENDINGS[match[1]], Color.BLACK)
    if match := _SUMMARY.match(line):
        side = _PLAYER_KEYS[match[2]]
        reason = Reason.TIME if match[1] else Reason.ILLEGAL_MOVE if match[3] else Reason.RESIGNATION
        return Outcome(side if match[4] == "勝ち" else side.opponent, reason)
    return None


def _seconds(time: re.Match[str]) -> int:
    """Return the seconds of m:ss or h:mm:ss."""
    if time[3] is None:
        seconds = int(time[1]) * 60 + int(time[2])
    else:
        seconds = int(time[1]) * 3600 + int(time[2]) * 60 + int(time[3])
    if seconds > 999_999_999:  # the most a CSA record can hold
        raise NotationError(f"expected a time of less than 1000000000 seconds, got {seconds}")
    return seconds
