"""Messages between learner, bridge and sites: what was packed comes out, anything else is refused."""

import socket

import pytest

from keisei.training.cluster.messages import ClusterKind, frame, pack, unpack
from keisei.training.parallel.wire import DamagedError, Wire


def test_fields_and_bytes_come_out_as_they_went_in() -> None:
    fields, data = unpack(pack({"place": 3, "state": {"late_starts": ["歩"]}}, b"ab", memoryview(b"c")))
    assert fields == {"place": 3, "state": {"late_starts": ["歩"]}}
    assert bytes(data) == b"abc"


@pytest.mark.parametrize("position", [5, 12, 40])
def test_a_changed_byte_is_noticed(position: int) -> None:
    body = bytearray(pack({"place": 3, "sequence": 12}, bytes(20)))
    body[position] ^= 1
    with pytest.raises(DamagedError, match="checksum"):
        unpack(bytes(body))


def test_too_short_and_not_fields_are_refused() -> None:
    with pytest.raises(DamagedError, match="a message of 3 bytes"):
        unpack(b"abc")
    with pytest.raises(DamagedError, match="without fields"):
        unpack(pack([1]))  # type: ignore[arg-type]


def test_a_frame_is_passed_on_as_a_wire_reads_it() -> None:
    here, there = socket.socketpair()
    with here, there:
        body = pack({"node": 1}, b"weights")
        Wire(here, ClusterKind).post_raw(frame(ClusterKind.PLAY, body) + frame(ClusterKind.PAUSE, pack({})))
        received = Wire(there, ClusterKind).receive()
    assert received == [(ClusterKind.PLAY, body), (ClusterKind.PAUSE, pack({}))]
