"""A speaker says things in one language: texts by key, results, and moves as its readers write them.

speaker = speaker_for("ja")          # or speaker_for(None): as the locale says
speaker("play.saved", path="game.kif")
speaker.outcome(game.outcome()), speaker.move(game, move)
"""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from keisei.errors import UserError
from keisei.language.texts import TEXTS
from keisei.shogi import START_SFEN, Color, Move, Outcome, ShogiGame
from keisei.shogi.japanese_moves import MOVE_KANJI, japanese_move, japanese_square
from keisei.shogi.records.kif import HANDICAPS
from keisei.shogi.typed_moves import IllegalMoveError

CODES = ("en", "ja")
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first one that is set counts, as POSIX has it


@dataclass(frozen=True, slots=True)
class Speaker:
    """A language by its code: en or ja. handicap: whether it speaks of a handicap game, in Japanese."""

    code: str
    handicap: bool = False

    def __call__(self, key: str, **values: object) -> str:
        """Return a text of keisei.language.texts, with values filled in."""
        return self.sides(TEXTS[key][CODES.index(self.code)]).format(**values)

    def of_game(self, start_sfen: str) -> "Speaker":
        """Return the speaker of a game from this position: whoever takes a handicap is 下手, not 先手."""
        handicap = start_sfen != START_SFEN and start_sfen in HANDICAPS.values()
        return replace(self, handicap=handicap and self.code == "ja")

    def sides(self, text: str) -> str:
        """Return a text with the sides as they are called in this game."""
        return text.replace("先手", "下手").replace("後手", "上手") if self.handicap else text

    def side(self, color: Color) -> str:
        """Return "black" or "先手"."""
        return self(str(color))

    def outcome(self, outcome: Outcome | None) -> str:
        """Return how a game ended, or that it has not."""
        if outcome is None:
            return self("unfinished")
        reason = self(str(outcome.reason))
        if outcome.winner is None:
            return self("draw", reason=reason)
        return self("win", side=self.side(outcome.winner), reason=reason)

    def move(self, game: ShogiGame, move: Move) -> str:
        """Return a move before it is played: 7g7f or ▲７六歩."""
        if self.code == "en":
            return str(move)
        last = game.history[-1].to_square if game.history else ""
        return f"{'▲△'[game.turn]}{japanese_move(game, move, last)}"

    def line(self, game: ShogiGame, moves: Sequence[Move]) -> str:
        """Return moves that follow each other, from the game's position on."""
        trial, texts = game.copy(), []
        for move in moves:
            texts.append(self.move(trial, move))
            trial.push(move)
        return " ".join(texts)

    def illegal(self, game: ShogiGame, mistake: IllegalMoveError) -> str:
        """Return why a typed move cannot be played, and what is legal with the same piece."""
        values = {name: self._told(name, value) for name, value in mistake.fault.values.items()}
        fault = self(f"illegal.{mistake.fault.key}", **values)
        said = self("play.illegal", text=mistake.text, fault=fault)
        moves = " ".join(self.move(game, move) for move in sorted(mistake.legal, key=str))
        return self("play.legal", illegal=said, moves=moves) if moves else said

    def _told(self, name: str, value: object) -> object:
        """Return what a fault names, such as a piece or a square, as the readers write it."""
        if isinstance(value, Outcome):
            return self.outcome(value)
        if self.code == "en":
            return value
        if name == "piece":
            return MOVE_KANJI[str(value)]
        return japanese_square(str(value)) if name in ("start", "to") else value


ENGLISH, JAPANESE = Speaker("en"), Speaker("ja")


def speaker_for(code: str | None, environ: Mapping[str, str] = os.environ) -> Speaker:
    """Return the speaker of a language; None: that of the locale, English unless it is Japanese."""
    if code is None:
        locale = next((environ[name] for name in _LOCALE if environ.get(name)), "")
        return JAPANESE if locale.lower().startswith("ja") else ENGLISH
    if code not in CODES:
        raise UserError(f"--lang is {code or repr(code)}, expected {' or '.join(CODES)}")
    return Speaker(code)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text filled up with spaces to a number of columns, of which a kanji takes two."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    space = " " * max(0, width - len(text) - wide)
    return f"{space}{text}" if right else f"{text}{space}"
