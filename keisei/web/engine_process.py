"""An engine in a process of its own, for a table or an analysis: JSON lines in, JSON lines out.

    python -m keisei.web.engine_process network CHECKPOINT
    python -m keisei.web.engine_process built-in NAME

Each line in is a request {"id", "do": "move" | "lines" | "analyze", "sfen", "moves", …} or {"do": "stop"},
which ends the search in progress without an answer. Each line out has the request's id and `lines` or
`progress` while it thinks, and `done` or `error` at its end. It ends as soon as its stdin does, also in the
middle of a search, and so with whoever started it. It plays at a low priority.
"""

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol

from keisei.analysis.game_analysis import Analyst, PositionValue
from keisei.errors import UserError
from keisei.evaluation.players.player import Lost, Player, Turn
from keisei.evaluation.players.player_specs import make_player
from keisei.shogi import Color, GameRecord, Move, ShogiGame
from keisei.usi.clock import Control, seconds_to_think
from keisei.usi.options import Options
from keisei.usi.protocol import Info, Limits
from keisei.usi.thinking import Thinker
from keisei.web.game_facts import texts_of_line

NICENESS = 10
RESERVE_MS = 1000  # of the time for a move: at a low priority an answer comes late
LINES = 5
_MOST_PV = 12  # moves of a line that are told
_TELL_SECONDS = 0.25

Request = dict[str, Any]


class Mind(Protocol):
    """What answers requests."""

    def answer(self, request: Request, control: Control) -> dict[str, Any]:
        """Return the answer, without the id."""
        ...


class NetworkMind:
    """A checkpoint's network: moves, lines of play, analyses."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._thinker = Thinker.load(checkpoint, Options())
        self._analyst: Analyst | None = None

    def answer(self, request: Request, control: Control) -> dict[str, Any]:
        """Think about the position, or about the whole game."""
        if request["do"] == "analyze":
            return self._analyze(request)
        game, visits = game_of(request), request["visits"]
        options = Options(
            visits=visits, policy=visits == 0, multipv=LINES, max_moves=request["max_moves"] or 0
        )
        latest: list[dict[str, Any]] = []
        told_at = 0.0

        def tell(infos: Sequence[Info]) -> None:
            nonlocal told_at
            latest[:] = [line_facts(game, info) for info in infos]
            if request.get("tell") and visits and time.monotonic() - told_at >= _TELL_SECONDS:
                told_at = time.monotonic()
                say({"id": request["id"], "lines": latest})

        decision = self._thinker.think(game, Limits(), options, control, tell)
        move = str(decision.move) if isinstance(decision.move, Move) else None
        return {"move": move, "black_percent": latest[0]["black_percent"], "lines": latest}

    def _analyze(self, request: Request) -> dict[str, Any]:
        self._analyst = self._analyst or Analyst.load(self._checkpoint)
        moves = tuple(Move.from_usi(move) for move in request["moves"])

        def progress(values: Sequence[PositionValue], of: int) -> None:
            percents = [black_percent(value.win_rate, value.turn) for value in values]
            say(
                {
                    "id": request["id"],
                    "progress": {"done": len(values), "total": of, "black_percent": percents},
                }
            )

        record = GameRecord(moves, request["sfen"])
        analysis = self._analyst.analyze(record, visits=request["visits"], progress=progress)
        losses = [
            {"ply": move.number, "loss": loss, "better": str(move.before.line[0])}
            for move in analysis.moves
            if (loss := round(100 * move.loss, 1)) > 0 and move.before.line
        ]
        percents = [black_percent(value.win_rate, value.turn) for value in analysis.positions]
        return {"black_percent": percents, "losses": losses}


class BuiltInMind:
    """A built-in player, which has moves but no values."""

    def __init__(self, name: str) -> None:
        self._player: Player = make_player(name, Random().getrandbits(63))  # a different game each time

    def answer(self, request: Request, control: Control) -> dict[str, Any]:  # noqa: ARG002
        """Return its move."""
        (answer,) = self._player.choose([Turn(game_of(request), 0)])
        return {"move": None if isinstance(answer, Lost) else str(answer), "black_percent": None, "lines": []}


def game_of(request: Request) -> ShogiGame:
    """Return the game that a request is about."""
    declaration = request["declaration"]
    game = ShogiGame(request["sfen"], max_moves=request["max_moves"], declaration=declaration)
    for move in request["moves"]:
        game.push(move)
    return game


def black_percent(win_rate: float, turn: Color) -> float:
    """Return Black's share of a side's win rate, in percent."""
    return round(100 * (win_rate if turn is Color.BLACK else 1 - win_rate), 1)


def line_facts(game: ShogiGame, info: Info) -> dict[str, Any]:
    """Return a line of play for a page."""
    pv = [move for move in info.pv if isinstance(move, Move)][:_MOST_PV]
    texts = texts_of_line(game, pv)
    rate = (info.value + 1) / 2 if info.mate is None else float(info.mate > 0)
    return {
        "move": str(pv[0]),
        "text": {code: lines[0] for code, lines in texts.items()},
        "black_percent": black_percent(rate, game.turn),
        "visits": info.line_visits,
        "mate": info.mate,
        "pv": [str(move) for move in pv],
        "pv_texts": texts,
    }


def say(answer: dict[str, Any]) -> None:
    """Write a line."""
    try:
        sys.stdout.write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(0)  # nobody listens any more


class Requests:
    """Reads stdin in a thread: a search is stopped, and the process ended, in the middle of it."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[Request] = queue.Queue()
        self._lock = threading.Lock()
        self._control: Control | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def control_of(self, request: Request) -> Control:
        """Return what can stop the search for this request."""
        seconds = None
        if clocks := request.get("clocks"):
            limits = Limits(clocks=tuple(clocks), byoyomi=request["byoyomi"])
            seconds = seconds_to_think(limits, game_of(request).turn, RESERVE_MS)
        with self._lock:
            self._control = Control(time.monotonic(), seconds, waits=False)
            if not self.waiting.empty():  # a stop came before it began
                self._control.abandon()
            return self._control

    def _read(self) -> None:
        try:
            for line in sys.stdin.buffer:
                request = json.loads(line)
                with self._lock:
                    if self._control is not None:
                        self._control.abandon()
                    self.waiting.put(request)
        finally:
            os._exit(0)


def main() -> None:
    """Answer requests until stdin ends."""
    os.nice(NICENESS)
    inbox = Requests()
    kind, name = sys.argv[1:]
    try:
        mind: Mind = NetworkMind(Path(name)) if kind == "network" else BuiltInMind(name)
    except UserError as mistake:
        say({"id": 0, "error": str(mistake)})
        return
    say({"id": 0, "done": {}})
    while True:
        request = inbox.waiting.get()
        if request["do"] == "stop":
            continue
        control = inbox.control_of(request)
        done = mind.answer(request, control)
        say({"id": request["id"], "done": None if control.silent else done})


if __name__ == "__main__":
    main()
