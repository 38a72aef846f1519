"""The rules of shogi, written to be read and checked by a shogi player, not to be fast.

This is the oracle that the engine is tested against. It keeps only the list of positions of the game
so far; everything else is worked out from the board each time.

A square is (file, rank), both 1 to 9: rank 1 is USI's rank "a", the far edge as Black sees it.
A piece is written as in SFEN: "P" is Black's pawn, "+p" White's promoted pawn. A move is its USI
text: "7g7f", "8h2b+", "P*5e". Black ("b", sente) moves toward rank 1, White ("w") toward rank 9.

The side to move may lack its king, as in mate problems: nothing here looks for a king before it needs
one, and a king that is not on the board is never in check.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

Square = tuple[int, int]
Step = tuple[int, int]  # (change of file, change of rank) for Black; White's ranks are reversed

# ------------------------------------------------------------------------ how the pieces move

FORWARD: list[Step] = [(0, -1)]
FORWARD_DIAGONAL: list[Step] = [(-1, -1), (1, -1)]
SIDEWAYS: list[Step] = [(-1, 0), (1, 0)]
BACKWARD: list[Step] = [(0, 1)]
BACKWARD_DIAGONAL: list[Step] = [(-1, 1), (1, 1)]
KNIGHT_JUMP: list[Step] = [(-1, -2), (1, -2)]

STRAIGHT = FORWARD + SIDEWAYS + BACKWARD
DIAGONAL = FORWARD_DIAGONAL + BACKWARD_DIAGONAL
GOLD = FORWARD + FORWARD_DIAGONAL + SIDEWAYS + BACKWARD

# Where a piece goes by a single step (or jump) ...
STEPS: dict[str, list[Step]] = {
    "P": FORWARD,
    "N": KNIGHT_JUMP,
    "S": FORWARD + DIAGONAL,
    "G": GOLD,
    "K": STRAIGHT + DIAGONAL,
    "+P": GOLD,
    "+L": GOLD,
    "+N": GOLD,
    "+S": GOLD,
    "+B": STRAIGHT,
    "+R": DIAGONAL,
}
# ... and where it slides, any number of squares until something is in the way.
SLIDES: dict[str, list[Step]] = {
    "L": FORWARD,
    "B": DIAGONAL,
    "R": STRAIGHT,
    "+B": DIAGONAL,
    "+R": STRAIGHT,
}
CAN_PROMOTE = ["P", "L", "N", "S", "B", "R"]
HAND_ORDER = ["R", "B", "G", "S", "N", "L", "P"]


@dataclass
class Position:
    """Board, hands and side to move: all that matters when two positions are compared."""

    board: dict[Square, str]  # the occupied squares only
    hands: dict[str, int]  # how many of each piece: "P" in Black's hand, "p" in White's
    side: str  # "b" or "w"


def other(side: str) -> str:
    return "w" if side == "b" else "b"


def side_of(piece: str) -> str:
    return "b" if piece.isupper() else "w"


def owned_by(side: str, kind: str) -> str:
    """Return the piece of this kind ("P", "+P", ...) as written for its owner."""
    return kind.upper() if side == "b" else kind.lower()


def rank_seen_by(side: str, square: Square) -> int:
    """Return the rank counted from this side's far edge of the board: 1 is the last rank."""
    _, rank = square
    return rank if side == "b" else 10 - rank


def in_promotion_zone(side: str, square: Square) -> bool:
    return rank_seen_by(side, square) <= 3


def could_never_move(side: str, kind: str, square: Square) -> bool:
    """Return whether this is a pawn or lance on the last rank, or a knight on the last two."""
    if kind in ("P", "L"):
        return rank_seen_by(side, square) == 1
    if kind == "N":
        return rank_seen_by(side, square) <= 2
    return False


# ------------------------------------------------------------------------ reading and writing


def square_name(square: Square) -> str:
    file, rank = square
    return f"{file}{'abcdefghi'[rank - 1]}"


def square_named(name: str) -> Square:
    return int(name[0]), "abcdefghi".index(name[1]) + 1


