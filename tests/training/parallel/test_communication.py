"""The channels: what arrives is what was sent, once and complete; an unresponsive worker blocks nobody."""

import errno
import os
import random
import resource
import socket
import struct
import time
from collections.abc import Iterator

import numpy as np
import pytest
from faulty_workers import Fault
from learning import one_thread as one_thread
from parallel_play import (
    GAMES,
    MOVES,
    PATIENCE,
    SEGMENT,
    Workers,
    discarded,
    small_config,
    undisturbed,
    wait_until,
    worker_processes,
)

from keisei.core.segment import Segment, SegmentShape
from keisei.core.self_play import GameResult, SavedGames
from keisei.shogi import Color, Outcome, Reason
from keisei.training.parallel.communication import (
    PAGE_BYTES,
    ChannelStatus,
    Failure,
    Kind,
    LearnerGoneError,
    Ticket,
    Word,
    WorkerCommunicator,
    read_failure,
    read_games,
    read_ticket,
)
from keisei.training.parallel.shared_memory import SharedMemory
from keisei.training.parallel.wire import DamagedError

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(900)]

STEPS, STREAMS, SLOTS = 6, 3, 2
SHAPE = SegmentShape(STEPS, STREAMS)
SIZE = SHAPE.nbytes
RESULTS = [
    GameResult(2**40 + 1, Outcome(None, Reason.MAXIMUM_LENGTH), 256, False),
    GameResult(7, Outcome(Color.BLACK, Reason.CHECKMATE), 1, True),
    GameResult(8, Outcome(Color.WHITE, Reason.PERPETUAL_CHECK), 99_999, False),
]
SAVED = SavedGames(bytes(range(256)) * 9, {"late_starts": ["8k/9/9/9/9/9/9/9/K8 b - 1", "王"]})


class Line:
    """A channel with both of its ends in this process."""

    def __init__(self, shared: bool) -> None:
        self.shared = shared
        self.learner = WorkerCommunicator(slots=SLOTS, slot_bytes=SIZE, shared=shared)
        self.end = self.learner.open(4, 2)
        self.rng = np.random.default_rng(1)

    def ask(self, version: int = 5) -> Ticket:
        """Give the worker a ticket and have it receive it."""
        assert self.learner.grant(4, STEPS, version)
        (message,) = self.end.receive(1.0)
        assert message[0] is Kind.PLAY
        return read_ticket(message[1])

    def fill(self, ticket: Ticket) -> memoryview:
        """Write something into a ticket's memory, as a playing worker does."""
        memory = self.end.memory_of(ticket)
        if memory is None:
            memory = memoryview(bytearray(SIZE))
        memory = memory[:SIZE]
        memory[:] = self.rng.bytes(SIZE)
        return memory

    def deliver(self, ticket: Ticket, version: int = 5, streams: int = STREAMS) -> bytes:
        """Play and deliver a segment; return its bytes."""
        memory = self.fill(ticket)
        self.end.deliver(ticket, version, memory, streams, RESULTS, SAVED)
        return bytes(memory)

    def body(self) -> bytes:
        """The body of the only message received."""
        ((kind, body),) = self.learner.receive(4)
        assert kind is Kind.SEGMENT
        return body

    def sent(self) -> bytes:
        """What the worker has written, taken from the socket before the learner reads it."""
        data: bytes = self.learner._channels[4].wire.socket.recv(2**20)
        return data


@pytest.fixture(params=[True, False], ids=["shared memory", "pipe"])
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    made = Line(request.param)
    yield made
    made.end.close()
    made.learner.close(4)


# ------------------------------------------------------------------------ what arrives


def test_a_segment_arrives_as_it_was_sent(line: Line) -> None:
    for number in range(5):
        ticket = line.ask(version=number)
        assert (ticket.steps, ticket.sequence, ticket.version) == (STEPS, number, number)
        data = line.deliver(ticket, version=number + 1)
        one = line.learner.take_segment(4, line.body())
        expected = Segment.over(bytearray(data), SHAPE)
        for name in Segment.__slots__:
            assert getattr(one.segment, name).tobytes() == getattr(expected, name).tobytes(), name
        assert one.results == RESULTS
        assert one.saved == SAVED
        assert (one.worker, one.incarnation, one.sequence, one.version) == (4, 2, number, number + 1)


