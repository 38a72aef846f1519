"""A table: a person against an engine in a process of its own, followed by any number of pages.

The engine thinks in a task that is cancelled when its answer is no longer wanted. Whatever changes, `changes`
tells; `facts` is what pages get.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from keisei.shogi import Color
from keisei.web.answers import Refusal
from keisei.web.engines import Engine, EngineError
from keisei.web.event_stream import HEARTBEAT, Changes, event
from keisei.web.run_shelf import WebPlayer, id_of
from keisei.web.table_clock import TableClock
from keisei.web.table_game import TableGame

_TELL_SECONDS = 0.25  # between two events of thinking
_HINT_VISITS = 400  # at least


class Table:
    """visits: 0 is the policy alone. thinking: whether pages see what the engine thinks.

    over: called with the table when the game has ended.
    """

    def __init__(
        self,
        id: str,
        opponent: WebPlayer,
        game: TableGame,
        clock: TableClock | None,
        *,
        visits: int,
        thinking: bool,
        over: Callable[["Table"], None],
    ) -> None:
        self.id = id
        self.opponent = opponent
        self.game = game
        self.changes = Changes()
        self.used = time.monotonic()
        self.visits, self.thinking = visits, thinking
        self._clock, self._over = clock, over
        self._engine = Engine(opponent)
        self._task: asyncio.Task[None] | None = None
        self._error: str | None = None
        self._lines: dict[str, Any] | None = None
        self._version = 0
        self._flag: asyncio.TimerHandle | None = None
        self._go_on()

    # What pages see.

    @property
    def state(self) -> str:
        """Yours, thinking, over or failed."""
        if self.game.outcome is not None:
            return "over"
        if self._error is not None:
            return "failed"
        return "yours" if self.game.turn is self.game.seat.side else "thinking"

    def facts(self) -> dict[str, Any]:
        """Return everything of the table."""
        return {
            "id": self.id,
            "version": self._version,
            "game": id_of("table", self.id) if self.state == "over" and self.game.moves else None,
            "opponent": {"id": self.opponent.id, "name": self.opponent.name},
            "state": self.state,
            "error": self._error,
            **self.game.facts(yours=self.state == "yours"),
            "visits": self.visits,
            "thinking": self.thinking,
            "clock": None if self._clock is None else self._clock.facts(),
        }

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the table at every change, and what the engine thinks if that is to be shown."""
        version, lines, told_at = -1, None, 0.0
        while not self.changes.ended:
            self.used = time.monotonic()
            if version != self._version:
                version, lines = self._version, None
                yield event("table", self.facts())
                continue
            if self.thinking and self._lines is not None and self._lines is not lines:
                await asyncio.sleep(max(0.0, told_at + _TELL_SECONDS - time.monotonic()))
                if self._lines is not None and version == self._version:
                    told_at, lines = time.monotonic(), self._lines
                    yield event("thinking", lines)
                continue
            if not await self.changes.wait():
                yield HEARTBEAT

    # What a person does.

    def move(self, move: str, ply: int) -> None:
        """Play a move in the position after so many."""
        self._expect_turn(ply)
        self.game.push(move)
        self._go_on()

    def undo(self) -> None:
        """Take back one's last move, also while the engine thinks about it."""
        self.game.take_back()
        self._error = None
        self._go_on()

    def resign(self) -> None:
        """Give up."""
        self._expect_going_on()
        self.game.resign(self.game.seat.side)
        self._go_on()

    def declare(self) -> None:
        """Claim a win with the king in the enemy camp."""
        self._expect_turn(len(self.game.moves))
        self.game.declare()
        self._go_on()

    async def hint(self) -> dict[str, Any]:
        """Return the best lines, as the opponent's network sees them."""
        self._expect_turn(len(self.game.moves))
        if self.opponent.checkpoint is None:
            raise Refusal(409, f"{self.opponent.name} has no values: a trained network gives hints")
        asked = {**self.game.request(), "do": "lines", "visits": max(self.visits, _HINT_VISITS)}
        try:
            return {"lines": (await self._engine.ask(asked))["lines"]}
        except EngineError as error:
            raise Refusal(503, str(error)) from error

    def set(self, *, thinking: bool | None, visits: int | None) -> None:
        """Change what is shown, or how much the engine searches from its next move on."""
        self.thinking = self.thinking if thinking is None else thinking
        self.visits = self.visits if visits is None else visits
        self._tell()

    def close(self) -> None:
        """End the engine and all streams."""
        self._stop_thinking()
        self._engine.close()
        if self._flag is not None:
            self._flag.cancel()
        self.changes.end()

    # How it goes on.

    def _expect_going_on(self) -> None:
        if self.state == "over":
            raise Refusal(409, "the game is over")

    def _expect_turn(self, ply: int) -> None:
        self._expect_going_on()
        if ply != len(self.game.moves):
            raise Refusal(409, f"{len(self.game.moves)} moves are played, not {ply}")
        if self.game.turn is not self.game.seat.side:
            raise Refusal(409, f"it is the turn of {self.opponent.name}")

    def _go_on(self) -> None:
        """Set clock and engine going for the side to move, or stop both at the end."""
        self._stop_thinking()
        state = self.state
        self._run_clock(self.game.turn if state == "yours" else None)
        if state == "over":
            self._over(self)
        elif state == "thinking":
            self._task = asyncio.create_task(self._think())
        self._tell()

    def _stop_thinking(self) -> None:
        self._lines = None
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._task = None

    def _run_clock(self, color: Color | None) -> None:
        if self._flag is not None:
            self._flag.cancel()
            self._flag = None
        if self._clock is not None:
            self._clock.run(color)
            if (left := self._clock.until_flag()) is not None:
                self._flag = asyncio.get_running_loop().call_later(max(0.0, left), self._flag_falls)

    def _flag_falls(self) -> None:
        self.game.lose_on_time(self.game.turn)
        self._go_on()

    async def _think(self) -> None:
        """Ask the engine, and play what it answers."""
        if self.game.may_declare:
            self.game.declare()
        else:
            try:
                await self._engine.start()  # which takes a second that nobody waits for
                self._run_clock(self.game.turn)
                answer = await self._engine.ask(self._request(), self._told)
            except EngineError as error:
                self._error = str(error)
            else:
                self._play(answer)
        self._go_on()

    def _request(self) -> dict[str, Any]:
        asked = {**self.game.request(), "do": "move", "visits": self.visits, "tell": self.thinking}
        if self._clock is not None:
            asked["clocks"] = [round(1000 * self._clock.main_time(color)) for color in Color]
            asked["byoyomi"] = round(1000 * self._clock.byoyomi)
        return asked

    def _play(self, answer: Mapping[str, Any]) -> None:
        if answer["move"] is None:
            self.game.resign(self.game.turn)
        else:
            self.game.push(answer["move"], answer["black_percent"])

    def _told(self, answer: dict[str, Any]) -> None:
        self._lines = {"ply": len(self.game.moves), "lines": answer["lines"]}
        self.changes.tell()

    def _tell(self) -> None:
        self._version += 1
        self.changes.tell()
