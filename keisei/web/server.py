"""The server as a process: its port, its token, and how it ends.

Ctrl-C and SIGTERM end streams and engines at once; what is still being read is left, since nothing here has
anything to save.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from keisei.errors import UserError
from keisei.web.app import make_app
from keisei.web.guard import LEAST_TOKEN
from keisei.web.run_shelf import RunShelf
from keisei.web.site import Site

PORT = 8765
_TRIES = 20  # ports after PORT
_BACKLOG = 512
_GRACE_SECONDS = 1  # for answers in progress, when it is to end


class WebError(UserError):
    """A port, host or token that cannot be used."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server there."""
    with contextlib.suppress(ValueError):
        return ip_address(host).is_loopback
    return host.lower() == "localhost"


def token_for(host: str, token: str | None) -> str | None:
    """Return the token to ask for: the given one, a new one beyond loopback, else none."""
    if token is None:
        return None if is_loopback(host) else secrets.token_urlsafe(24)
    if (
        len(token) < LEAST_TOKEN
        or not (token.isascii() and token.isprintable())
        or set(token) & set(' ";,\\')
    ):
        raise WebError(f"the token must have at least {LEAST_TOKEN} characters, without spaces and quotes")
    return token


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens at a port; None: PORT, or the next one that is free."""
    error: OSError | None = None
    for wanted in [port] if port is not None else range(PORT, PORT + _TRIES):
        try:
            return _bound(host, wanted)
        except OSError as taken:
            error = taken
    where = f"port {port}" if port is not None else f"ports {PORT} to {PORT + _TRIES - 1}"
    raise WebError(f"cannot listen at {where} of {host}: {error.strerror if error else ''}") from error


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    server = socket.socket(family, kind, protocol)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(address)
        server.listen(_BACKLOG)
    except BaseException:
        server.close()
        raise
    return server


def address_of(server: socket.socket, host: str, token: str | None) -> str:
    """Return the address to open in a browser."""
    name = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::", ""):  # nosec B104 # shown, not bound
        name = socket.gethostname()
    address = f"http://{name}:{server.getsockname()[1]}/"
    return address if token is None else f"{address}?token={token}"


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
