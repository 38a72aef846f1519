"""Server-sent events: how one is written, how a stream waits for the next, and how all of them end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from keisei.web.answers import as_json

HEARTBEAT = b": still here\n\n"
HEARTBEAT_SECONDS = 15.0


def event(name: str, data: Any, number: str | None = None) -> bytes:
    """Return an event; number: its id, which a browser sends when it comes back."""
    return written(name, as_json(data), number)


def written(name: str, data: bytes, number: str | None = None) -> bytes:
    """Return an event whose data is JSON already."""
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {name}\ndata: ".encode() + data + b"\n\n"


class Changes:
    """Wakes everybody who waits, whenever something has changed, and at the end."""

    def __init__(self) -> None:
        self.ended = False
        self._waiting: set[asyncio.Future[None]] = set()

    def tell(self) -> None:
        """Wake them."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def end(self) -> None:
        """Wake them for good."""
        self.ended = True
        self.tell()

    async def wait(self, seconds: float = HEARTBEAT_SECONDS) -> bool:
        """Wait for a change, but no longer than so many seconds; return whether there was one."""
        if self.ended:
            return True
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await asyncio.wait([future], timeout=seconds)
            return future.done()
        finally:
            self._waiting.discard(future)


class EventStream(StreamingResponse):
    """A response that sends events until they end or their reader is gone."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(events, headers=headers, media_type="text/event-stream")
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them; the generator is closed in any case, also if nothing was sent."""
        async with aclosing(self._events):
            await super().__call__(scope, receive, send)