def parse_sfen(sfen: str) -> tuple[Position, int]:
    """Return the position and its move number."""
    rows, side, in_hand, number = sfen.split()
    board: dict[Square, str] = {}
    for rank, row in enumerate(rows.split("/"), start=1):
        file = 9
        for item in re.findall(r"\d|\+?[A-Za-z]", row):
            if item.isdigit():
                file -= int(item)
            else:
                board[file, rank] = item
                file -= 1
    hands = {owned_by(owner, kind): 0 for owner in "bw" for kind in HAND_ORDER}
    for count, piece in re.findall(r"(\d*)([A-Za-z])", in_hand):
        hands[piece] += int(count or 1)
    return Position(board, hands, side), int(number)


def format_sfen(position: Position, number: int) -> str:
    rows = []
    for rank in range(1, 10):
        row = "".join(position.board.get((file, rank), " ") for file in range(9, 0, -1))
        rows.append(re.sub(" +", lambda gap: str(len(gap.group())), row))
    in_hand = ""
    for owner in "bw":
        for kind in HAND_ORDER:
            piece = owned_by(owner, kind)
            count = position.hands[piece]
            if count > 0:
                in_hand += piece if count == 1 else f"{count}{piece}"
    return f"{'/'.join(rows)} {position.side} {in_hand or '-'} {number}"


# ------------------------------------------------------------------------ moves


def destinations(board: dict[Square, str], start: Square) -> list[Square]:
    """Return where the piece on this square can go: squares that are empty or hold an enemy piece."""
    piece = board[start]
    kind = piece.upper()
    forward = 1 if side_of(piece) == "b" else -1
    reach = [(step, 1) for step in STEPS.get(kind, [])]
    reach += [(step, 8) for step in SLIDES.get(kind, [])]
    found = []
    for (file_step, rank_step), longest in reach:
        file, rank = start
        for _ in range(longest):
            file, rank = file + file_step, rank + rank_step * forward
            if not (1 <= file <= 9 and 1 <= rank <= 9):
                break
            if (file, rank) not in board:
                found.append((file, rank))
                continue
            if side_of(board[file, rank]) != side_of(piece):
                found.append((file, rank))
            break
    return found


def in_check(position: Position, side: str) -> bool:
    """Return whether an enemy piece could go to the square of this side's king."""
    king = owned_by(side, "K")
    return any(
        position.board.get(target) == king
        for square, piece in position.board.items()
        if side_of(piece) != side
        for target in destinations(position.board, square)
    )


def after_move(position: Position, usi: str) -> Position:
    """Return the position after this move, which is not checked here."""
    board = dict(position.board)
    hands = dict(position.hands)
    target = square_named(usi[2:4])
    if usi[1] == "*":
        piece = owned_by(position.side, usi[0])
        hands[piece] -= 1
    else:
        piece = board.pop(square_named(usi[0:2]))
        if usi.endswith("+"):
            piece = "+" + piece
        if target in board:  # a captured piece goes to the hand unpromoted
            hands[owned_by(position.side, board[target].removeprefix("+"))] += 1
    board[target] = piece
    return Position(board, hands, other(position.side))


def board_moves(position: Position) -> Iterator[str]:
    """Yield every move of a piece on the board, even if it leaves its own king in check."""
    side = position.side
    for start, piece in position.board.items():
        if side_of(piece) != side:
            continue
        kind = piece.upper()
        for target in destinations(position.board, start):
            usi = square_name(start) + square_name(target)
            if not could_never_move(side, kind, target):
                yield usi
            touches_zone = in_promotion_zone(side, start) or in_promotion_zone(side, target)
            if kind in CAN_PROMOTE and touches_zone:
                yield usi + "+"


def drops(position: Position) -> Iterator[str]:
    """Yield every drop, even if it leaves its own king in check or is a pawn-drop mate."""
    side = position.side
    own_pawn = owned_by(side, "P")
    files_with_pawn = [file for (file, _), piece in position.board.items() if piece == own_pawn]
    for kind in HAND_ORDER:
        if position.hands[owned_by(side, kind)] == 0:
            continue
        for file in range(1, 10):
            for rank in range(1, 10):
                if (file, rank) in position.board:
                    continue
                if could_never_move(side, kind, (file, rank)):
                    continue
                if kind == "P" and file in files_with_pawn:  # nifu
                    continue
                yield f"{kind}*{square_name((file, rank))}"