def test_what_has_arrived_stays_when_its_slot_is_used_again(line: Line) -> None:
    first = line.ask()
    data = line.deliver(first)
    one = line.learner.take_segment(4, line.body())
    while True:
        ticket = line.ask()
        line.deliver(ticket)
        line.learner.take_segment(4, line.body())
        if ticket.slot == first.slot:
            break
    expected = Segment.over(bytearray(data), SHAPE)
    assert one.segment.packed.tobytes() == expected.packed.tobytes()


def test_there_are_as_many_tickets_as_slots(line: Line) -> None:
    first, second = line.ask(), line.ask()
    assert first.slot != second.slot
    assert line.learner.status() == [ChannelStatus(4, 2, 2, SLOTS, 0)]
    assert line.learner.steps_asked_for(4, STREAMS) == 2 * STEPS * STREAMS
    assert not line.learner.grant(4, STEPS, 5)
    line.deliver(first)
    line.learner.take_segment(4, line.body())
    assert line.learner.status() == [ChannelStatus(4, 2, 1, SLOTS, 0)]
    assert line.ask().slot == first.slot
    line.learner.void_tickets(4)
    assert line.learner.steps_asked_for(4, STREAMS) == 0
    assert {line.ask().slot, line.ask().slot} == {0, 1}


def test_commands_games_and_failures_arrive(line: Line) -> None:
    for command in (Kind.PAUSE, Kind.RESUME, Kind.STOP):
        line.learner.send_command(4, command)
    line.learner.send_games(4, SAVED)
    *commands, (kind, body) = line.end.receive(1.0)
    assert commands == [(Kind.PAUSE, b""), (Kind.RESUME, b""), (Kind.STOP, b"")]
    assert (kind, read_games(body)) == (Kind.GAMES, SAVED)
    line.end.report(Kind.READY)
    line.end.report(Kind.FAILED, Failure("ValueError: 王", "in line 7"))
    (ready, (kind, body)) = line.learner.receive(4)
    assert ready == (Kind.READY, b"")
    assert (kind, read_failure(body)) == (Kind.FAILED, Failure("ValueError: 王", "in line 7"))
    assert line.learner.receive(4) == []


def test_the_worker_shows_numbers(line: Line) -> None:
    for word in Word:
        assert line.learner.word(4, word) == 0
        line.end.write(word, 10 + word)
        line.end.add(word, 2**40)
    assert [line.learner.word(4, word) for word in Word] == [10 + word + 2**40 for word in Word]


def test_messages_arrive_whole_however_they_are_cut(line: Line) -> None:
    ticket = line.ask()
    data = line.deliver(ticket)
    line.end.report(Kind.STOPPED)
    stream, choose, messages = line.sent(), random.Random(3), []
    while stream:
        cut = choose.randint(1, 40)
        line.end._wire.socket.sendall(stream[:cut])
        stream = stream[cut:]
        messages += line.learner.receive(4)
    assert [kind for kind, _ in messages] == [Kind.SEGMENT, Kind.STOPPED]
    one = line.learner.take_segment(4, messages[0][1])
    assert one.segment.actions.tobytes() == data[: STEPS * STREAMS * 4]


def test_a_worker_that_is_gone_is_an_end_of_file_after_its_last_words(line: Line) -> None:
    line.end.report(Kind.READY)
    line.end._wire.socket.sendall(b"half")
    line.end.close()
    assert line.learner.receive(4) == [(Kind.READY, b"")]
    with pytest.raises(EOFError):
        line.learner.receive(4)
    line.learner.send_command(4, Kind.STOP)
    with pytest.raises(EOFError):
        line.learner.receive(4)


def test_a_learner_that_is_gone_is_told_from_other_errors() -> None:
    line = Line(shared=True)
    line.learner.send_command(4, Kind.PAUSE)
    line.learner._channels[4].wire.socket.close()
    assert line.end.receive(1.0) == [(Kind.PAUSE, b"")]
    with pytest.raises(LearnerGoneError):
        line.end.receive(1.0)
    with pytest.raises(LearnerGoneError):
        line.end.report(Kind.STOPPED)
    line.end.close()


