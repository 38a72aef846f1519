"""A game against a network or another player in the terminal.

Moves are typed in any usual notation, see keisei.shogi.typed_moves. Everything goes through `ask` and `show`,
so that a program can play too. No game is lost: at its end, on Ctrl-C and at the end of input it is saved or,
if no file was named, its moves are shown.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from keisei.errors import UserError, system_message
from keisei.language import ENGLISH, Speaker, padded
from keisei.shogi import (
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
from keisei.shogi.typed_moves import AmbiguousMoveError, IllegalMoveError, read_typed_move
from keisei.usi.board_text import board_text, wants_colors
from keisei.usi.opponent import Opponent
from keisei.usi.play_setup import PlayError, SaveError, check_file, color_of, new_file


class _Leave(Exception):  # noqa: N818  (not an error)
    """The person has had enough."""


def main(
    load: Callable[[], Opponent],
    game: ShogiGame,
    *,
    color: str = "black",
    save: Path | None = None,
    speaker: Speaker = ENGLISH,
) -> int:
    """Play a game against what `load` returns, and return the exit code.

    color: the person's, black, white or random. save: where the game is written at the end; if None, the
    person is asked. Mistakes in these are reported before `load` is called.
    """
    person = color_of(color)
    if save is not None:
        check_file(save)
    return Play(game, person, load(), save, speaker=speaker, colors=wants_colors(sys.stdout)).run()


def _ask(prompt: str) -> str:
    if sys.stdin is None:  # closed from the beginning, by `<&-`
        raise EOFError
    return input(prompt)


class Play:
    """One game between a person and an opponent.

    colors: whether the board has some. ask: shows a prompt and returns what the person types; raises
    EOFError at the end of input.
    """

    def __init__(
        self,
        game: ShogiGame,
        person: Color,
        opponent: Opponent,
        save: Path | None,
        *,
        speaker: Speaker = ENGLISH,
        colors: bool = False,
        ask: Callable[[str], str] = _ask,
        show: Callable[[str], None] = print,
    ) -> None:
        self._game = game
        self._person = person
        self._opponent = opponent
        self._save = save
        self._say = speaker.of_game(game.start_sfen)
        self._colors = colors
        self._ask = ask
        self._show = show
        self._written: Path | None = None  # a file of this game, which may be overwritten
        self._kept = self._facts()  # what is in it
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "help": lambda _: self._show(self._say("play.help")),
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
        except UserError as fault:  # of the opponent
            self._show(str(fault))
            code = 2
        finally:
            self._opponent.end(self._game)
        return self._keep(may_ask) or code

    def _play(self) -> None:
        side = self._say.side(self._person)
        self._show(self._say("play.start", side=side, opponent=self._opponent.name))
        self._draw()
        while (outcome := self._game.outcome()) is None:
            if self._game.turn == self._person:
                self._person_moves()
            else:
                self._opponent_moves()
        if self._game.turn != self._person:  # otherwise the board was shown after the opponent's move
            self._draw()
        self._show(self._say("play.end", outcome=self._say.outcome(outcome), moves=self._game.ply))

    def _person_moves(self) -> None:
        side = self._say.side(self._game.turn)
        words = self._ask(self._say("play.prompt", side=side, number=self._game.ply + 1)).split()
        if not words:
            return
        typed = " ".join(words)
        try:
            if words[0].lower() in self._commands:
                self._commands[words[0].lower()](words[1:])
            elif words[0].isascii() and words[0].isalpha():  # every move has a square
                self._show(self._say("play.unknown", word=words[0]))
            else:
                self._game.push(read_typed_move(self._game, typed))
        except (NotationError, RulesError) as mistake:
            self._show(str(mistake) if self._say == ENGLISH else self._refusal(typed, mistake))
        except (PlayError, OSError) as mistake:
            self._show(self._told(mistake))

    def _refusal(self, typed: str, mistake: Exception) -> str:
        """Return why what was typed is refused, in the language of this game."""
        match mistake:
            case IllegalMoveError():
                return self._say.illegal(self._game, mistake)
            case AmbiguousMoveError():
                moves = " ".join(self._say.move(self._game, move) for move in mistake.moves)
                return self._say("play.ambiguous", text=mistake.text, moves=moves)
            case NotationError():
                return self._say("play.unreadable", text=typed)
        return self._say("play.refused", mistake=mistake)

    def _opponent_moves(self) -> None:
        if self._game.can_declare():
            self._game.declare()
            return
        decided = self._opponent.decide(self._game)
        if isinstance(decided, Move):
            self._game.push(decided)
        else:
            if decided.detail:
                self._show(decided.detail)
            self._game.resign()
        self._draw()

    def _draw(self) -> None:
        self._show(f"\n{board_text(self._game, colors=self._colors, speaker=self._say)}")

    def _list_moves(self, _words: list[str]) -> None:
        moves = [self._say.move(self._game, move) for move in sorted(self._game.legal_moves(), key=str)]
        width = 5 if self._say == ENGLISH else 14
        for start in range(0, len(moves), 60 // width):
            row = " ".join(padded(move, width) for move in moves[start : start + 60 // width])
            self._show(row.rstrip())

    def _hint(self, _words: list[str]) -> None:
        if self._game.can_declare():
            self._show(self._say("play.declare"))
        elif (advice := self._opponent.advise(self._game)) is None:
            self._show(self._say("play.no hint", opponent=self._opponent.name))
        else:
            self._show(advice.told(self._say, self._game))

    def _undo(self, _words: list[str]) -> None:
        if len(self._game.history) < 2:
            self._show(self._say("play.no undo"))
            return
        self._game.pop()
        self._game.pop()
        self._draw()

    def _quit(self, _words: list[str]) -> None:
        raise _Leave

    def _save_as(self, words: list[str]) -> None:
        name = " ".join(words)
        self._write(self._written if self._written and name in ("", str(self._written)) else new_file(name))

    def _write(self, path: Path) -> None:
        if path != self._written:
            check_file(path)
        names = {self._person: self._say("play.you"), self._person.opponent: self._opponent.name}
        record = GameRecord.from_game(self._game, black=names[Color.BLACK], white=names[Color.WHITE])
        write_record(path, record)
        self._kept, self._written = self._facts(), path
        self._show(self._say("play.saved", path=path))

    def _facts(self) -> tuple[list[Move], Outcome | None]:
        return self._game.history, self._game.outcome()

    def _keep(self, may_ask: bool) -> int:
        """Save the game, or show its moves if it is saved nowhere; return 2 if it could not be saved."""
        code, path = 0, self._save or self._written
        try:
            if path is None and may_ask and self._kept != self._facts():
                name = self._ask(self._say("play.save as")).strip()
                if not name:
                    return 0
                path = new_file(name)
            if path is not None and self._kept != self._facts():
                self._write(path)
        except (PlayError, OSError) as mistake:
            self._show(self._say("play.not saved", mistake=self._told(mistake)))
            code = 2
        except (EOFError, KeyboardInterrupt):
            self._show("")
        if self._kept != self._facts():
            moves = write_usi(GameRecord.from_game(self._game))
            self._show(self._say("play.moves", moves=moves))
        return code

    def _told(self, mistake: PlayError | OSError) -> str:
        if isinstance(mistake, SaveError):
            return self._say(mistake.key, **mistake.values)
        return system_message(mistake) if isinstance(mistake, OSError) else str(mistake)