def legal_moves(position: Position) -> set[str]:
    legal = set()
    for usi in [*board_moves(position), *drops(position)]:
        after = after_move(position, usi)
        if in_check(after, position.side):
            continue
        if usi.startswith("P*") and in_check(after, after.side) and not legal_moves(after):
            continue  # pawn-drop mate (uchifuzume)
        legal.add(usi)
    return legal


# ------------------------------------------------------------------------ the game


class ReferenceGame:
    """A game from a valid SFEN; max_moves None means no length limit."""

    def __init__(self, sfen: str, max_moves: int | None = 512) -> None:
        position, self._first_number = parse_sfen(sfen)
        self._positions = [position]  # of the whole game, the current one last
        self._max_moves = max_moves

    def legal_moves(self) -> set[str]:
        return legal_moves(self._positions[-1])

    def push(self, usi: str) -> None:
        assert usi in self.legal_moves(), f"{usi} is not legal in {self.sfen()}"
        self._positions.append(after_move(self._positions[-1], usi))

    def sfen(self) -> str:
        return format_sfen(self._positions[-1], self._move_number())

    def is_check(self) -> bool:
        """Return whether the side to move is in check."""
        return in_check(self._positions[-1], self._positions[-1].side)

    def outcome(self) -> tuple[str | None, str] | None:
        """Return the winner ("b", "w" or None for a draw) and the reason; None if the game goes on."""
        now = self._positions[-1]
        if not self.legal_moves():
            return other(now.side), "checkmate" if self.is_check() else "no legal move"

        if self._positions.count(now) >= 4:
            since_first = self._positions[self._positions.index(now) :]
            black = self._only_gave_check("b", since_first)
            white = self._only_gave_check("w", since_first)
            if black and not white:
                return "w", "perpetual check"
            if white and not black:
                return "b", "perpetual check"
            return None, "repetition"

        if self._max_moves is not None and self._move_number() - 1 >= self._max_moves:
            return None, "maximum length"
        return None

    def can_declare(self, rule: str) -> bool:
        """Return whether the side to move may win by declaration under rule "27", "24" or "off"."""
        if rule == "off":
            return False
        needed = {"27": {"b": 28, "w": 27}, "24": {"b": 31, "w": 31}}[rule]
        now = self._positions[-1]
        in_zone = [
            piece.upper()
            for square, piece in now.board.items()
            if side_of(piece) == now.side and in_promotion_zone(now.side, square)
        ]
        if self.is_check() or "K" not in in_zone:
            return False
        in_zone.remove("K")
        in_hand = [kind for kind in HAND_ORDER for _ in range(now.hands[owned_by(now.side, kind)])]
        big = ["R", "B", "+R", "+B"]
        points = sum(5 if kind in big else 1 for kind in in_zone + in_hand)
        return len(in_zone) >= 10 and points >= needed[now.side]

    def _move_number(self) -> int:
        return self._first_number + len(self._positions) - 1

    @staticmethod
    def _only_gave_check(side: str, positions: list[Position]) -> bool:
        """Return whether each of this side's moves in this run of positions gave check."""
        return all(
            in_check(after, after.side) for before, after in pairwise(positions) if before.side == side
        )


# ------------------------------------------------------------------------ exchanging the colours


def flip_sfen(sfen: str) -> str:
    """Return the same position with the colours swapped and the board rotated."""
    position, number = parse_sfen(sfen)
    board = {(10 - f, 10 - r): piece.swapcase() for (f, r), piece in position.board.items()}
    hands = {piece.swapcase(): count for piece, count in position.hands.items()}
    return format_sfen(Position(board, hands, other(position.side)), number)


def flip_usi(usi: str) -> str:
    """Return the same move in the flipped position."""

    def turned(name: str) -> str:
        file, rank = square_named(name)
        return square_name((10 - file, 10 - rank))

    start = usi[0:2] if usi[1] == "*" else turned(usi[0:2])
    return start + turned(usi[2:4]) + usi[4:]
