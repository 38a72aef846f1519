"""CSA records, version 2.2: the format of computer shogi servers.

One game or several ("/" between them); commas may separate statements on a line. CSA has no move number for
the starting position, and no word for a win by the try rule, which is written as a resignation.
"""

import re
from collections.abc import Iterable, Iterator

from keisei._native import START_SFEN, Move, NotationError
from keisei.shogi.diagram import HAND_ORDER, RANKS, Diagram
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

CSA_OF_PIECE = {
    "P": "FU", "L": "KY", "N": "KE", "S": "GI", "G": "KI", "B": "KA", "R": "HI", "K": "OU",
    "+P": "TO", "+L": "NY", "+N": "NK", "+S": "NG", "+B": "UM", "+R": "RY",
}  # fmt: skip
PIECE_OF_CSA = {csa: piece for piece, csa in CSA_OF_PIECE.items()}
_SIGNS = "+-"
_START_BOARD = Diagram.from_sfen(START_SFEN).board
_HEADER_KEY = re.compile("[A-Z][A-Z0-9_+-]*")  # TIME+ and TIME- are per player
_MOVE = re.compile(r"([+-])(00|[1-9][1-9])([1-9][1-9])([A-Z]{2})")
_SET = {"P": 18, "L": 4, "N": 4, "S": 4, "G": 4, "B": 2, "R": 2}

_ENDINGS: dict[str, Ending] = {
    "TORYO": (False, Reason.RESIGNATION),
    "TSUMI": (False, Reason.CHECKMATE),
    "SENNICHITE": (None, Reason.REPETITION),
    "OUTE_SENNICHITE": (None, Reason.PERPETUAL_CHECK),  # the position shows who loses
    "KACHI": (True, Reason.DECLARATION),
    "MAX_MOVES": (None, Reason.MAXIMUM_LENGTH),
    "TIME_UP": (False, Reason.TIME),
    "ILLEGAL_MOVE": (False, Reason.ILLEGAL_MOVE),
    "JISHOGI": (None, Reason.AGREED_IMPASSE),
    "HIKIWAKE": (None, Reason.ADJUDICATION),
}
_ILLEGAL_ACTIONS = {"+ILLEGAL_ACTION", "-ILLEGAL_ACTION"}  # by Black, by White, whichever is to move
_UNFINISHED = {"CHUDAN", "MATTA", "ERROR", "FUZUMI"}


def write_csa(record: GameRecord) -> str:
    """Return the record as CSA V2.2 text."""
    lines = ["'CSA encoding=UTF-8", "V2.2"]
    lines += [f"N{sign}{one_line(name)}" for sign, name in (("+", record.black), ("-", record.white)) if name]
    lines += [
        f"${key}:{one_line(value)}" for key, value in record.headers.items() if _HEADER_KEY.fullmatch(key)
    ]
    game = start_game(record.sfen)
    lines += _position_lines(game.start_sfen)
    lines += comment_lines(record, 0, "'*")
    for number, move in enumerate(record.moves, 1):
        lines.append(csa_move(game, move))
        play(game, move)
        if record.seconds:
            lines.append(f"T{record.seconds[number - 1]}")
        lines += comment_lines(record, number, "'*")
    lines.append(f"%{_ending(record.outcome, game.turn)}")
    return "\n".join(lines) + "\n"


def write_csa_games(records: Iterable[GameRecord]) -> str:
    """Return several games as one CSA file."""
    return "/\n".join(write_csa(record) for record in records)


def read_csa(data: str | bytes) -> GameRecord:
    """Read one game and check every move against the rules."""
    games = read_csa_games(data)
    if len(games) != 1:
        raise NotationError(f"expected one csa game, got {len(games)}")
    return games[0]


def read_csa_games(data: str | bytes) -> list[GameRecord]:
    """Read all games in a file."""
    games: list[list[tuple[int, str]]] = [[]]
    for number, line in enumerate(lines_of(decode(data)), 1):
        if line.rstrip() == "/":
            games.append([])
        elif line.strip():
            games[-1].append((number, line if line.startswith("'") else line.rstrip()))
    return [_Reader(lines).read() for lines in games if lines]


def _position_lines(sfen: str) -> list[str]:
    if sfen == START_SFEN:
        return ["PI", "+"]
    position = Diagram.from_sfen(sfen)
    lines = []
    for row, rank in enumerate(RANKS, 1):
        cells = (position.board.get(f"{file}{rank}") for file in range(9, 0, -1))
        lines.append(f"P{row}" + "".join(_cell_text(piece) for piece in cells))
    for color in Color:
        pieces = [f"00{CSA_OF_PIECE[p]}" for p in HAND_ORDER for _ in range(position.hands[color].get(p, 0))]
        if pieces:
            lines.append(f"P{_SIGNS[color]}{''.join(pieces)}")
    return [*lines, _SIGNS[position.turn]]


