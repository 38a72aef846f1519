"""A USI engine as a player. Each game in progress has its own process; idle ones are reused.

    player = UsiPlayer(parse_spec("usi:fairy-stockfish;depth=1"))
    player.start()  # optional: fails early if the program is missing or an option is wrong

A fault loses the game and discards the process; the next game gets a fresh one. An engine's play may depend
on earlier games: what it forgets when a new game begins is its own affair.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from keisei.evaluation.engines.usi_process import (
    EngineError,
    Fault,
    Reply,
    Request,
    UsiProcess,
    close_all,
    exchange,
)
from keisei.evaluation.engines.usi_spec import Limit, LimitKind, UsiEngineSpec, parse_spec
from keisei.evaluation.engines.usi_start import start_engines
from keisei.evaluation.players.player import Answer, Lost, Player, Turn
from keisei.shogi import START_SFEN, Color, Move, NotationError, Reason, ShogiGame

__all__ = ["EngineError", "Limit", "LimitKind", "UsiEngineSpec", "UsiPlayer", "parse_spec"]

_FAILED_STARTS = 3  # in a row: it will not get better
_SHOWN = 80  # characters of an unreadable answer


@dataclass(slots=True)
class _Seat:
    """A game in progress. position: as last sent, "" before the first. lost: the engine resigned."""

    process: UsiProcess
    color: Color
    position: str = ""
    lost: bool = False


class UsiPlayer(Player):
    """A player that plays an external engine's moves.

    If the engine does not start at all, start() or the first choose() raises EngineError. A resignation, an
    illegal move, a timeout and a crash lose the game; so does a failed restart, but the third in a row raises
    EngineError.
    """

    def __init__(self, spec: UsiEngineSpec) -> None:
        self.name = spec.name
        self.identity = spec.identity
        self.capacity: int = spec.processes
        self._spec = spec
        self._engine = ""
        self._idle: list[UsiProcess] = []
        self._seats: dict[int, _Seat] = {}
        self._failed_starts = 0

    def start(self) -> None:
        """Start a first process, unless one has been started, to check the program and its options."""
        if not self._engine:
            self._idle += [process for process in self._start(1) if isinstance(process, UsiProcess)]

    def choose(self, turns: Sequence[Turn]) -> list[Answer]:
        """Return the engine's answer for each of these games; it thinks about all of them at once."""
        failed = self._seat(turns)
        seated = [turn for turn in turns if turn.number not in failed]
        results = exchange([self._question(turn) for turn in seated])
        answers: dict[int, Answer] = {number: _lost(error) for number, error in failed.items()}
        for turn, result in zip(seated, results, strict=True):
            answers[turn.number] = self._answered(turn, result)
        return [answers[turn.number] for turn in turns]

    def end_game(self, turn: Turn) -> None:
        """Tell the engine how the game ended, and free its process for another game."""
        seat = self._seats.pop(turn.number, None)
        if seat is None:
            return
        outcome = turn.game.outcome()
        if seat.lost:
            result = "lose"
        elif outcome is None:  # the opponent's fault: after its own the seat would be gone
            result = "win"
        else:
            result = "draw" if outcome.winner is None else "win" if outcome.winner is seat.color else "lose"
        seat.process.tell(f"gameover {result}")
        self._idle.append(seat.process)

    def close(self) -> None:
        """Ask all processes to quit, and kill those that do not."""
        close_all([*self._idle, *(seat.process for seat in self._seats.values())])
        self._idle.clear()
        self._seats.clear()

    def describe(self) -> dict[str, str]:
        """Return the engine's own name, once started, and its command, limit and options."""
        spec = self._spec
        told = {"engine": self._engine} if self._engine else {}
        told |= {"command": " ".join(spec.command), "limit": f"{spec.limit.kind} {spec.limit.amount}"}
        options = ", ".join(f"{name}={value}" for name, value in spec.options.items())
        return told | ({"options": options} if options else {})

    def _seat(self, turns: Sequence[Turn]) -> dict[int, EngineError]:
        """Give each new game a ready process; return the errors of those that get none."""
        new = [turn for turn in turns if self._is_new(turn)]
        for turn in new:  # an abandoned game whose number another game has now
            if turn.number in self._seats:
                self._idle.append(self._seats.pop(turn.number).process)
        numbers = self._seats.keys() | {turn.number for turn in turns}
        if len(numbers) > self.capacity:
            raise ValueError(
                f"{self.name} has {len(numbers)} games at once, expected at most {self.capacity}"
            )
        ready = self._ready(len(new))
        for turn, process in zip(new, ready, strict=False):
            self._seats[turn.number] = _Seat(process, turn.game.turn)
        others = new[len(ready) :]
        failed = {}
        for turn, started in zip(others, self._start(len(others)), strict=True):
            if isinstance(started, EngineError):
                failed[turn.number] = started
            else:
                self._seats[turn.number] = _Seat(started, turn.game.turn)
        return failed

    def _is_new(self, turn: Turn) -> bool:
        seat = self._seats.get(turn.number)
        return seat is None or not f"{_position(turn.game)} ".startswith(f"{seat.position} ".lstrip())

    def _ready(self, count: int) -> list[UsiProcess]:
        """Return those of at most `count` idle processes that report ready; the others are dropped."""
        idle, self._idle = self._idle[:count], self._idle[count:]
        asked = [Request(process, ["isready"], "readyok", self._spec.start_seconds) for process in idle]
        results = exchange(asked)
        return [each for each, result in zip(idle, results, strict=True) if isinstance(result, Reply)]

    def _start(self, count: int) -> list[UsiProcess | EngineError]:
        """Start `count` processes; raise if the very first one fails, or three in a row."""
        engines: list[UsiProcess | EngineError] = []
        errors = []
        for started in start_engines(self._spec, count):
            if isinstance(started, EngineError):
                self._failed_starts += 1
                if not self._engine or self._failed_starts >= _FAILED_STARTS:
                    errors.append(started)
                engines.append(started)
            else:
                self._failed_starts = 0
                self._engine = started.engine
                engines.append(started.process)
        if errors:
            self._idle += [each for each in engines if isinstance(each, UsiProcess)]  # for close()
            raise errors[0]
        return engines

    def _question(self, turn: Turn) -> Request:
        """Return the request for a move."""
        seat = self._seats[turn.number]
        begin = [] if seat.position else ["usinewgame"]
        seat.position, seat.color = _position(turn.game), turn.game.turn
        lines = [*begin, f"position {seat.position}", self._spec.limit.go]
        return Request(seat.process, lines, "bestmove", self._spec.answer_seconds)

    def _answered(self, turn: Turn, result: Reply | EngineError) -> Answer:
        """Interpret an engine's answer; after a fault its process is discarded."""
        answer = (
            _lost(result) if isinstance(result, EngineError) else self._read_bestmove(result.line, turn.game)
        )
        if isinstance(answer, Lost):
            if answer.reason is Reason.RESIGNATION:
                self._seats[turn.number].lost = True
            else:
                self._seats.pop(turn.number).process.kill()
        return answer

    def _read_bestmove(self, line: str, game: ShogiGame) -> Answer:
        text = " ".join(line.split()[1:2])
        if text == "resign":
            return Lost(Reason.RESIGNATION, f"{self.name} resigned")
        if text == "win":  # the match declares for a side that can, so it never asks then
            return Lost(Reason.ILLEGAL_MOVE, f"{self.name} declared a win it does not have: {game.sfen()}")
        try:
            move = Move.from_usi(text)
        except NotationError:
            return Lost(Reason.ILLEGAL_MOVE, f"{self.name} answered {line[:_SHOWN]!r}, expected a move")
        if move not in game.legal_moves():
            return Lost(Reason.ILLEGAL_MOVE, f"{self.name} played {text}, illegal in position {game.sfen()}")
        return move


def _position(game: ShogiGame) -> str:
    """Return the arguments of the position command: the start and all moves."""
    start = "startpos" if game.start_sfen == START_SFEN else f"sfen {game.start_sfen}"
    moves = "".join(f" {move}" for move in game.history)
    return f"{start} moves{moves}" if moves else start


def _lost(error: EngineError) -> Lost:
    return Lost(Reason.TIME if error.fault is Fault.SILENCE else Reason.FORFEIT, str(error))
