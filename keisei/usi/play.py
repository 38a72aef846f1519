"""A game against a network in the terminal.

Moves are typed as in USI: 7g7f moves, 8h2b+ promotes, P*5e drops. Everything goes through `ask` and `show`,
so that a program can play too. No game is lost: at its end, on Ctrl-C and at the end of input it is saved or,
if no file was named, its moves are shown.
"""

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from keisei.errors import UserError
from keisei.runs.find import find_checkpoint
from keisei.shogi import (
    START_SFEN,
    Color,
    GameRecord,
    Move,
    NotationError,
    Outcome,
    RulesError,
    ShogiGame,
    write_record,
    write_usi,
)
from keisei.shogi.records.kif import HANDICAPS
from keisei.usi.clock import Control
from keisei.usi.options import Options
from keisei.usi.protocol import Limits
from keisei.usi.why_illegal import why_illegal

if TYPE_CHECKING:
    from keisei.usi.thinking import Decision, Thinker

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

RECORD_KINDS = (".kif", ".kifu", ".csa", ".usi")

HELP = """\
7g7f  8h2b+  P*5e   move, move and promote, drop a pawn
moves               the legal moves
hint                what the engine would play
undo                take back your last move and the reply to it
board               show the board again
declare             claim a win with the king in the enemy camp
resign              give up
save FILE           write the game so far: .kif, .csa or .usi
quit                leave\
"""


class PlayError(UserError, ValueError):
    """An invalid setting of the game."""


class _Leave(Exception):  # noqa: N818  (not an error)
    """The person has had enough."""