def _cell_text(piece: str | None) -> str:
    if piece is None:
        return " * "
    return f"{_SIGNS[piece[-1].islower()]}{CSA_OF_PIECE[piece.upper()]}"


def _square_number(square: str) -> str:
    return f"{square[0]}{RANKS.index(square[1]) + 1}"


def csa_move(game: ShogiGame, move: Move) -> str:
    """Return a move as CSA writes it, before it is played."""
    if move.from_square is None:
        start, piece = "00", str(move.dropped)
    else:
        start = _square_number(move.from_square)
        piece = ("+" if move.promotes else "") + (game.piece_at(move.from_square) or "P").upper()
    # The move may be illegal; play() then rejects it, with its number.
    return f"{_SIGNS[game.turn]}{start}{_square_number(move.to_square)}{CSA_OF_PIECE.get(piece, 'FU')}"


def usi_of_csa(game: ShogiGame, text: str) -> str:
    """Return a CSA move of the side to move as USI; whether it is legal is not checked."""
    match = _MOVE.fullmatch(text)
    if not match or match[4] not in PIECE_OF_CSA or match[2] == match[3]:
        raise NotationError("expected a move such as +7776FU")
    if _SIGNS.index(match[1]) != game.turn:
        raise NotationError(f"it is {game.turn}'s move")
    to, piece = _square_name(match[3]), PIECE_OF_CSA[match[4]]
    if match[2] == "00":
        if piece not in _SET:
            raise NotationError("only an unpromoted piece can be dropped")
        return f"{piece}*{to}"
    start = _square_name(match[2])
    standing = (game.piece_at(start) or "").upper()
    if piece not in (standing, f"+{standing}"):
        if not standing:
            raise NotationError(f"there is no piece on {start}")
        raise NotationError(f"the piece on {start} is {CSA_OF_PIECE[standing]}")
    return f"{start}{to}{'+' if piece != standing else ''}"


def _ending(outcome: Outcome | None, turn: Color) -> str:
    if outcome is None:
        return "CHUDAN"
    if word := ending_word(_ENDINGS, outcome, turn):
        return word
    # CSA has no word for it: use the nearest. A win by the side to move is left open, not called a foul.
    if outcome.winner is None:
        return "HIKIWAKE"
    if outcome.reason in (Reason.PERPETUAL_CHECK, Reason.ILLEGAL_MOVE):
        return f"{_SIGNS[outcome.winner.opponent]}ILLEGAL_ACTION"
    return "TORYO" if outcome.winner != turn else "CHUDAN"


