"""Explanations of illegal moves for people. The rules themselves are native; this only explains them."""

from keisei._native import Move
from keisei.shogi.outcome import Color
from keisei.shogi.shogi_game import ShogiGame

_GOLD = ((0, -1), (-1, -1), (1, -1), (-1, 0), (1, 0), (0, 1))
_DIAGONAL = ((-1, -1), (1, -1), (-1, 1), (1, 1))
_STRAIGHT = ((0, -1), (-1, 0), (1, 0), (0, 1))

# Single steps, and directions to slide in, as (file, rank) for Black, who moves towards lower ranks.
_STEPS = {
    "P": ((0, -1),),
    "N": ((-1, -2), (1, -2)),
    "S": ((0, -1), *_DIAGONAL),
    "G": _GOLD,
    "K": (*_STRAIGHT, *_DIAGONAL),
    "+P": _GOLD,
    "+L": _GOLD,
    "+N": _GOLD,
    "+S": _GOLD,
    "+B": _STRAIGHT,
    "+R": _DIAGONAL,
}
_SLIDES = {"L": ((0, -1),), "B": _DIAGONAL, "R": _STRAIGHT, "+B": _DIAGONAL, "+R": _STRAIGHT}
_LAST_RANKS = {"P": 1, "L": 1, "N": 2}  # the number of last ranks from which the piece could never move
_CANNOT_PROMOTE = ("G", "K", "+P", "+L", "+N", "+S", "+B", "+R")


# In braces: pieces such as P or +R, squares such as 5e, a file, a move in USI, an Outcome.
FAULTS = {
    "over": "the game is over: {outcome}",
    "still in check": "your king is in check and would still be",
    "into check": "your king would be in check",
    "mate by a pawn": "a pawn dropped to give mate is not allowed (打ち歩詰め)",
    "still in check or mate by a pawn": "your king is in check and would still be, "
    "or a pawn dropped to give mate is not allowed (打ち歩詰め)",
    "not in hand": "you have no {piece} in hand",
    "occupied": "there is a piece on {to}",
    "dead drop": "a {piece} could never move from there",
    "two pawns": "you have a pawn on file {file} already (二歩)",
    "no piece": "there is no piece on {start}",
    "not yours": "the piece on {start} is not yours",
    "own piece": "your own piece is on {to}",
    "cannot reach": "a {piece} on {start} cannot go to {to}",
    "cannot promote": "a {piece} does not promote",
    "too far to promote": "a piece promotes only when it enters, leaves or moves within the far three ranks",
    "must promote": "a {piece} could never move from there: it must promote ({usi}+)",
    "none on the board": "you have no {piece} on the board",
    "not like that": "no {piece} can move like that",
}


class Fault:
    """What is wrong with a move: a key of FAULTS, and what is filled into its text."""

    def __init__(self, key: str, **values: object) -> None:
        self.key = key
        self.values = values

    def __str__(self) -> str:
        return FAULTS[self.key].format(**self.values)


def why_illegal(game: ShogiGame, move: Move) -> Fault:
    """Return why an illegal move is illegal in this game."""
    if outcome := game.outcome():
        return Fault("over", outcome=outcome)
    reason = _drop_fault(game, move) if move.dropped else _board_fault(game, move)
    if reason:
        return reason
    if game.is_check():
        return Fault("still in check or mate by a pawn" if move.dropped == "P" else "still in check")
    # A drop cannot expose a king.
    return Fault("mate by a pawn" if move.dropped else "into check")


def _drop_fault(game: ShogiGame, move: Move) -> Fault | None:
    piece = str(move.dropped)
    if not game.hand(game.turn).get(piece):
        return Fault("not in hand", piece=piece)
    if game.piece_at(move.to_square):
        return Fault("occupied", to=move.to_square)
    if _depth(move.to_square, game.turn) < _LAST_RANKS.get(piece, 0):
        return Fault("dead drop", piece=piece)
    own_pawn = "P" if game.turn is Color.BLACK else "p"
    file = move.to_square[0]
    if piece == "P" and any(game.piece_at(f"{file}{rank}") == own_pawn for rank in "abcdefghi"):
        return Fault("two pawns", file=file)
    return None


def _board_fault(game: ShogiGame, move: Move) -> Fault | None:
    start, to = str(move.from_square), move.to_square
    piece, target = game.piece_at(start), game.piece_at(to)
    if piece is None:
        return Fault("no piece", start=start)
    if not _is_of(piece, game.turn):
        return Fault("not yours", start=start)
    if target is not None and _is_of(target, game.turn):
        return Fault("own piece", to=to)
    kind = piece.upper()
    if not _reaches(game, kind, start, to):
        return Fault("cannot reach", piece=kind, start=start, to=to)
    if move.promotes and kind in _CANNOT_PROMOTE:
        return Fault("cannot promote", piece=kind)
    if move.promotes and min(_depth(start, game.turn), _depth(to, game.turn)) > 2:
        return Fault("too far to promote")
    if not move.promotes and _depth(to, game.turn) < _LAST_RANKS.get(kind, 0):
        return Fault("must promote", piece=kind, usi=str(move))
    return None


def _reaches(game: ShogiGame, kind: str, start: str, to: str) -> bool:
    forward = 1 if game.turn is Color.BLACK else -1
    files, ranks = int(to[0]) - int(start[0]), ord(to[1]) - ord(start[1])
    if (files * forward, ranks * forward) in _STEPS.get(kind, ()):
        return True
    far = max(abs(files), abs(ranks))
    if abs(files) not in (0, far) or abs(ranks) not in (0, far):
        return False
    file_step, rank_step = files // far, ranks // far
    if (file_step * forward, rank_step * forward) not in _SLIDES.get(kind, ()):
        return False
    between = (f"{int(start[0]) + file_step * i}{chr(ord(start[1]) + rank_step * i)}" for i in range(1, far))
    return not any(game.piece_at(square) for square in between)


def _is_of(piece: str, color: Color) -> bool:
    return piece.isupper() == (color is Color.BLACK)


def _depth(square: str, turn: Color) -> int:
    """Return how far a square is from the far edge of the board, 0 on the last rank."""
    rank = ord(square[1]) - ord("a")
    return rank if turn is Color.BLACK else 8 - rank