def main(
    checkpoint: str,
    *,
    color: str = "black",
    visits: int = 400,
    sfen: str | None = None,
    handicap: str | None = None,
    declaration: str = "27",
    max_moves: int | None = 512,
    save: Path | None = None,
) -> int:
    """Play a game against a checkpoint (see find_checkpoint), and return the exit code.

    color: the person's, black, white or random. visits: how much the engine searches, 0 for its policy alone.
    save: where the game is written at the end; if None, the person is asked.
    """
    try:
        game = _game(start_sfen(sfen, handicap), max_moves, declaration)
        person = _color(color)
        if visits < 0:
            raise PlayError(f"visits is {visits}, expected 0 or more")
        if save is not None:
            _check_file(save)
        path = find_checkpoint(checkpoint)
        print("loading the network", flush=True)
        from keisei.usi.thinking import Thinker  # here: mistakes are reported first

        options = Options(visits=visits, policy=visits == 0)
        thinker = Thinker.load(path, options)
    except (UserError, NotationError, RulesError) as mistake:
        print(f"keisei: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return Play(game, person, thinker, options, save).run()


def start_sfen(sfen: str | None, handicap: str | None) -> str:
    """Return the start position: the given one, or that of a handicap."""
    if sfen is not None and handicap is not None:
        raise PlayError("expected a position or a handicap, given both")
    if handicap is None:
        return START_SFEN if sfen is None else sfen
    name = HANDICAP_NAMES.get(handicap, handicap)
    if name not in HANDICAPS:
        raise PlayError(f"handicap is {handicap}, expected one of {', '.join(HANDICAP_NAMES)}")
    return HANDICAPS[name]


def _game(sfen: str, max_moves: int | None, declaration: str) -> ShogiGame:
    try:
        return ShogiGame(sfen, max_moves=max_moves, declaration=declaration)
    except ValueError as mistake:
        raise PlayError(str(mistake)) from mistake


def _color(text: str) -> Color:
    colors = {"black": Color.BLACK, "white": Color.WHITE, "random": random.choice(list(Color))}
    if text not in colors:
        raise PlayError(f"color is {text}, expected black, white or random")
    return colors[text]


def _check_file(path: Path) -> None:
    """Reject a file that cannot be a new record, before there is a game to lose."""
    if path.suffix.lower() not in RECORD_KINDS:
        raise PlayError(f"cannot save to {path}: expected {', '.join(RECORD_KINDS)}")
    if path.exists():
        raise PlayError(f"cannot save to {path}: it already exists")
    if not path.parent.is_dir():
        raise PlayError(f"cannot save to {path}: no directory {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise PlayError(f"cannot save to {path}: directory {path.parent} is not writable")


class Play:
    """One game between a person and a network.

    ask: shows a prompt and returns what the person types; raises EOFError at the end of input.
    """

    def __init__(
        self,
        game: ShogiGame,
        person: Color,
        thinker: "Thinker",
        options: Options,
        save: Path | None,
        *,
        ask: Callable[[str], str] = input,
        show: Callable[[str], None] = print,
    ) -> None:
        self._game = game
        self._person = person
        self._thinker = thinker
        self._options = options
        self._save = save
        self._ask = ask
        self._show = show
        self._written: Path | None = None  # a file of this game, which may be overwritten
        self._kept = self._facts()  # what is in it
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "help": lambda _: self._show(HELP),
            "moves": self._list_moves,
            "hint": self._hint,
            "undo": self._undo,
            "board": lambda _: self._draw(),
            "declare": lambda _: self._game.declare(),
            "resign": lambda _: self._game.resign(),
            "save": self._save_as,
            "quit": self._quit,
        }

    def run(self) -> int:
        """Play to the end, and return the exit code: 130 after Ctrl-C, otherwise 0."""
        code, may_ask = 0, True
        try:
            self._play()
        except _Leave:
            pass
        except EOFError:
            self._show("")
            may_ask = False
        except KeyboardInterrupt:
            self._show("")
            code, may_ask = 130, False
        return self._keep(may_ask) or code

    def _play(self) -> None:
        self._show(f"you are {self._person}, against {self._thinker.name}; type help for the commands")
        self._draw()
        while (outcome := self._game.outcome()) is None:
            if self._game.turn == self._person:
                self._person_moves()
            else:
                self._engine_moves()
        if self._game.turn != self._person:  # otherwise the board was shown after the engine's move
            self._draw()
        self._show(f"{outcome}, after {self._game.ply} moves")

    def _person_moves(self) -> None:
        words = self._ask(f"{self._game.turn}, move {self._game.ply + 1}: ").split()
        if not words:
            return
        try:
            if words[0] in self._commands:
                self._commands[words[0]](words[1:])
            else:
                self._move(" ".join(words))
        except (NotationError, RulesError, PlayError, OSError) as mistake:
            self._show(str(mistake))

    def _move(self, text: str) -> None:
        try:
            move = Move.from_usi(text)
        except NotationError:
            self._show(f"expected a move such as 7g7f or P*5e, or help; given {text!r}")
            return
        if move in self._game.legal_moves():
            self._game.push(move)
        else:
            self._show(f"{move} is illegal: {why_illegal(self._game, move)}")

    def _engine_moves(self) -> None:
        if self._game.can_declare():
            self._game.declare()
            return
        decision = self._think()
        if isinstance(decision.move, Move):
            self._game.push(decision.move)
        else:
            self._game.resign()
        self._draw()

    def _think(self) -> "Decision":
        control = Control(time.monotonic(), None, waits=False)
        return self._thinker.think(self._game, Limits(), self._options, control, lambda _: None)

    def _draw(self) -> None:
        history = self._game.history
        last = f"\nlast move: {history[-1]}" if history else ""
        check = "\ncheck!" if self._game.is_check() else ""
        self._show(f"\n{self._game}{last}{check}")

    def _list_moves(self, _words: list[str]) -> None:
        moves = sorted(map(str, self._game.legal_moves()))
        for start in range(0, len(moves), 12):
            self._show(" ".join(f"{move:5}" for move in moves[start : start + 12]).rstrip())

    def _hint(self, _words: list[str]) -> None:
        if self._game.can_declare():
            self._show("declare")
        else:
            self._show(str(self._think().move))

    def _undo(self, _words: list[str]) -> None:
        if len(self._game.history) < 2:
            self._show("you have no move to take back")
            return
        self._game.pop()
        self._game.pop()
        self._draw()

    def _quit(self, _words: list[str]) -> None:
        raise _Leave

    def _save_as(self, words: list[str]) -> None:
        if len(words) != 1:
            self._show("expected save FILE, a .kif, .csa or .usi")
            return
        self._write(Path(words[0]))

    def _write(self, path: Path) -> None:
        if path != self._written:
            _check_file(path)
        names = {self._person: "you", self._person.opponent: self._thinker.name}
        record = GameRecord.from_game(self._game, black=names[Color.BLACK], white=names[Color.WHITE])
        write_record(path, record)
        self._kept, self._written = self._facts(), path
        self._show(f"saved {path}")

    def _facts(self) -> tuple[list[Move], Outcome | None]:
        return self._game.history, self._game.outcome()

    def _keep(self, may_ask: bool) -> int:
        """Save the game, or show its moves if it is saved nowhere; return 2 if it could not be saved."""
        code, path = 0, self._save or self._written
        try:
            if path is None and may_ask and self._kept != self._facts():
                name = self._ask("save the game as (.kif, .csa or .usi; empty to discard it): ").strip()
                if not name:
                    return 0
                path = Path(name)
            if path is not None and self._kept != self._facts():
                self._write(path)
        except (PlayError, OSError) as mistake:
            self._show(f"not saved: {mistake}")
            code = 2
        except (EOFError, KeyboardInterrupt):
            self._show("")
        if self._kept != self._facts():
            self._show(f"the game is not saved; its moves: {write_usi(GameRecord.from_game(self._game))}")
        return code
