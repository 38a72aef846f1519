"""The messages between learner, bridge and sites: a kind, fields as JSON, and bytes. Nothing is unpickled.

    learner ── bridge (a Ray driver) ══ Ray ══ foreman (an actor on each node) ── site ── worker processes

Bridge and foremen pass on what is meant for the other side as it is; only learner and sites read it.
"""

import json
import struct
import zlib
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from keisei.training.parallel.wire import DamagedError

_LENGTH = struct.Struct("<II")  # of the fields, and the checksum of everything else
_FRAME = struct.Struct("<IB")  # as in keisei.training.parallel.wire

# A site keeps the games after its last segments, so many for each worker. The learner sends games that are
# among the last half of these only as the number of their segment.
KEPT_GAMES = 8


class ClusterKind(IntEnum):
    """The kind of a message."""

    # learner to bridge
    CONNECT = 1  # to this cluster
    WEIGHTS = 2  # for all sites
    FOR_NODE = 3  # a message for the site on one node
    RELEASE = 4  # end the foreman of a node
    LEAVE = 5
    # bridge to learner
    CONNECTED = 10
    REFUSED = 11  # the cluster cannot be used, or not any more
    HIRED = 12  # a foreman is being started on a node
    LOST = 13  # a foreman is gone
    SIGN_OF_LIFE = 14  # of the bridge
    ARRIVED = 15  # weights of this version, on a node
    # to a site
    START = 20
    PLAY = 21
    PAUSE = 22
    RESUME = 23
    POLLED = 24  # by the foreman: somebody reads what the site sends
    # from a site
    READY = 30
    SEGMENT = 31
    STATUS = 32
    FAILED = 33
    NOTE = 34  # a line for the user


def pack(fields: Mapping[str, Any], *parts: bytes | bytearray | memoryview) -> bytes:
    """Return the body of a message."""
    head = json.dumps(fields).encode()
    checksum = zlib.crc32(head)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join((_LENGTH.pack(len(head), checksum), head, *parts))


def unpack(body: bytes | memoryview) -> tuple[dict[str, Any], memoryview]:
    """Return the fields and the bytes of a message; raise DamagedError if they are not what was packed."""
    if len(body) < _LENGTH.size:
        raise DamagedError(f"a message of {len(body)} bytes, expected at least {_LENGTH.size}")
    length, checksum = _LENGTH.unpack_from(body)
    rest = memoryview(body)[_LENGTH.size :]
    if zlib.crc32(rest) != checksum or length > len(rest):
        raise DamagedError("a message does not match its checksum")
    fields = json.loads(bytes(rest[:length]))
    if not isinstance(fields, dict):
        raise DamagedError("a message without fields")
    return fields, rest[length:]


def frame(kind: ClusterKind, body: bytes) -> bytes:
    """Return a whole message, as a Wire sends it, to be passed on as it is."""
    return _FRAME.pack(len(body), kind) + body
