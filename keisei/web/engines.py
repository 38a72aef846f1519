"""An engine process of ours as the server sees it: started on demand, asked one thing at a time, ended.

A request that is cancelled ends the search in the engine. An engine that has died is started again once.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from keisei.web.run_shelf import WebPlayer

_LINE_BYTES = 1024 * 1024
_STOP_SECONDS = 1.0  # an engine that goes on for longer is killed

Answer = TypeVar("Answer")
Told = Callable[[dict[str, Any]], None]


class EngineError(Exception):
    """An engine that cannot be started, or dies again and again; the message is one line."""


class Engine:
    """The process for one player."""

    def __init__(self, player: WebPlayer) -> None:
        self.player = player
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._number = 0

    async def start(self) -> None:
        """Start the process if there is none, and wait until it can think."""
        await self._twice(self._process_ready)

    async def ask(self, request: Mapping[str, Any], told: Told = lambda _: None) -> dict[str, Any]:
        """Return the engine's answer; told gets what it says while it thinks."""
        return await self._twice(lambda: self._asked(request, told))

    async def _twice(self, action: Callable[[], Awaitable[Answer]]) -> Answer:
        """Do something with the process, and once more with another if it dies."""
        async with self._lock:
            try:
                return await action()
            except (EOFError, ConnectionError):
                await self._end()
            try:
                return await action()
            except (EOFError, ConnectionError) as error:
                await self._end()
                raise EngineError(f"the engine of {self.player.name} has ended twice") from error

    async def _asked(self, request: Mapping[str, Any], told: Told) -> dict[str, Any]:
        process = await self._process_ready()
        self._number += 1
        number = self._number
        try:
            await self._write(process, {"id": number, **request})
            return await self._answer(process, number, told)
        except asyncio.CancelledError:
            await asyncio.shield(self._stop(process, number))
            raise

    async def _process_ready(self) -> asyncio.subprocess.Process:
        """Return the process, started if there is none. The client never names its command."""
        if self._process is not None:
            return self._process
        player = self.player
        what = ("built-in", player.name) if player.checkpoint is None else ("network", str(player.checkpoint))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "keisei.web.engine_process", *what),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
            start_new_session=True,  # Ctrl-C is for the server, which ends its engines
        )
        self._process = process
        try:
            await self._answer(process, 0, lambda _: None)
        except BaseException:
            self.close()
            raise
        return process

    async def _write(self, process: asyncio.subprocess.Process, request: Mapping[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        await process.stdin.drain()

    async def _answer(self, process: asyncio.subprocess.Process, number: int, told: Told) -> dict[str, Any]:
        """Return the answer to a request; those to earlier ones, which were given up, are passed over."""
        assert process.stdout is not None
        while line := await process.stdout.readline():
            answer = json.loads(line)
            if answer["id"] != number:
                continue
            if "error" in answer:
                raise EngineError(str(answer["error"]))
            if "done" in answer:
                return dict(answer["done"] or {})
            told(answer)
        raise EOFError

    async def _stop(self, process: asyncio.subprocess.Process, number: int) -> None:
        """End the search for a request that nobody waits for; a built-in player's with its process."""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._write(process, {"do": "stop"})
                await self._answer(process, number, lambda _: None)
        except (TimeoutError, EOFError, ConnectionError, EngineError):
            await self._end()

    async def _end(self) -> None:
        process = self._process
        self.close()
        if process is not None:
            await process.wait()

    def close(self) -> None:
        """End the process; the next request starts another."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process = None
