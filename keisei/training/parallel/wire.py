"""Wire: whole messages of a few kinds over a stream socket; reading never waits, sending may."""

import socket
import struct
from enum import IntEnum
from typing import Generic, TypeVar

_FRAME = struct.Struct("<IB")  # length of the body, kind
_LONGEST_BODY = 2**31
_CHUNK, _CHUNKS = 2**18, 64

K = TypeVar("K", bound=IntEnum)
Bytes = bytes | bytearray | memoryview


class DamagedError(ValueError):
    """The other end sent something other than what was requested, or data that was corrupted on the way."""


class Wire(Generic[K]):
    """One end of a stream socket; kinds: of the messages that may arrive."""

    def __init__(self, sock: socket.socket, kinds: type[K]) -> None:
        self.socket = sock
        self._kinds = kinds
        self._inbox = bytearray()
        self._outbox = bytearray()

    def receive(self) -> list[tuple[K, bytes]]:
        """Return the complete messages received, without waiting; raise EOFError if the other end is gone.

        One call reads a bounded amount, so that an endless sender cannot hold the reader.
        """
        ended = False
        for _ in range(_CHUNKS):
            try:
                data = self.socket.recv(_CHUNK, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except ConnectionError:
                data = b""
            if not data:
                ended = True
                break
            self._inbox += data
        messages = []
        while len(self._inbox) >= _FRAME.size:
            length, number = _FRAME.unpack_from(self._inbox)
            try:
                kind = self._kinds(number)
            except ValueError:
                kind = None
            if length > _LONGEST_BODY or kind is None:
                raise DamagedError(f"an invalid message: kind {number}, {length} bytes")
            end = _FRAME.size + length
            if len(self._inbox) < end:
                break
            messages.append((kind, bytes(self._inbox[_FRAME.size : end])))
            del self._inbox[:end]
        if ended and not messages:
            raise EOFError("the other end of the channel is gone")
        return messages

    def send(self, kind: K, *parts: Bytes) -> None:
        """Send a message, waiting until all of it is sent."""
        self.socket.sendall(_FRAME.pack(sum(len(part) for part in parts), kind) + b"".join(parts))

    def post(self, kind: K, *parts: Bytes) -> None:
        """Send a message without waiting; what does not fit now goes out with a later `flush`."""
        self._outbox += _FRAME.pack(sum(len(part) for part in parts), kind)
        for part in parts:
            self._outbox += part
        self.flush()

    def post_raw(self, data: Bytes) -> None:
        """Pass on whole messages that came from another wire, without waiting."""
        self._outbox += data
        self.flush()

    def flush(self) -> None:
        """Send as much of the buffer as possible without waiting; do nothing if the other end is gone."""
        while self._outbox:
            try:
                sent = self.socket.send(self._outbox, socket.MSG_DONTWAIT)
            except (BlockingIOError, ConnectionError):
                return
            del self._outbox[:sent]

    @property
    def unsent(self) -> int:
        """Bytes not yet sent."""
        return len(self._outbox)
