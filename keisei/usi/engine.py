"""The engine: its answer to each command of a GUI. keisei.usi.main is the process around it.

`usi` is answered before the network is loaded, which for a GPU takes seconds; `isready` loads it, or `go`.
Thinking has its own thread, so that other commands are answered meanwhile. An invalid line is answered
with `info string error …` and changes nothing.
"""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Protocol

from keisei.search.mate import find_mate
from keisei.shogi import NotationError, RulesError, ShogiGame
from keisei.usi.clock import Control, seconds_to_think
from keisei.usi.decision import Decision, Tell
from keisei.usi.gui_position import game_length, set_up
from keisei.usi.options import OptionError, Options, option_lines, with_option
from keisei.usi.protocol import (
    Command,
    Debug,
    GameOver,
    Go,
    GoMate,
    Info,
    IsReady,
    Limits,
    NewGame,
    PonderHit,
    ProtocolError,
    Quit,
    SetOption,
    SetPosition,
    Stop,
    Usi,
    bestmove_line,
    checkmate_line,
    error_line,
    id_lines,
    info_line,
    parse,
    string_info_line,
)

AUTHOR = "the Keisei authors"

_START = SetPosition(ShogiGame().start_sfen, ())
_ONLY_MOVE_SECONDS = 0.1  # to think if there is no choice: enough to find a reply to ponder on
_MATE_BYTES = 100  # per position that find_mate visits
_JOIN_SECONDS = 10.0


class Thinks(Protocol):
    """Who decides on the moves. max_moves: the length of a game if the GUI sets none."""

    max_moves: int

    def think(
        self, game: ShogiGame, limits: Limits, options: Options, control: Control, tell: Tell
    ) -> Decision:
        """Return what to play in a game that is not over, no earlier than `control` says."""
        ...


@dataclass(frozen=True)
class Mind:
    """What plays, before it is loaded. name: what GUIs show. options: the names of those that it obeys."""

    name: str
    load: Callable[[Options], Thinks]
    options: Collection[str]


