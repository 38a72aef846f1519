"""What a network thinks of a game: the best moves of one position, or every position of the whole game.

An analysis goes on while somebody follows it; whoever asks for the same one joins it.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from keisei.web.answers import Refusal
from keisei.web.engine_pool import EnginePool
from keisei.web.engines import EngineError
from keisei.web.event_stream import HEARTBEAT, Changes, event
from keisei.web.game_facts import game_at
from keisei.web.game_store import StoredGame
from keisei.web.run_shelf import WebPlayer, id_of

MOST_KEPT = 40
_ALONE_SECONDS = 30.0  # an analysis ends when nobody has followed it for so long


class Analysis:
    """One analysis of one game, in a task of its own."""

    def __init__(self, id: str, pool: EnginePool, game: StoredGame, network: WebPlayer, visits: int) -> None:
        self.id = id
        self.changes = Changes()
        self._viewers = 0
        self._latest: tuple[str, dict[str, Any]] = ("progress", {"done": 0, "total": 0, "black_percent": []})
        self._task = asyncio.create_task(self._run(pool, game, network, visits))
        self._leave()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return self._task.done()

    @property
    def has_failed(self) -> bool:
        """Whether it has ended without a result."""
        return self.is_over and self._latest[0] != "done"

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield its progress, and at last its result or what went wrong."""
        self._viewers += 1
        try:
            told = None
            while not self.changes.ended:
                if told is not self._latest:
                    told = self._latest
                    yield event(*told)
                elif self.is_over:
                    return
                elif not await self.changes.wait():
                    yield HEARTBEAT
        finally:
            self._viewers -= 1
            self._leave()

    def close(self) -> None:
        """End it."""
        self._task.cancel()
        self.changes.end()

    async def _run(self, pool: EnginePool, game: StoredGame, network: WebPlayer, visits: int) -> None:
        asked = {"do": "analyze", "sfen": game.sfen, "moves": game.moves, "visits": visits}
        try:
            async with pool.lend(network) as engine:
                self._tell(
                    "done", await engine.ask(asked, lambda told: self._tell("progress", told["progress"]))
                )
        except asyncio.CancelledError:
            self._tell("failed", {"error": "nobody has followed the analysis"})
            raise
        except (EngineError, Refusal) as error:
            self._tell("failed", {"error": str(error)})

    def _tell(self, name: str, data: dict[str, Any]) -> None:
        self._latest = (name, data)
        self.changes.tell()
        asyncio.get_running_loop().call_soon(self.changes.tell)  # once the task is over too

    def _leave(self) -> None:
        """End it in a while if nobody follows it."""
        asyncio.get_running_loop().call_later(_ALONE_SECONDS, self._end_alone)

    def _end_alone(self) -> None:
        if self._viewers == 0 and not self.is_over:
            self._task.cancel()


class Analyses:
    """All analyses of a server, and the engines for them."""

    def __init__(self) -> None:
        self.pool = EnginePool()
        self._analyses: dict[str, Analysis] = {}

    async def candidates(self, game: StoredGame, ply: int, network: WebPlayer, visits: int) -> dict[str, Any]:
        """Return the best lines of the position after so many moves."""
        moves = game.moves[:ply]
        if game_at(game.sfen, moves).outcome() is not None:
            raise Refusal(409, f"the game is over after {ply} moves")
        asked = {"do": "lines", "sfen": game.sfen, "moves": moves, "max_moves": None, "declaration": "off"}
        try:
            async with self.pool.lend(network) as engine:
                answer = await engine.ask({**asked, "visits": visits})
        except EngineError as error:
            raise Refusal(503, str(error)) from error
        return {"black_percent": answer["black_percent"], "lines": answer["lines"]}

    def begin(self, game: StoredGame, network: WebPlayer, visits: int) -> Analysis:
        """Begin an analysis, or return the one of the same game by the same network."""
        id = id_of("analysis", game.id, game.line, network.id, visits)
        known = self._analyses.get(id)
        if known is None or known.has_failed:
            self._make_room()
            self._analyses[id] = Analysis(id, self.pool, game, network, visits)
        return self._analyses[id]

    def analysis(self, wanted: str) -> Analysis:
        """Return the analysis with an id."""
        if wanted not in self._analyses:
            raise Refusal(404, "no such analysis")
        return self._analyses[wanted]

    def _make_room(self) -> None:
        over = [one for one in self._analyses.values() if one.is_over]
        if len(self._analyses) >= MOST_KEPT:
            if not over:
                raise Refusal(429, f"{len(self._analyses)} analyses are in progress: try again later")
            del self._analyses[over[0].id]

    def end_streams(self) -> None:
        """End the streams of all analyses."""
        for analysis in self._analyses.values():
            analysis.changes.end()

    def close(self) -> None:
        """End all of them."""
        for analysis in self._analyses.values():
            analysis.close()
        self.pool.close()
