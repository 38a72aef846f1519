"""The channels between the learner and its workers: tickets and commands go down, segments come up.

A ticket asks for one segment and names the slot of shared memory to write it to; a worker without a ticket
waits. So there are never more segments in flight than slots, none is overwritten, and a slot is read only
after the worker has reported it complete. The learner's end never blocks on a worker: what a hung worker
does not read stays buffered here, and so does a partial message.
"""

import json
import select
import socket
import struct
import zlib
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum
from multiprocessing.connection import wait
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.core.segment import Segment, SegmentShape
from keisei.core.self_play import GameResult, SavedGames
from keisei.shogi import Color, Outcome, Reason
from keisei.training.parallel.shared_memory import SharedMemory
from keisei.training.parallel.step_memory import LearnTask, StepMemory
from keisei.training.parallel.wire import DamagedError, Wire

_LEARNED = struct.Struct("<q")  # sequence number of the step
_TICKET = struct.Struct("<IIQq")  # slot, steps, sequence, weights version
# worker, incarnation, sequence, weights version, slot, steps, streams, bytes of results, state and games, CRC
_HEADER = struct.Struct("<IIQqIIIIIQI")
_RESULT = np.dtype(
    [("number", "<u8"), ("length", "<i4"), ("winner", "i1"), ("reason", "u1"), ("late_start", "?")]
)
RESULT_BYTES = _RESULT.itemsize
_REASONS = tuple(Reason)


class Kind(IntEnum):
    """The kind of a message."""

    # down
    PLAY = 1
    GAMES = 2  # these are your games from now on; earlier tickets are void
    PAUSE = 3
    RESUME = 4
    STOP = 5
    LEARN = 6  # compute a share of a gradient step
    # up
    READY = 10
    SEGMENT = 11
    GAMES_TAKEN = 12
    FAILED = 13
    STOPPED = 14
    LEARNED = 15


class Word(IntEnum):
    """The int64 values that a worker updates in its page of shared memory as it works."""

    BEATS = 0  # one for every evaluation, and several per second while it waits
    STATE = 1  # an Activity
    STEPS = 2
    GAMES = 3
    WEIGHTS_VERSION = 4
    BUSY_NANOSECONDS = 5  # spent playing and learning
    GAME_NUMBER = 6  # of the game in its first slot
    ENV_NANOSECONDS = 7  # the time of playing by phase, like the next two
    INFERENCE_NANOSECONDS = 8
    SAMPLING_NANOSECONDS = 9
    TRANSPORT_NANOSECONDS = 10  # CPU time to read weights and messages, count, and deliver segments
    LEARNING_NANOSECONDS = 11  # spent on shares of gradient steps


class Activity(IntEnum):
    """What a worker says it is doing."""

    STARTING = 0
    WAITING = 1
    PLAYING = 2
    PAUSED = 3
    LEARNING = 4


PAGE_BYTES = 4096


class LearnerGoneError(Exception):
    """The learner has ended, or has given up this process."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """Permission to play a segment of `steps` moves in every game, with weights of `version` or newer."""

    slot: int
    steps: int
    sequence: int
    version: int


@dataclass(frozen=True, slots=True, eq=False)
class WorkerSegment:
    """A segment with its origin: worker, incarnation, sequence number within it, and weights version.

    results: the games that ended in it. saved: the games as they were after it.
    """

    segment: Segment
    results: list[GameResult]
    saved: SavedGames
    worker: int
    incarnation: int
    sequence: int
    version: int

    @property
    def vector(self) -> int:
        """The worker: each has one vector of games."""
        return self.worker


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception that ended a worker; `error` is its type and the first line of its message."""

    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """One channel: open tickets, total slots, bytes waiting to be sent."""

    worker: int
    incarnation: int
    tickets: int
    slots: int
    unsent_bytes: int


