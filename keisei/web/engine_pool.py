"""The engines of analyses: a limited number of them, each kept for a while for the next question."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from keisei.web.answers import Refusal
from keisei.web.engines import Engine
from keisei.web.run_shelf import WebPlayer

MOST_ENGINES = 2
MOST_WAITING = 16
IDLE_SECONDS = 120.0


class EnginePool:
    """Lends engines."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MOST_ENGINES)
        self._waiting = 0
        self._lent: set[Engine] = set()
        self._idle: list[tuple[float, Engine]] = []  # the longest idle first

    @asynccontextmanager
    async def lend(self, player: WebPlayer) -> AsyncIterator[Engine]:
        """Lend an engine of a network, as soon as one is free."""
        if self._waiting >= MOST_WAITING:
            raise Refusal(429, f"{self._waiting} questions wait for the network: try again later")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        engine = self._take(player)
        self._lent.add(engine)
        try:
            yield engine
        finally:
            self._lent.discard(engine)
            self._idle.append((time.monotonic(), engine))
            self._slots.release()

    def _take(self, player: WebPlayer) -> Engine:
        for one in reversed(self._idle):
            if one[1].player == player:
                self._idle.remove(one)
                return one[1]
        while len(self._idle) + len(self._lent) >= MOST_ENGINES:
            self._idle.pop(0)[1].close()
        return Engine(player)

    def remove_idle(self) -> None:
        """End the engines that nobody has asked for a while."""
        while self._idle and time.monotonic() - self._idle[0][0] > IDLE_SECONDS:
            self._idle.pop(0)[1].close()

    def close(self) -> None:
        """End all of them."""
        for engine in [*self._lent, *(one for _, one in self._idle)]:
            engine.close()