class Engine:
    """A USI engine without its process: `handle` takes a line, `write` gets the lines of the answer.

    fail: called in the thinking thread with an exception raised there; the engine is unusable afterwards.
    has_quit: it takes no more lines. loading: it is loading the network, which cannot be interrupted.
    """

    def __init__(
        self,
        mind: Mind,
        write: Callable[[str], None],
        fail: Callable[[Exception], None],
        options: Options,
    ) -> None:
        self.has_quit = False
        self.loading = False
        self._mind = mind
        self._write = write
        self._fail = fail
        self._options = self._defaults = options
        self._position = _START
        self._thinker: Thinks | None = None
        self._control: Control | None = None  # of the current thinking
        self._ponder_limits = Limits()
        self._thread = threading.Thread()
        self._lock = threading.RLock()  # guards _control, and keeps lines from mixing

    def handle(self, line: str, at: float | None = None) -> None:
        """Obey a line that arrived at `at`, by time.monotonic; a damaged network raises CheckpointError."""
        try:
            command = parse(line)
            if command is not None:
                self._obey(command, time.monotonic() if at is None else at)
        except (ProtocolError, OptionError, NotationError, RulesError) as mistake:
            self.complain(mistake)

    def complain(self, mistake: Exception) -> None:
        """Tell the GUI what went wrong."""
        self._say(error_line(str(mistake)))

    def end_of_input(self) -> None:
        """Answer the current go, if any, and quit."""
        self._stop()
        self._leave()

    def close(self) -> None:
        """Quit without another word."""
        with self._lock:
            if self._control is not None:
                self._control.abandon()
        self._leave()

    def _obey(self, command: Command, at: float) -> None:
        match command:
            case Usi():
                options = option_lines(self._defaults, self._mind.options)
                self._say(*id_lines(self._name(), AUTHOR), *options, "usiok")
            case IsReady():
                self._loaded()
                self._say("readyok")
            case SetOption(name, value):
                self._refuse_while_thinking("setoption")
                self._options = with_option(self._options, name, value)
            case SetPosition():
                self._refuse_while_thinking("position")
                self._game(command)
                self._position = command
            case Go(limits, ponder):
                self._refuse_while_thinking("go")
                self._go(limits, ponder, at)
            case GoMate(milliseconds):
                self._refuse_while_thinking("go")
                self._go_mate(milliseconds, at)
            case Stop():
                self._stop()
            case PonderHit(limits):
                self._ponder_hit(limits, at)
            case NewGame() | GameOver():  # some GUIs send no stop first, but wait for the answer
                self._stop()
                self._join()
            case Debug():
                self._describe()
            case Quit():
                self.close()

    def _name(self) -> str:
        return ascii(f"Keisei {version('keisei')} {self._mind.name}")[1:-1]

    def _say(self, *lines: str) -> None:
        with self._lock:
            for line in lines:
                self._write(line)

    def _refuse_while_thinking(self, command: str) -> None:
        with self._lock:
            if self._control is not None:
                raise ProtocolError(f"{command} while thinking: expected stop first")

    def _loaded(self) -> Thinks:
        if self._thinker is None:
            self.loading = True
            try:
                self._thinker = self._mind.load(self._options)
            finally:
                self.loading = False
        return self._thinker

    def _go(self, limits: Limits, ponder: bool, at: float) -> None:
        thinker, options = self._loaded(), self._options
        length = game_length(self._position, options.max_moves, thinker.max_moves)
        game = set_up(self._position, max_moves=length, declaration=options.entering_king)
        self._ponder_limits = limits
        control = Control(at, self._seconds(limits, game), waits=ponder or limits.infinite)

        def tell(infos: Sequence[Info]) -> None:
            if not control.silent:
                self._say(*map(info_line, infos))

        def answer() -> str:
            if word := _decided(game):
                control.wait()
                return bestmove_line(word)
            decision = thinker.think(game, limits, options, control, tell)
            return bestmove_line(decision.move, decision.ponder)

        self._think(control, answer)

    def _game(self, position: SetPosition) -> ShogiGame:
        """Return the game of a position, which may be a mate problem: only go needs both kings."""
        rule = self._options.entering_king
        return set_up(position, max_moves=None, declaration=rule, kings="defender")

    def _seconds(self, limits: Limits, game: ShogiGame) -> float | None:
        seconds = seconds_to_think(limits, game.turn, self._options.network_delay)
        if seconds is not None and len(game.legal_moves()) == 1:
            return min(seconds, _ONLY_MOVE_SECONDS)
        return seconds

    def _ponder_hit(self, limits: Limits | None, at: float) -> None:
        game = self._game(self._position)
        with self._lock:
            control = self._control
            if control is None or not control.waits or self._ponder_limits.infinite:
                raise ProtocolError(
                    "ponderhit, but the engine is not pondering: expected go ponder before it"
                )
            control.hit(at, self._seconds(limits or self._ponder_limits, game))

    def _go_mate(self, milliseconds: int | None, at: float) -> None:
        game = set_up(self._position, max_moves=None, declaration="off", kings="defender")
        limits = Limits(movetime=milliseconds)
        control = Control(at, seconds_to_think(limits, game.turn, self._options.network_delay), waits=False)
        nodes = self._options.hash_mb * 2**20 // _MATE_BYTES

        def answer() -> str:
            if not game.legal_moves():
                return checkmate_line("nomate")
            found = find_mate(game, max_nodes=nodes, should_stop=control.over)
            return checkmate_line("timeout" if found.kind == "unknown" else found.kind, found.line)

        self._think(control, answer)

    def _think(self, control: Control, answer: Callable[[], str]) -> None:
        """Run answer in a thread, and send what it returns."""

        def run() -> None:
            try:
                line = answer()
                with self._lock:
                    # First, because the next command may come as soon as the answer is read.
                    self._control = None
                    if not control.silent:
                        self._say(line)
            except Exception as error:
                self._fail(error)

        with self._lock:
            self._control = control
        self._thread = threading.Thread(target=run, name="thinking", daemon=True)
        self._thread.start()

    def _stop(self) -> None:
        with self._lock:
            if self._control is not None:
                self._control.stop()

    def _join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def _leave(self) -> None:
        self._join()
        self.has_quit = True

    def _describe(self) -> None:
        game = self._game(self._position)
        values = [line.split()[2::4] for line in option_lines(self._options, self._mind.options)]
        self._say(
            string_info_line(f"position {game.sfen()}"),
            string_info_line(f"options {' '.join('='.join(pair[:2]) for pair in values)}"),
        )


def _decided(game: ShogiGame) -> str | None:
    """Return resign or win if there is nothing to think about."""
    if not game.legal_moves():
        return "resign"
    return "win" if game.can_declare() else None
