"""The server as a process, and how it ends.

Ctrl-C and SIGTERM end streams and engines at once; what is still being read is abandoned, since nothing here
needs saving.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvicorn

from keisei.web.address import address_of, listen, token_for
from keisei.web.app import make_app
from keisei.web.run_shelf import RunShelf
from keisei.web.site import Site

_GRACE_SECONDS = 1  # for answers in progress, when it is to end


def run(
    named: Sequence[Path],
    directory: Path,
    *,
    host: str,
    port: int | None,
    token: str | None,
    lang: str | None,
    open_browser: bool,
) -> int:
    """Serve some runs, or all in a directory, and print the address; return the exit code."""
    asked = token_for(host, token)
    server = listen(host, port)
    address = address_of(server, host, asked)

    def ready() -> None:
        print(address, flush=True)
        if open_browser:
            webbrowser.open(address)

    return serve(Site(RunShelf(named, directory), lang), server, asked, ready)


def serve_runs(named: Sequence[Path], directory: Path, server: socket.socket) -> int:
    """Serve the same at a socket that listens already, on loopback; return the exit code."""
    return serve(Site(RunShelf(named, directory)), server, None, lambda: None)


class _Server(uvicorn.Server):
    """uvicorn's server, whose streams end when it is to end, and which leaves signals to `serve`."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield

    def end(self) -> None:
        """End soon."""
        self.should_exit = True
        self._site.end_streams()


def serve(site: Site, server: socket.socket, token: str | None, ready: Callable[[], None]) -> int:
    """Serve until a signal comes; return the exit code, 128 + signal. ready: called once it answers."""
    config = uvicorn.Config(
        make_app(site, token),
        log_level="critical",
        access_log=False,
        server_header=False,
        ws="none",
        http="h11",
        loop="asyncio",
        lifespan="on",
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return asyncio.run(_serve(_Server(config, site), server, ready))


async def _serve(web: _Server, server: socket.socket, ready: Callable[[], None]) -> int:
    came: list[int] = []

    def end(signum: int) -> None:
        came.append(signum)
        web.end()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(signum, end, signum)
    ready()
    await web.serve(sockets=[server])
    code = 128 + came[0] if came else 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads that still read a file have nothing to finish