# ------------------------------------------------------------------------ damage


def test_every_bit_of_a_message_matters(line: Line) -> None:
    """Flipping any bit of a segment or its record gets it refused; the intact one is accepted."""
    ticket = line.ask()
    line.deliver(ticket)
    body = line.body()
    for index in range(len(body)):
        broken = bytearray(body)
        broken[index] ^= 1 << (index % 8)
        with pytest.raises(DamagedError):
            line.learner.take_segment(4, bytes(broken))
    if line.shared:
        memory = line.end.memory_of(ticket)
        assert memory is not None
        for index in range(SIZE):
            memory[index] ^= 1 << (index % 8)
            with pytest.raises(DamagedError, match="does not match its worker's checksum"):
                line.learner.take_segment(4, body)
            memory[index] ^= 1 << (index % 8)
    for length in (*range(60), len(body) - 1, len(body) + 1):
        with pytest.raises(DamagedError):
            line.learner.take_segment(4, (body + b"\0")[:length])
    assert line.learner.take_segment(4, body).sequence == 0


def test_a_segment_is_taken_once(line: Line) -> None:
    ticket, other = line.ask(), line.ask()
    line.deliver(ticket)
    body = line.body()
    line.learner.take_segment(4, body)
    with pytest.raises(DamagedError, match=r"is \(4, 2, 0, 0, 6\), expected \(4, 2, 1, 1, 6\)"):
        line.learner.take_segment(4, body)
    line.deliver(other)
    line.learner.take_segment(4, line.body())
    for _ in range(2):
        with pytest.raises(DamagedError, match=r"^segment 0, but none was requested$"):
            line.learner.take_segment(4, body)


def test_segments_out_of_order_are_refused(line: Line) -> None:
    line.ask()
    line.deliver(line.ask())
    with pytest.raises(DamagedError, match=r"is \(4, 2, 1, 1, 6\), expected \(4, 2, 0, 0, 6\)"):
        line.learner.take_segment(4, line.body())


@pytest.mark.parametrize(("worker", "incarnation"), [(4, 1), (4, 3), (3, 2)])
def test_a_segment_of_another_process_is_refused(line: Line, worker: int, incarnation: int) -> None:
    line.end.worker, line.end.incarnation = worker, incarnation
    line.deliver(line.ask())
    with pytest.raises(DamagedError, match=rf"is \({worker}, {incarnation}, 0, 0, 6\), expected \(4, 2,"):
        line.learner.take_segment(4, line.body())


def test_weights_never_go_back(line: Line) -> None:
    line.deliver(line.ask(version=3), version=5)
    line.learner.take_segment(4, line.body())
    ticket = line.ask(version=3)
    line.deliver(ticket, version=4)
    with pytest.raises(DamagedError, match=r"^weights version 4, expected at least 5$"):
        line.learner.take_segment(4, line.body())
    line.deliver(ticket, version=5)
    line.learner.take_segment(4, line.body())
    line.deliver(line.ask(version=7), version=6)
    with pytest.raises(DamagedError, match=r"^weights version 6, expected at least 7$"):
        line.learner.take_segment(4, line.body())


@pytest.mark.parametrize("streams", [0, STREAMS - 1, STREAMS + 1, 2**32 - 1])
def test_a_segment_of_another_size_is_refused(line: Line, streams: int) -> None:
    line.deliver(line.ask(), streams=streams)
    with pytest.raises(DamagedError):
        line.learner.take_segment(4, line.body())


@pytest.mark.parametrize("frame", [struct.pack("<IB", 1, 0), struct.pack("<IB", 2**31 + 1, 11), b"\xff" * 5])
def test_a_frame_that_there_is_not_is_refused(line: Line, frame: bytes) -> None:
    line.end._wire.socket.sendall(frame)
    with pytest.raises(DamagedError, match=r"^an invalid message: "):
        line.learner.receive(4)