class _Reader:
    """A reader of one game's numbered lines, top to bottom."""

    def __init__(self, lines: list[tuple[int, str]]) -> None:
        self._lines = lines
        self._draft = Draft()
        self._board: dict[str, str] = {}
        self._hands: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._rest_to: Color | None = None  # the side that holds all remaining pieces ("AL")
        self._ending: str | None = None

    def read(self) -> GameRecord:
        for number, statement in self._statements():
            try:
                self._statement(statement)
            except NotationError as error:
                raise NotationError(f"bad csa line {number} {statement[:80]!r}: {error}") from error
        if self._draft.game is None:
            raise NotationError("bad csa record: no line with the side to move (+ or -)")
        return self._draft.finish(self._draft.game, _read_ending(self._ending, self._draft.game.turn))

    def _statements(self) -> Iterator[tuple[int, str]]:
        for number, line in self._lines:
            if line[0] in "'N$V":
                yield number, line
            else:
                yield from ((number, part) for part in line.split(",") if part)

    def _statement(self, text: str) -> None:
        match text[0]:
            case "'":
                if text.startswith("'*"):  # other comments are for human readers
                    self._draft.add_comment(text[2:])
            case "V":
                if not re.fullmatch(r"V\d+(\.\d+)?", text):
                    raise NotationError("expected a version such as V2.2")
            case "N" if text[1:2] in ("+", "-"):
                self._draft.names[_SIGNS.index(text[1])] = text[2:].strip()
            case "$":
                key, _, value = text[1:].partition(":")
                self._draft.headers[key] = value.strip()
            case "P" if self._draft.game is None:
                self._position(text)
            case "+" | "-" if len(text) == 1 and self._draft.game is None:
                self._begin(Color(_SIGNS.index(text)))
            case "+" | "-":
                self._move(text)
            case "T":
                self._time(text)
            case "%" if self._draft.game is not None and self._ending is None:
                if text[1:] not in _ENDINGS.keys() | _UNFINISHED | _ILLEGAL_ACTIONS:
                    raise NotationError("unknown ending")
                self._ending = text[1:]
            case _:
                raise NotationError("unknown or misplaced statement")

    def _begin(self, turn: Color) -> None:
        if not self._board:
            raise NotationError("side to move before any position")
        if self._rest_to is not None:
            self._hands[self._rest_to].update(self._rest(self._rest_to))
        self._draft.begin(Diagram(self._board, self._hands, turn).to_sfen())

    def _rest(self, taker: Color) -> dict[str, int]:
        used = [piece.upper().lstrip("+") for piece in self._board.values()]
        other = self._hands[taker.opponent]
        return {p: n for p in HAND_ORDER if (n := _SET[p] - used.count(p) - other.get(p, 0)) > 0}

    def _move(self, text: str) -> None:
        game = self._draft.game
        if game is None:
            raise NotationError("move before the side to move")
        if self._ending is not None:
            raise NotationError("move after the end of the game")
        play(game, usi_of_csa(game, text))

    def _time(self, text: str) -> None:
        match = re.fullmatch(r"T(\d{1,9})(\.\d*)?", text)
        if not match or (self._draft.moves_played == 0 and self._ending is None):
            raise NotationError("expected a time such as T12 after a move")
        if self._ending is None:  # the time before the ending is not kept
            self._draft.seconds[self._draft.moves_played] = int(match[1])

    def _position(self, text: str) -> None:
        if text.startswith("PI"):
            if self._board:
                raise NotationError("a second position")
            self._board.update(_START_BOARD)
            for square, csa in _pieces(text[2:]):
                if PIECE_OF_CSA.get(csa) != self._board.pop(square, "").upper():
                    raise NotationError(f"no {csa} on {square} to remove")
        elif text[1:2] in ("+", "-"):
            self._place(Color(_SIGNS.index(text[1])), text[2:])
        elif match := re.fullmatch(r"P([1-9])(.*)", text):
            self._row(RANKS[int(match[1]) - 1], match[2])
        else:
            raise NotationError("expected PI, P1 to P9, P+ or P-")

    def _row(self, rank: str, text: str) -> None:
        cells = [text[i : i + 3].strip() for i in range(0, 27, 3)]
        if len(text) > 27:
            raise NotationError("more than nine squares")
        for file, cell in zip(range(9, 0, -1), cells, strict=True):
            if cell in ("*", ""):
                continue
            piece = PIECE_OF_CSA.get(cell[1:])
            if cell[0] not in _SIGNS or piece is None:
                raise NotationError(f"unknown square {cell!r}")
            self._put(f"{file}{rank}", piece if cell[0] == "+" else piece.lower())

    def _put(self, square: str, piece: str) -> None:
        if square in self._board:
            raise NotationError(f"two pieces on {square}")
        self._board[square] = piece

    def _place(self, color: Color, text: str) -> None:
        for square, csa in _pieces(text):
            if csa == "AL" and square == "":
                self._rest_to = color
                continue
            piece = PIECE_OF_CSA.get(csa)
            if piece is None or (square == "" and piece not in _SET):
                raise NotationError(f"unknown piece {csa!r}")
            if square:
                self._put(square, piece if color is Color.BLACK else piece.lower())
            else:
                self._hands[color][piece] = self._hands[color].get(piece, 0) + 1


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the squares ("" for the hand) and pieces of a list such as 82HI00FU."""
    if not re.fullmatch(r"((00|[1-9][1-9])[A-Z]{2})*", text):
        raise NotationError("expected pieces such as 82HI or 00FU")
    for i in range(0, len(text), 4):
        yield "" if text[i : i + 2] == "00" else _square_name(text[i : i + 2]), text[i + 2 : i + 4]


def _square_name(digits: str) -> str:
    return f"{digits[0]}{RANKS[int(digits[1]) - 1]}"


def _read_ending(word: str | None, turn: Color) -> Outcome | None:
    if word is None or word in _UNFINISHED:
        return None
    if word in _ILLEGAL_ACTIONS:
        return Outcome(Color(_SIGNS.index(word[0])).opponent, Reason.ILLEGAL_MOVE)
    return ending_outcome(_ENDINGS[word], turn)
