"""A move as people type it, found among the legal moves of a game.

    7g7f  8h2b+  P*5e                     USI
    76歩  ７六歩  同銀  ５八金右  22角成  55歩打  Japanese, also with ▲ or the square of origin: ７六歩(77)
    P-7f  Bx2b+  G6i-5h  S-5h=  P*5e      Western (Hosking's); = declines to promote, ranks may be digits
    7776FU  8822UM  0055FU                CSA

A text that several legal moves fit is an AmbiguousMoveError that names them; one that none fits is a
RulesError that says why, if that is known, and names the legal moves of the piece.
"""

import re
import unicodedata
from collections.abc import Sequence

from keisei._native import Move, NotationError, RulesError
from keisei.shogi.bod import KANJI_NUMBERS
from keisei.shogi.diagram import HAND_ORDER, RANKS
from keisei.shogi.japanese_moves import MoveDescription, moves_described, read_description, usi_texts
from keisei.shogi.outcome import Color
from keisei.shogi.records.csa import usi_of_csa
from keisei.shogi.records.ki2 import SIDE_MARKS
from keisei.shogi.shogi_game import ShogiGame
from keisei.shogi.why_illegal import Fault, why_illegal


class IllegalMoveError(RulesError):
    """A move that breaks the rules: as typed, why, and what is legal with the same piece."""

    def __init__(self, text: str, fault: Fault, legal: Sequence[Move] = (), piece: str = "") -> None:
        instead = f"; legal with the {piece}: {usi_texts(legal)}" if legal else ""
        super().__init__(f"{text} is illegal: {fault}{instead}")
        self.text = text
        self.fault = fault
        self.legal = legal


class AmbiguousMoveError(NotationError):
    """A move as typed that several legal moves fit: these."""

    def __init__(self, text: str, moves: Sequence[Move]) -> None:
        super().__init__(f"{text} may be any of {usi_texts(moves)}: expected one of them")
        self.text = text
        self.moves = moves


_USI = re.compile(r"[1-9][a-i][1-9][a-i]\+?|[plnsgbr]\*[1-9][a-i]")
_CSA = re.compile(r"[+-]?(?:00|[1-9][1-9])[1-9][1-9][a-z]{2}", re.IGNORECASE)
_WESTERN = re.compile(
    r"(\+?)([plnsgbrk])([1-9][a-i1-9])?([-x*'])([1-9][a-i1-9])([+=]?)", re.IGNORECASE | re.ASCII
)
_JAPANESE = re.compile(r"[1-9][1-9一二三四五六七八九]\D|同")
_EXAMPLES = "7g7f, 76歩, P-7f or 7776FU"


def read_typed_move(game: ShogiGame, text: str) -> Move:
    """Return the legal move that a text means, in any of the notations."""
    # Full-width digits, letters and signs become plain ones.
    plain = unicodedata.normalize("NFKC", text).strip()
    if game.outcome() is not None:
        raise RulesError(f"the game is over: {game.outcome()}")
    if _USI.fullmatch(plain.lower()):
        drop = "*" in plain
        return _exactly(game, plain[0].upper() + plain[1:].lower() if drop else plain.lower(), text)
    if _CSA.fullmatch(plain):
        signed = plain if plain[0] in "+-" else "+-"[game.turn] + plain
        return _exactly(game, usi_of_csa(game, signed.upper()), text)
    if match := _WESTERN.fullmatch(plain):
        return _described(game, _western(match), text)
    bare = plain.lstrip("".join(SIDE_MARKS)).replace(" ", "")
    if plain and plain[0] in SIDE_MARKS and SIDE_MARKS[plain[0]] != game.turn:
        raise NotationError(f"{text}: it is {game.turn}'s move")
    if _JAPANESE.match(bare):
        if bare[1:2].isdigit():
            bare = bare[0] + KANJI_NUMBERS[int(bare[1])] + bare[2:]
        history = game.history
        told = read_description(bare, history[-1].to_square if history else "")
        return _described(game, told, text)
    raise NotationError(f"expected a move such as {_EXAMPLES}; given {text!r}")


def _exactly(game: ShogiGame, usi: str, text: str) -> Move:
    move = Move.from_usi(usi)
    if move not in game.legal_moves():
        raise _illegal(game, move, text)
    return move


def _western(match: re.Match[str]) -> MoveDescription:
    promoted, letter, start, sign, to, ending = match.groups()
    piece = promoted + letter.upper()
    drops = sign in "*'"
    if drops and (piece not in HAND_ORDER or start or ending):
        raise NotationError(f"{match[0]}: expected a drop such as P*5e")
    return MoveDescription(
        to=_square(to),
        piece=piece,
        start=_square(start) if start else None,
        drops=drops,
        promotes=ending == "+" if ending else None,
    )


def _square(text: str) -> str:
    return text[0] + (RANKS[int(text[1]) - 1] if text[1].isdigit() else text[1].lower())


def _described(game: ShogiGame, told: MoveDescription, text: str) -> Move:
    found = moves_described(game, told)
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousMoveError(text, found)
    own = [told.start] if told.start else _squares_of(game, told.piece)
    if told.drops or (not own and told.piece in HAND_ORDER):
        raise _illegal(game, Move.from_usi(f"{told.piece}*{told.to}"), text)
    if len(own) == 1 and own[0] != told.to:
        start = own[0]
        standing = (game.piece_at(start) or "").upper()
        if standing in ("", told.piece) and not (told.side or told.way):
            raise _illegal(game, Move.from_usi(f"{start}{told.to}{'+' if told.promotes else ''}"), text)
    if not own:
        raise IllegalMoveError(text, Fault("none on the board", piece=told.piece))
    legal = [move for move in game.legal_moves() if move.from_square in own]
    raise IllegalMoveError(text, Fault("not like that", piece=told.piece), legal, told.piece)


def _squares_of(game: ShogiGame, piece: str) -> list[str]:
    """Return where the side to move has pieces of a kind."""
    wanted = piece if game.turn is Color.BLACK else piece.lower()
    squares = (f"{file}{rank}" for file in range(1, 10) for rank in RANKS)
    return [square for square in squares if game.piece_at(square) == wanted]


def _illegal(game: ShogiGame, move: Move, text: str) -> IllegalMoveError:
    """Return the error of an illegal move, with its reason and what the piece can do instead."""
    piece = move.dropped or f"piece on {move.from_square}"
    legal = [
        other
        for other in game.legal_moves()
        if (other.from_square, other.dropped) == (move.from_square, move.dropped)
    ]
    return IllegalMoveError(text, why_illegal(game, move), legal, piece)
