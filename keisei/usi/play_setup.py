"""How a game in the terminal begins, and the files that it may be saved to."""

import os
import random
from datetime import datetime
from itertools import count
from pathlib import Path

from keisei.errors import UserError
from keisei.language import ENGLISH
from keisei.shogi import START_SFEN, Color, GameRecord, ShogiGame
from keisei.shogi.records import WRITTEN_KINDS
from keisei.shogi.records.kif import HANDICAPS
from keisei.shogi.records.usi import read_usi

_USI_POSITIONS = ("position ", "startpos", "sfen ")

HANDICAP_NAMES = {
    "lance": "香落ち",
    "bishop": "角落ち",
    "rook": "飛車落ち",
    "rook-lance": "飛香落ち",
    "2-piece": "二枚落ち",
    "4-piece": "四枚落ち",
    "6-piece": "六枚落ち",
    "8-piece": "八枚落ち",
    "10-piece": "十枚落ち",
}


class PlayError(UserError, ValueError):
    """An invalid setting of the game."""


class SaveError(PlayError):
    """A file that cannot be a new record: a key of the language's texts, and what is filled in."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(ENGLISH(key, **values))
        self.key = key
        self.values = values


def set_up(
    *,
    sfen: str | None = None,
    handicap: str | None = None,
    record: GameRecord | None = None,
    moves: int | None = None,
    max_moves: int | None = 512,
    declaration: str = "27",
) -> ShogiGame:
    """Return a game that is not over: from a position, a handicap, or after so many moves of a record.

    sfen: also a position with moves as USI has it, such as "startpos moves 7g7f". moves: None for all of
    them. A resignation at the end of a record is left out.
    """
    if moves is not None and record is None:
        raise PlayError(f"move {moves} of no game: expected a game too")
    if record is None and sfen is not None and sfen.startswith(_USI_POSITIONS):
        record, sfen = read_usi(sfen), None
    if record is None:
        return _playable(_game(start_sfen(sfen, handicap), max_moves, declaration))
    if sfen is not None or handicap is not None:
        raise PlayError("expected a game, a position or a handicap, given more than one")
    wanted = len(record.moves) if moves is None else moves
    if not 0 <= wanted <= len(record.moves):
        raise PlayError(f"move is {wanted}, expected 0 to {len(record.moves)}")
    game = _game(record.sfen, max_moves, declaration)
    for move in record.moves[:wanted]:
        game = _playable(game)
        game.push(move)
    return _playable(game)


def start_sfen(sfen: str | None, handicap: str | None) -> str:
    """Return the start position: the given one, or that of a handicap."""
    if sfen is not None and handicap is not None:
        raise PlayError("expected a position or a handicap, given both")
    if handicap is None:
        return START_SFEN if sfen is None else sfen
    name = HANDICAP_NAMES.get(handicap, handicap)
    if name not in HANDICAPS:
        raise PlayError(
            f"handicap is {handicap or repr(handicap)}, expected one of {', '.join(HANDICAP_NAMES)}"
        )
    return HANDICAPS[name]


def color_of(text: str) -> Color:
    """Return the side that a text names."""
    colors = {"black": Color.BLACK, "white": Color.WHITE, "random": random.choice(list(Color))}
    if text not in colors:
        raise PlayError(f"color is {text or repr(text)}, expected black, white or random")
    return colors[text]


def check_file(path: Path) -> None:
    """Reject a file that cannot be a new record, before there is a game to lose."""
    if path.suffix.lower() not in WRITTEN_KINDS:
        raise SaveError("save.kind", path=path, kinds=", ".join(WRITTEN_KINDS))
    if path.exists():
        raise SaveError("save.exists", path=path)
    if not path.parent.is_dir():
        raise SaveError("save.no directory", path=path, directory=path.parent)
    if not os.access(path.parent, os.W_OK):
        raise SaveError("save.not writable", path=path, directory=path.parent)


def new_file(name: str) -> Path:
    """Return a file that does not exist yet: the one named, with .kif if it has no ending, or a number more.

    Without a name it is keisei_DATE_TIME.kif, here.
    """
    path = Path(name or f"keisei_{datetime.now():%Y-%m-%d_%H-%M-%S}.kif")
    if not path.suffix:
        path = path.with_name(f"{path.name}.kif")
    free = path
    for number in count(2):
        if not free.exists():
            break
        free = path.with_stem(f"{path.stem}-{number}")
    return free


def _game(sfen: str, max_moves: int | None, declaration: str) -> ShogiGame:
    try:
        return ShogiGame(sfen, max_moves=max_moves, declaration=declaration)
    except ValueError as mistake:
        raise PlayError(str(mistake)) from mistake


def _playable(game: ShogiGame) -> ShogiGame:
    if (outcome := game.outcome()) is not None:
        raise PlayError(f"the game is over after {len(game.history)} moves: {outcome}")
    return game