def test_random_bytes_are_refused_or_wait_for_more(line: Line) -> None:
    choose = random.Random(4)
    for _ in range(200):
        line.end._wire.socket.sendall(choose.randbytes(choose.randint(1, 300)))
        wire = line.learner._channels[4].wire
        try:
            for kind, body in line.learner.receive(4):
                if kind is Kind.SEGMENT:
                    line.learner.take_segment(4, body)
                    pytest.fail("taken")
        except DamagedError:
            wire._inbox.clear()


@pytest.mark.parametrize("body", [b"", b"{not JSON", b"\xff\xfe", b"[1]", b'"text"', b"7", b'{"error": 1}'])
def test_a_failure_that_cannot_be_read_is_damaged(body: bytes) -> None:
    with pytest.raises(DamagedError):
        read_failure(body)


def test_a_channel_is_opened_once(line: Line) -> None:
    with pytest.raises(AssertionError, match="the channel of worker 4 is open"):
        line.learner.open(4, 3)


# ------------------------------------------------------------------------ no end blocks


def test_a_worker_that_does_not_listen_does_not_hold_up_the_learner(line: Line) -> None:
    big = SavedGames(bytes(2**20), {})
    for _ in range(8):
        line.learner.send_games(4, big)
    line.learner.send_command(4, Kind.STOP)
    unsent = line.learner.status()[0].unsent_bytes
    assert unsent > 7 * 2**20
    heard: list[tuple[Kind, bytes]] = []
    deadline = time.monotonic() + PATIENCE
    while len(heard) < 9 and time.monotonic() < deadline:
        heard += line.end.receive(0.0)
        assert line.learner.receive(4) == []
    assert [kind for kind, _ in heard] == [Kind.GAMES] * 8 + [Kind.STOP]
    assert all(read_games(body) == big for _, body in heard[:-1])
    assert line.learner.status()[0].unsent_bytes == 0


def test_half_a_message_is_none_and_does_not_hold_up_the_learner(line: Line) -> None:
    line.end._wire.socket.sendall(struct.pack("<IB", 1000, Kind.SEGMENT) + bytes(999))
    for _ in range(3):
        assert line.learner.receive(4) == []
    line.end._wire.socket.sendall(b"\0")
    assert line.learner.receive(4) == [(Kind.SEGMENT, bytes(1000))]


def test_waiting_ends_with_the_time_or_with_a_message(line: Line) -> None:
    start = time.monotonic()
    line.learner.wait([], 0.2)
    assert time.monotonic() - start >= 0.19
    line.learner.wait([], -1.0)
    line.end.report(Kind.READY)
    line.learner.wait([], 60.0)
    assert line.learner.receive(4) == [(Kind.READY, b"")]
    mine, other = socket.socketpair()
    other.close()
    line.learner.wait([mine.fileno()], 60.0)
    mine.close()


