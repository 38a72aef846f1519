"""Where the server listens: host, port, token, and the address to open. Loads no package of the extra."""

import contextlib
import secrets
import socket
from ipaddress import ip_address

from keisei.errors import UserError

PORT = 8765
LOOPBACK = "127.0.0.1"
LEAST_TOKEN = 12  # characters
_TRIES = 20  # ports after PORT
_BACKLOG = 512


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
