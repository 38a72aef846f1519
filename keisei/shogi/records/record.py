"""GameRecord: a game as kept in a record, and what all formats share.

Every record is replayed as it is read; a move that breaks a rule is rejected with its number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from keisei._native import START_SFEN, Move, NotationError, RulesError
from keisei.shogi.outcome import Color, Outcome, Reason
from keisei.shogi.shogi_game import ShogiGame

# Endings that the position itself must show. Records often say just "repetition" for either kind.
_REPETITIONS = {Reason.REPETITION, Reason.PERPETUAL_CHECK}
_SHOWN_BY_POSITION = {Reason.CHECKMATE, Reason.NO_LEGAL_MOVE} | _REPETITIONS


@dataclass(frozen=True)
class GameRecord:
    """Moves from a position, with players, result and comments.

    comments: by number of moves played, 0 before the first; lines joined with newlines.
    seconds: thinking time of each move, or empty if unknown.
    headers: other fields under the format's own names ("EVENT" in CSA, "棋戦" in KIF); only the format they
    were read from writes them back.
    """

    moves: tuple[Move, ...]
    sfen: str = START_SFEN
    black: str = ""
    white: str = ""
    outcome: Outcome | None = None
    comments: Mapping[int, str] = field(default_factory=dict)
    seconds: tuple[int, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject times and comments that belong to no move."""
        count = len(self.moves)
        if self.seconds and len(self.seconds) != count:
            raise ValueError(f"{len(self.seconds)} times for {count} moves, expected one for each or none")
        if any(seconds < 0 for seconds in self.seconds):
            raise ValueError(f"a time is {min(self.seconds)} seconds, expected 0 or more")
        if strays := [number for number in self.comments if not 0 <= number <= count]:
            raise ValueError(f"a comment on move {strays[0]}, expected 0 to {count}")

    @classmethod
    def from_game(
        cls, game: ShogiGame, *, black: str = "", white: str = "", comments: Mapping[int, str] | None = None
    ) -> "GameRecord":
        """Return a record of the game so far."""
        return cls(tuple(game.history), game.start_sfen, black, white, game.outcome(), comments or {})

    def game(self) -> ShogiGame:
        """Replay the moves, without a maximum length, and repeat a resignation or declaration."""
        game = replay(self.sfen, self.moves)
        if self.outcome == Outcome(game.turn.opponent, Reason.RESIGNATION) and game.outcome() is None:
            game.resign()
        elif self.outcome == Outcome(game.turn, Reason.DECLARATION) and game.can_declare():
            game.declare()
        return game


def decode(data: str | bytes) -> str:
    """Return the text of a record: UTF-8, with or without a BOM, otherwise Windows' Shift-JIS."""
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    for encoding in ("utf-8-sig", "cp932"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise NotationError("the record is neither UTF-8 nor Shift-JIS text")


def lines_of(text: str) -> list[str]:
    """Split at Unix, Windows and old Mac line ends, and nowhere else."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def one_line(text: str) -> str:
    """Return a name that fits on a header line; inner spaces, wide ones too, are kept."""
    return " ".join(lines_of(text)).strip()


def comment_lines(record: GameRecord, number: int, mark: str) -> list[str]:
    """Return the comment after move `number`, each line prefixed with the format's mark."""
    if number not in record.comments:
        return []
    return [mark + line for line in lines_of(record.comments[number])]


def start_game(sfen: str) -> ShogiGame:
    """Return the game that a record is replayed on: no maximum length, declaration by 27 points."""
    return ShogiGame(sfen, max_moves=None, declaration="27")


def play(game: ShogiGame, move: Move | str) -> None:
    """Play the next move of a record; an error names the move's number."""
    try:
        game.push(move)
    except RulesError as error:
        raise RulesError(f"move {len(game.history) + 1}: {error}") from error


def replay(sfen: str, moves: Sequence[Move | str]) -> ShogiGame:
    """Play a record's moves from its starting position."""
    game = start_game(sfen)
    for move in moves:
        play(game, move)
    return game


# What an ending means for the side to move: True it wins, False it loses, None a draw; and why.
Ending = tuple[bool | None, Reason]


def ending_word(endings: Mapping[str, Ending], outcome: Outcome, turn: Color) -> str | None:
    """Return a format's word for an outcome, or None if it has none."""
    wins = None if outcome.winner is None else outcome.winner == turn
    # Formats have one word for a side that cannot move, in check or not.
    reason = Reason.CHECKMATE if outcome.reason == Reason.NO_LEGAL_MOVE else outcome.reason
    return next((word for word, ending in endings.items() if ending == (wins, reason)), None)


def ending_outcome(ending: Ending, turn: Color) -> Outcome:
    """Return the outcome that a format's word stands for."""
    wins, reason = ending
    return Outcome(None if wins is None else turn if wins else turn.opponent, reason)


class Draft:
    """The parts of a record read so far; `game` is None before the starting position."""

    def __init__(self) -> None:
        self.names = ["", ""]
        self.headers: dict[str, str] = {}
        self.comments: dict[int, list[str]] = {}
        self.seconds: dict[int, int] = {}
        self.game: ShogiGame | None = None
        self._first_ply = 0

    def begin(self, sfen: str) -> ShogiGame:
        """Set up the starting position."""
        self.game = start_game(sfen)
        self._first_ply = self.game.ply
        return self.game

    @property
    def moves_played(self) -> int:
        """Moves read so far."""
        return self.game.ply - self._first_ply if self.game else 0  # history would build a list

    def add_comment(self, line: str) -> None:
        """Add a line to the comment on the current position."""
        self.comments.setdefault(self.moves_played, []).append(line)

    def finish(self, game: ShogiGame, claimed: Outcome | None) -> GameRecord:
        """Return the record; if the position decides the game, the claimed result must agree."""
        moves = tuple(game.history)
        seconds = [self.seconds.get(number, 0) for number in range(1, len(moves) + 1)]
        return GameRecord(
            moves=moves,
            sfen=game.start_sfen,
            black=self.names[Color.BLACK],
            white=self.names[Color.WHITE],
            outcome=_checked_outcome(game, claimed),
            comments={number: "\n".join(lines) for number, lines in self.comments.items()},
            seconds=tuple(seconds) if self.seconds else (),
            headers=self.headers,
        )


def _checked_outcome(game: ShogiGame, claimed: Outcome | None) -> Outcome | None:
    shown = game.outcome()
    if shown is None and claimed and claimed.reason in _SHOWN_BY_POSITION:
        fault = "but the position does not show it"
    elif shown is None and claimed and claimed.reason == Reason.DECLARATION and not game.can_declare():
        fault = "but the side to move may not declare"
    elif shown and claimed and {shown.reason, claimed.reason} <= _REPETITIONS:
        return shown
    elif shown and claimed and claimed.winner != shown.winner:
        fault = f"but it is {shown}"
    else:
        return shown or claimed
    number = len(game.history)
    raise RulesError(f"after move {number}: the record says {claimed}, {fault}, in position {game.sfen()}")