@pytest.fixture
def small_files() -> Iterator[None]:
    """Limit files to a few megabytes: a test that asks for too much must not get it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**24, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_memory_that_cannot_be_had_is_an_error_when_it_is_asked_for() -> None:
    learner = WorkerCommunicator(slots=4, slot_bytes=2**23, shared=True)
    files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="File too large"):
        learner.open(0, 0)
    assert learner.status() == []
    assert len(os.listdir("/proc/self/fd")) == files


@pytest.mark.usefixtures("small_files")
def test_more_memory_than_the_machine_has_is_not_even_asked_for() -> None:
    """The kernel would hand out the memory until it kills some process."""
    with pytest.raises(OSError, match="bytes of shared memory, but only") as info:
        SharedMemory(2**50)
    assert info.value.errno == errno.ENOMEM


def test_slots_do_not_overlap() -> None:
    learner = WorkerCommunicator(slots=3, slot_bytes=100, shared=True)
    end = learner.open(0, 0)
    memories = [end.memory_of(Ticket(slot, 1, slot, 0)) for slot in range(3)]
    for number, memory in enumerate(memories):
        assert memory is not None
        assert len(memory) == 128
        memory[:] = bytes([number + 1]) * 128
    assert [memory[0] for memory in memories if memory] == [1, 2, 3]
    assert [learner.word(0, word) for word in Word] == [0] * len(Word)
    assert 8 * len(Word) <= PAGE_BYTES
    end.close()
    learner.close(0)


# ------------------------------------------------------------------------ workers that send damaged data

NUMBERS = "(worker, incarnation, sequence, slot, steps)"
DAMAGES = {
    "garbage": "sent damaged data (an invalid message: kind",
    "truncated frame": "sent damaged data (",
    "short header": "sent damaged data (a header of 5 bytes, expected 56)",
    "unknown order": "sent damaged data (PLAY, which only the learner sends)",
    "broken failure": "sent damaged data (an unreadable failure report",
    "ready again": "sent damaged data (READY, but it was ready already)",
    "taken again": "sent damaged data (GAMES_TAKEN, but no games were sent)",
    "replay": f"sent damaged data ({NUMBERS} is (1, 0, 0, 0, 12), expected",
    "duplicate": "sent damaged data (segment 1, but none was requested)",
    "of the next incarnation": f"sent damaged data ({NUMBERS} is (1, 1, 1,",
    "another byte": "sent damaged data (segment 1 does not match its worker's checksum)",
}


@pytest.mark.parametrize("use_shared_memory", [True, False])
@pytest.mark.parametrize("what", DAMAGES)
def test_a_worker_that_sends_something_damaged_is_replaced(what: str, use_shared_memory: bool) -> None:
    config = small_config(2, use_shared_memory=use_shared_memory)
    with Workers(config, Fault(what, MOVES + 5, worker=1)) as manager:
        epochs = [manager.epoch() for _ in range(4)]
        manager.look_until(lambda: len(manager.notices) > 0)
        assert manager.notices[0].startswith(f"worker 1 {DAMAGES[what]}")
        assert len(manager.notices) == 1
        account = manager.account()
    assert epochs == undisturbed(2, 4)
    assert account.trained == 8 * SEGMENT
    assert set(discarded(account)) <= {"damaged"}


@pytest.mark.parametrize("use_shared_memory", [True, False])
def test_a_message_cut_off_by_death_is_none(use_shared_memory: bool) -> None:
    config = small_config(2, use_shared_memory=use_shared_memory)
    with Workers(config, Fault("cut off", MOVES + 5, worker=1)) as manager:
        assert [manager.epoch() for _ in range(3)] == undisturbed(2, 3)
        assert "died (SIGKILL" in manager.notices[0]
        assert discarded(manager.account()) == {"died": SEGMENT}


def test_half_a_message_of_one_that_is_stopped_then_is_given_up_with_it() -> None:
    config = small_config(2, worker_timeout=5.0)
    with Workers(config, Fault("half a message", MOVES + 5, worker=1)) as manager:
        assert [manager.epoch() for _ in range(3)] == undisturbed(2, 3)
        assert "gave no sign of life for 5 s" in manager.notices[0]
        assert discarded(manager.account()) == {"hung": 5 * GAMES}


def test_one_that_beats_but_never_comes_to_the_end_of_its_message_is_replaced() -> None:
    config = small_config(2, worker_timeout=5.0)
    with Workers(config, Fault("endless frame", MOVES + 5, worker=1)) as manager:
        assert [manager.epoch() for _ in range(3)] == undisturbed(2, 3)
        assert "gave no sign of life for 5 s" in manager.notices[0]
        assert discarded(manager.account()) == {"hung": SEGMENT}


def test_one_that_sends_without_end_is_replaced() -> None:
    with Workers(small_config(2, worker_timeout=5.0), Fault("flood", MOVES + 5, worker=1)) as manager:
        assert [manager.epoch() for _ in range(3)] == undisturbed(2, 3)
        assert manager.workers[1].restarts == 1
    wait_until(lambda: not worker_processes())


def test_a_worker_waits_for_a_learner_that_does_not_read() -> None:
    """The segments exceed a socket's buffer, so the worker is stopped in the middle of a message."""
    config = small_config(1, max_policy_lag=3, use_shared_memory=False, worker_timeout=3.0)
    config.training.steps_per_epoch = config.training.minibatch_size = 512 * GAMES
    with Workers(config) as manager:
        manager.collect_experiences(512 * GAMES)
        time.sleep(4.0)  # longer than the timeout
        for _ in range(3):
            manager.collect_experiences(512 * GAMES)
        assert manager.notices == []
        assert discarded(manager.account()) == {}
