"""One reader of a run for all who watch it: metrics, state and live games, as server-sent events.

There are no queues. A viewer knows what it has been sent, and is sent what has come since; one that reads
slowly gets the latest state and games only, and the curves anew once it has missed too many rows.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any

from keisei.runs.live_games import LiveGames, keep_watching, read_live_games, stop_watching
from keisei.runs.run_directory import is_running
from keisei.web.answers import as_json
from keisei.web.curves import MOST_ROWS, curves, rows_since, stretch
from keisei.web.event_stream import HEARTBEAT, Changes, written
from keisei.web.game_facts import outcome_facts
from keisei.web.metric_rows import Mark, MetricRows
from keisei.web.run_shelf import Run
from keisei.web.run_state import state

LOOK_SECONDS = 0.5
_TOUCH_SECONDS = 2.0
_STATE_SECONDS = 2.0  # for what changes without a new row: the log, the end of the training
_KEPT_TEXTS = 32  # events kept for other viewers of the same metrics


class RunFeed:
    """The reader of one run; it reads while there are viewers."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.changes = Changes()
        self._rows = MetricRows(run.metrics)
        self._lock = asyncio.Lock()  # for the rows
        self._viewers = 0
        self._follower: asyncio.Task[None] | None = None
        self._failure: OSError | None = None
        self._ready = asyncio.Event()
        self._state = self._games = b""
        self._live: LiveGames | None = None
        self._touched = self._stated = 0.0
        self._texts: dict[tuple[Any, ...], bytes] = {}

    async def events(self, names: Sequence[str], after: str | None) -> AsyncGenerator[bytes, None]:
        """Yield events until the server ends; after: the mark of what the viewer has already."""
        self._come()
        try:
            await self._ready.wait()
            sent_state = sent_games = b""
            mark = None if after is None else Mark.parse(after)
            while not self.changes.ended and self._failure is None:
                quiet = True
                if sent_state is not self._state:
                    sent_state = self._state
                    quiet = False
                    yield written("state", sent_state)
                if (told := await self._metrics(names, mark)) is not None:
                    text, mark = told
                    quiet = False
                    yield text
                if self._games and sent_games is not self._games:
                    sent_games = self._games
                    quiet = False
                    yield written("games", sent_games)
                if sent_state is not self._state:
                    continue  # it has changed while the metrics were waited for
                if quiet and not await self.changes.wait():
                    yield HEARTBEAT
        finally:
            self._viewers -= 1
        if self._failure is not None:
            raise self._failure

    async def curves_once(self, names: Sequence[str], steps: tuple[int, int] | None) -> dict[str, Any]:
        """Return the `curves` event's data, of the whole run or between two steps."""
        async with self._lock:
            return await asyncio.to_thread(self._curves, names, steps)

    def _curves(self, names: Sequence[str], steps: tuple[int, int] | None) -> dict[str, Any]:
        self._rows.read_on()
        first, after = (0, len(self._rows)) if steps is None else stretch(self._rows, *steps)
        return curves(self._rows, names, first, after)

    async def _metrics(self, names: Sequence[str], mark: Mark | None) -> tuple[bytes, Mark] | None:
        """Return the event for who has everything up to a mark, and the new mark; None if that is all."""
        async with self._lock:
            end = self._rows.end
            if mark == end:
                return None
            key = (tuple(names), mark, end)
            if key not in self._texts:
                if len(self._texts) >= _KEPT_TEXTS:
                    self._texts.clear()
                self._texts[key] = await asyncio.to_thread(self._event, names, mark)
            return self._texts[key], end

    def _event(self, names: Sequence[str], mark: Mark | None) -> bytes:
        rows = self._rows
        first = None if mark is None else rows.rows_until(mark)
        if first is None or len(rows) - first > MOST_ROWS:
            return written("curves", as_json(curves(rows, names)), str(rows.end))
        return written("rows", as_json(rows_since(rows, names, first)), str(rows.end))

    def _come(self) -> None:
        self._viewers += 1
        if self._follower is None:
            self._failure = None
            self._ready.clear()
            self._follower = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        """Read until nobody watches. A failure ends all streams; the next viewer begins again."""
        watched = False
        try:
            while self._viewers and not self.changes.ended:
                running = await asyncio.to_thread(is_running, self.run.path)
                watched = watched or running
                await self._look(running)
                self._ready.set()
                await asyncio.sleep(LOOK_SECONDS)
        except OSError as error:
            self._failure = error
        finally:
            self._follower = None
            self._ready.set()
            self.changes.tell()
            if watched:
                with suppress(OSError):
                    stop_watching(self.run.path)

    async def _look(self, running: bool) -> None:
        now, changed = time.monotonic(), False
        if running and now - self._touched >= _TOUCH_SECONDS:
            self._touched = now
            with suppress(OSError):  # a run that one may only read has no live games
                keep_watching(self.run.path)
        async with self._lock:
            grown = await asyncio.to_thread(self._rows.read_on)
            changed |= grown
            changed |= await asyncio.to_thread(self._look_at_games, running)
            if changed or now - self._stated >= _STATE_SECONDS:
                self._stated = now
                told = as_json(await asyncio.to_thread(state, self.run, self._rows, self._live))
                if told != self._state:
                    self._state, changed = told, True
        if changed:
            self.changes.tell()

    def _look_at_games(self, running: bool) -> bool:
        live = read_live_games(self.run.path) if running else None
        if live == self._live:
            return False
        self._live = live
        self._games = as_json(_live_facts(live))
        return True


def _live_facts(live: LiveGames | None) -> dict[str, Any]:
    if live is None:
        return {"step": None, "games": []}
    games = [
        {
            "number": game.number,
            "before": game.before,
            "sfen": game.sfen,
            "moves": game.moves,
            "black_percent": game.black_percent,
            "outcome": None if game.outcome is None else outcome_facts(game.outcome),
        }
        for game in live.games
    ]
    return {"step": live.step, "games": games}