class WorkerEnd:
    """A worker's end of its channel, passed to its process as an argument.

    step_memory: where it finds gradient steps, None if workers only play.
    """

    def __init__(
        self,
        worker: int,
        incarnation: int,
        sock: socket.socket,
        memory: SharedMemory,
        slot_bytes: int,
        step_memory: StepMemory | None,
    ) -> None:
        self.worker, self.incarnation = worker, incarnation
        self.step_memory = step_memory
        self._wire = Wire(sock, Kind)
        self._memory, self._slot_bytes = memory, slot_bytes
        self._words = _words(memory)

    def __getstate__(self) -> tuple[Any, ...]:
        return (
            self.worker,
            self.incarnation,
            self._wire.socket,
            self._memory,
            self._slot_bytes,
            self.step_memory,
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        WorkerEnd.__init__(self, *state)

    def close(self) -> None:
        """Close the learner's copy, once the process has its own copy."""
        self._wire.socket.close()
        self._memory.close()

    def write(self, word: Word, value: int) -> None:
        """Publish a number to the learner."""
        self._words[word] = value

    def read(self, word: Word) -> int:
        """Return a published number."""
        return int(self._words[word])

    def add(self, word: Word, value: int) -> None:
        """Add to a published number."""
        self._words[word] += value

    def receive(self, timeout: float) -> list[tuple[Kind, bytes]]:
        """Return the messages received, waiting up to `timeout` seconds for the first."""
        if not select.select([self._wire.socket], [], [], timeout)[0]:
            return []
        try:
            return self._wire.receive()
        except EOFError as error:
            raise LearnerGoneError from error

    def memory_of(self, ticket: Ticket) -> memoryview | None:
        """Return the memory for a ticket's segment; None if it goes through the socket."""
        if not self._slot_bytes:
            return None
        begin = PAGE_BYTES + ticket.slot * self._slot_bytes
        return self._memory.view[begin : begin + self._slot_bytes]

    def deliver(
        self,
        ticket: Ticket,
        version: int,
        memory: memoryview,
        streams: int,
        results: Sequence[GameResult],
        saved: SavedGames,
    ) -> None:
        """Report that a segment is complete in `memory`: its slot, or without slots a buffer to send."""
        parts = (pack_results(results), json.dumps(saved.state).encode(), saved.games)
        fields = (
            self.worker,
            self.incarnation,
            ticket.sequence,
            version,
            ticket.slot,
            ticket.steps,
            streams,
            *(len(part) for part in parts),
        )
        header = _HEADER.pack(*fields, _checksum(fields, *parts, memory))
        self._send(Kind.SEGMENT, header, *parts, *(() if self._slot_bytes else (memory,)))

    def report_learned(self, sequence: int) -> None:
        """Report that the gradients of a share are in the step memory."""
        self._send(Kind.LEARNED, _LEARNED.pack(sequence))

    def report(self, kind: Kind, failure: Failure | None = None) -> None:
        """Send a message without a segment."""
        self._send(kind, b"" if failure is None else json.dumps([failure.error, failure.traceback]).encode())

    def _send(self, kind: Kind, *parts: bytes | memoryview) -> None:
        try:
            self._wire.send(kind, *parts)
        except ConnectionError as error:
            raise LearnerGoneError from error


class _Channel:
    """The learner's end of the channel to one incarnation of a worker."""

    def __init__(
        self,
        worker: int,
        incarnation: int,
        slots: int,
        slot_bytes: int,
        step_memory: StepMemory | None,
        candidates: int,
        *,
        shared: bool,
    ) -> None:
        self.worker, self.incarnation = worker, incarnation
        self._slot_bytes, self._candidates = slot_bytes, candidates
        self._shared = shared
        self._free = list(range(slots))
        self._slots = slots
        self._tickets: deque[Ticket] = deque()
        self._sequence = 0
        self._version = -1
        memory = SharedMemory(PAGE_BYTES + (slots * slot_bytes if shared else 0))
        self._view, self._words = memory.view, _words(memory)
        mine, theirs = socket.socketpair()
        self.wire = Wire(mine, Kind)
        self.worker_end = WorkerEnd(
            worker, incarnation, theirs, memory, slot_bytes if shared else 0, step_memory
        )

    def word(self, word: Word) -> int:
        return int(self._words[word])

    def grant(self, steps: int, version: int) -> bool:
        if not self._free:
            return False
        ticket = Ticket(self._free.pop(0), steps, self._sequence, version)
        self._sequence += 1
        self._tickets.append(ticket)
        self.wire.post(Kind.PLAY, _TICKET.pack(ticket.slot, ticket.steps, ticket.sequence, ticket.version))
        return True

    def void_tickets(self) -> None:
        """Forget the tickets, which their worker has dropped too."""
        self._tickets.clear()
        self._free = list(range(self._slots))

    def steps_asked_for(self, streams: int) -> int:
        return sum(ticket.steps * streams for ticket in self._tickets)

    def take(self, body: bytes) -> WorkerSegment:
        """Check a SEGMENT message against its ticket and checksum; return a copy of the segment."""
        if len(body) < _HEADER.size:
            raise DamagedError(f"a header of {len(body)} bytes, expected {_HEADER.size}")
        *fields, checksum = _HEADER.unpack_from(body)
        worker, incarnation, sequence, version, slot, steps, streams, *lengths = fields
        if not self._tickets:
            raise DamagedError(f"segment {sequence}, but none was requested")
        ticket = self._tickets[0]
        given = (worker, incarnation, sequence, slot, steps)
        expected = (self.worker, self.incarnation, ticket.sequence, ticket.slot, ticket.steps)
        if given != expected:
            raise DamagedError(
                f"(worker, incarnation, sequence, slot, steps) is {given}, expected {expected}"
            )
        if version < max(ticket.version, self._version):
            raise DamagedError(
                f"weights version {version}, expected at least {max(ticket.version, self._version)}"
            )
        shape = SegmentShape(steps, streams, candidates=self._candidates)
        size = shape.nbytes
        lengths.append(0 if self._shared else size)
        if _HEADER.size + sum(lengths) != len(body) or size > self._slot_bytes:
            raise DamagedError(f"{len(body)} bytes do not match {streams} streams of {steps} moves")
        parts = []
        begin = _HEADER.size
        for length in lengths:
            parts.append(body[begin : begin + length])
            begin += length
        start = PAGE_BYTES + slot * self._slot_bytes
        data = bytearray(self._view[start : start + size] if self._shared else parts[3])
        if _checksum(fields, *parts[:3], data) != checksum:
            raise DamagedError(f"segment {sequence} does not match its worker's checksum")
        self._tickets.popleft()
        self._free.append(slot)
        self._version = version
        return WorkerSegment(
            Segment.over(data, shape),
            unpack_results(parts[0]),
            SavedGames(parts[2], json.loads(parts[1])),
            worker,
            incarnation,
            sequence,
            version,
        )

    def status(self) -> ChannelStatus:
        return ChannelStatus(self.worker, self.incarnation, len(self._tickets), self._slots, self.wire.unsent)

    def close(self) -> None:
        self.worker_end.close()
        self.wire.socket.close()


class WorkerCommunicator:
    """The learner's ends of all channels. After `close`, `open` starts one for the next incarnation.

    slots: how many segments a worker may have in flight. slot_bytes: the size of the largest segment.
    step_memory: where workers find gradient steps, if they learn too. candidates: as in SegmentShape.
    """

    def __init__(
        self,
        *,
        slots: int,
        slot_bytes: int,
        shared: bool,
        step_memory: StepMemory | None = None,
        candidates: int = 0,
    ) -> None:
        self._slots, self._shared, self._step_memory = slots, shared, step_memory
        self._candidates = candidates
        self._slot_bytes = -(-slot_bytes // 64) * 64
        self._channels: dict[int, _Channel] = {}

    def open(self, worker: int, incarnation: int) -> WorkerEnd:
        """Open a channel and return the end to start the worker's process with.

        Raises OSError if there is not enough memory.
        """
        assert worker not in self._channels, f"the channel of worker {worker} is open"
        channel = _Channel(
            worker,
            incarnation,
            self._slots,
            self._slot_bytes,
            self._step_memory,
            self._candidates,
            shared=self._shared,
        )
        self._channels[worker] = channel
        return channel.worker_end

    def close(self, worker: int) -> None:
        """Close a worker's channel; anything in flight is lost."""
        self._channels.pop(worker).close()

    def grant(self, worker: int, steps: int, version: int) -> bool:
        """Ask a worker for a segment; return False if its channel is full."""
        return self._channels[worker].grant(steps, version)

    def tickets(self, worker: int) -> int:
        """Return how many requested segments a worker has not delivered yet."""
        return self._channels[worker].status().tickets

    def steps_asked_for(self, worker: int, streams: int) -> int:
        """Return the number of moves in a worker's open tickets, given its number of games."""
        return self._channels[worker].steps_asked_for(streams)

    def send_command(self, worker: int, command: Kind) -> None:
        """Send PAUSE, RESUME or STOP."""
        self._channels[worker].wire.post(command)

    def ask_to_learn(self, worker: int, task: LearnTask) -> None:
        """Ask a worker for a share of the step that is laid out."""
        self._channels[worker].wire.post(Kind.LEARN, task.pack())

    def send_games(self, worker: int, saved: SavedGames) -> None:
        """Give a worker games to continue from; it drops its own and answers GAMES_TAKEN."""
        state = json.dumps(saved.state).encode()
        self._channels[worker].wire.post(Kind.GAMES, struct.pack("<I", len(state)) + state + saved.games)

    def receive(self, worker: int) -> list[tuple[Kind, bytes]]:
        """Return what a worker has sent, without waiting; raise EOFError if it is gone."""
        channel = self._channels[worker]
        channel.wire.flush()
        return channel.wire.receive()

    def take_segment(self, worker: int, body: bytes) -> WorkerSegment:
        """Return the segment of a SEGMENT message; raise DamagedError if it fails a check."""
        return self._channels[worker].take(body)

    def void_tickets(self, worker: int) -> None:
        """Forget the tickets of a worker that has taken new games."""
        self._channels[worker].void_tickets()

    def word(self, worker: int, word: Word) -> int:
        """Return a number that a worker publishes."""
        return self._channels[worker].word(word)

    def wait(self, sentinels: Collection[int], timeout: float) -> None:
        """Wait up to `timeout` seconds until a worker has sent something or a process sentinel is ready."""
        sockets = [channel.wire.socket for channel in self._channels.values()]
        wait([*sockets, *sentinels], max(0.0, timeout))

    def status(self) -> list[ChannelStatus]:
        """Return the status of every open channel."""
        return [channel.status() for channel in self._channels.values()]


def read_ticket(body: bytes) -> Ticket:
    """Return the ticket in a PLAY message."""
    return Ticket(*_TICKET.unpack(body))


def read_learned(body: bytes) -> int:
    """Return the sequence number in a LEARNED message."""
    if len(body) != _LEARNED.size:
        raise DamagedError(f"a sequence number of {len(body)} bytes, expected {_LEARNED.size}")
    sequence: int = _LEARNED.unpack(body)[0]
    return sequence


def read_games(body: bytes) -> SavedGames:
    """Return the games in a GAMES message."""
    (length,) = struct.unpack_from("<I", body)
    return SavedGames(body[4 + length :], json.loads(body[4 : 4 + length]))


def read_failure(body: bytes) -> Failure:
    """Return the exception in a FAILED message."""
    try:
        error, traceback = json.loads(body)
    except (ValueError, TypeError) as wrong:
        raise DamagedError(f"an unreadable failure report: {wrong}") from wrong
    return Failure(str(error), str(traceback))


def _words(memory: SharedMemory) -> npt.NDArray[np.int64]:
    return np.ndarray(len(Word), np.int64, memory.view)


def _checksum(fields: Sequence[int], *parts: bytes | bytearray | memoryview) -> int:
    value = zlib.crc32(",".join(map(str, fields)).encode())
    for part in parts:
        value = zlib.crc32(part, value)
    return value


def pack_results(results: Sequence[GameResult]) -> bytes:
    """Return results as bytes, RESULT_BYTES each."""
    rows = []
    for result in results:
        winner = -1 if result.outcome.winner is None else int(result.outcome.winner)
        reason = _REASONS.index(result.outcome.reason)
        rows.append((result.number, result.length, winner, reason, result.late_start))
    return np.array(rows, _RESULT).tobytes()


def unpack_results(data: bytes) -> list[GameResult]:
    """Return the results in these bytes."""
    rows = np.frombuffer(data, _RESULT).tolist()
    return [
        GameResult(number, Outcome(None if winner < 0 else Color(winner), _REASONS[reason]), length, late)
        for number, length, winner, reason, late in rows
    ]
