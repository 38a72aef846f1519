"""Places and SegmentOrders: who is asked next, how far ahead, what becomes of a segment; no processes."""

from collections.abc import Iterator

import pytest

from keisei.core.segment import Segment, SegmentShape
from keisei.core.self_play import SavedGames
from keisei.training.parallel.communication import (
    Kind,
    Ticket,
    Word,
    WorkerCommunicator,
    WorkerEnd,
    WorkerSegment,
    read_ticket,
)
from keisei.training.parallel.ledger import Account
from keisei.training.parallel.places import Places
from keisei.training.parallel.segment_orders import SegmentOrders
from keisei.training.parallel.wire import DamagedError

STEPS, STREAMS, LIMIT = 4, 2, 3
MOVES = STEPS * STREAMS
SHAPE = SegmentShape(STEPS, STREAMS)
WORKERS = (0, 1, 2)


def games(name: str, worker: int) -> SavedGames:
    return SavedGames(f"{name} of worker {worker}".encode(), {})


class Bench:
    """Three workers whose ends of the channels are in this process and do as they are told."""

    def __init__(self) -> None:
        self.communicator = WorkerCommunicator(slots=LIMIT, slot_bytes=SHAPE.nbytes, shared=True)
        begun = [games("begin", worker) for worker in WORKERS]
        self.places = Places(begun)
        self.orders = SegmentOrders(self.places, self.communicator, streams=STREAMS, limit=LIMIT)
        self.ends: dict[int, WorkerEnd] = {}
        self.tickets: dict[int, list[Ticket]] = {}
        for worker in WORKERS:
            self.start(worker)

    def start(self, worker: int, incarnation: int = 0) -> None:
        self.ends[worker] = self.communicator.open(worker, incarnation)
        self.tickets[worker] = []
        self.orders.process_started(worker)

    def end(self, worker: int, reason: str = "died") -> None:
        self.orders.process_ended(worker, reason)
        self.communicator.close(worker)

    def ask(self, segments: int, workers: tuple[int, ...] = WORKERS) -> list[int]:
        """Order and grant; return how many tickets each worker then has."""
        self.places.order(segments, STEPS, workers)
        self.orders.grant(workers, version=1)
        for worker in workers:
            messages = self.ends[worker].receive(0.0)
            self.tickets[worker] += [read_ticket(body) for kind, body in messages if kind is Kind.PLAY]
        return [len(self.tickets[worker]) for worker in workers]

    def deliver(self, worker: int, name: str = "segment", version: int = 1) -> bool:
        """Play and send the segment of a worker's oldest ticket; return whether the learner counts it."""
        end, ticket = self.ends[worker], self.tickets[worker].pop(0)
        memory = end.memory_of(ticket)
        assert memory is not None
        end.add(Word.STEPS, MOVES)
        size = SHAPE.nbytes
        end.deliver(ticket, version, memory[:size], STREAMS, [], games(name, worker))
        ((kind, body),) = self.communicator.receive(worker)
        assert kind is Kind.SEGMENT
        return self.orders.receive(worker, body)

    def account(self) -> Account:
        return self.places.account(self.orders.asked_for())

    def collect(self, moves: int, oldest_version: int = 0) -> list[int]:
        """Take this many of the available moves; return which workers played them."""
        with self.places.collection() as taken:
            assert self.places.take(moves, oldest_version) == 0
        return [one.worker for one in taken]


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    for channel in made.communicator.status():
        made.communicator.close(channel.worker)


def test_workers_are_asked_by_turns_the_first_of_those_with_least_first(bench: Bench) -> None:
    assert bench.ask(1) == [1, 0, 0]
    assert bench.ask(5) == [2, 2, 1]
    bench.deliver(2)
    assert bench.ask(5) == [2, 2, 0]  # waiting segments count
    assert bench.ask(6) == [2, 2, 1]


def test_what_a_collection_has_taken_counts_as_a_turn(bench: Bench) -> None:
    bench.ask(1)
    bench.deliver(0)
    with bench.places.collection():
        assert bench.places.take(2 * MOVES, 0) == MOVES
        assert bench.ask(1) == [0, 1, 0]


def test_no_more_is_under_way_than_there_is_room_for(bench: Bench) -> None:
    assert bench.ask(12) == [3, 3, 3]
    bench.deliver(0)
    assert bench.ask(12) == [2, 3, 3]  # it is owed, but one is waiting
    assert bench.collect(MOVES) == [0]
    assert bench.ask(12) == [3, 3, 3]


def test_one_that_is_given_up_owes_nothing_and_the_others_play_more(bench: Bench) -> None:
    bench.ask(3)
    bench.end(0)
    bench.orders.cancel(0)
    assert bench.ask(3, (1, 2)) == [2, 1]
    bench.start(0, incarnation=1)
    assert bench.ask(3) == [0, 2, 1]


def test_a_replacement_is_asked_for_what_its_predecessor_owed(bench: Bench) -> None:
    bench.ask(6)
    bench.deliver(0, "first")
    bench.end(0)
    bench.start(0, incarnation=1)
    assert bench.places.games[0] == games("first", 0)
    assert bench.ask(6) == [1, 2, 2]


def test_segments_are_the_learners_when_the_collection_ends_and_wait_again_if_it_fails(bench: Bench) -> None:
    bench.ask(3)
    for worker in (2, 0):
        bench.deliver(worker)
    before = bench.places.saved_games()

    def fail() -> None:
        with bench.places.collection() as taken:
            assert bench.places.take(3 * MOVES, 0) == MOVES
            assert [one.worker for one in taken] == [2, 0]
            assert (bench.places.waiting, bench.account().in_flight) == (0, 2 * MOVES)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (bench.places.waiting, bench.places.saved_games()) == (2, before)
    assert bench.account().trained == 0
    assert bench.collect(2 * MOVES) == [2, 0]
    assert bench.account().trained == 2 * MOVES
    assert bench.places.saved_games() == [games("segment", 0), before[1], games("segment", 2)]


def test_what_is_older_than_it_may_be_is_dropped_as_stale(bench: Bench) -> None:
    bench.ask(3)
    for worker, version in ((0, 1), (1, 2), (2, 3)):
        bench.deliver(worker, version=version)
    assert bench.collect(2 * MOVES, oldest_version=2) == [1, 2]
    assert bench.account().discarded["stale"] == MOVES


def test_a_reset_voids_what_waits_what_is_taken_and_what_is_played(bench: Bench) -> None:
    bench.ask(6)
    bench.deliver(0)
    bench.deliver(1)
    with bench.places.collection() as taken:
        bench.places.take(MOVES, 0)
        bench.places.reset([games("other", worker) for worker in WORKERS])
        assert (taken, bench.places.waiting) == ([], 0)
    for worker in WORKERS:
        bench.orders.send_games(worker)
    assert not bench.deliver(2, "old")  # played before it received the new games
    assert bench.places.games == bench.places.saved_games() == [games("other", w) for w in WORKERS]
    bench.tickets = {worker: [] for worker in WORKERS}
    assert bench.ask(3) == [0, 0, 0]
    for worker in WORKERS:
        bench.orders.games_taken(worker)
    assert bench.ask(3) == [1, 1, 1]
    assert bench.account().discarded["reset"] == 3 * MOVES


def test_games_taken_that_were_not_sent_are_damage(bench: Bench) -> None:
    bench.orders.send_games(1)
    bench.orders.games_taken(1)
    with pytest.raises(DamagedError, match=r"^GAMES_TAKEN, but no games were sent$"):
        bench.orders.games_taken(1)


def test_what_the_learner_plays_itself_is_taken_and_is_where_a_worker_goes_on(bench: Bench) -> None:
    memory = bytearray(SHAPE.nbytes)
    own = WorkerSegment(Segment.over(memory, SHAPE), [], games("own", 1), 1, -1, 0, version=1)
    with bench.places.collection() as taken:
        bench.places.add_own(own)
        assert bench.places.take(MOVES, 0) == 0
    assert taken == [own]
    assert bench.places.games[1] == bench.places.saved_games()[1] == games("own", 1)
    account = bench.account()
    assert (account.generated, account.trained) == (MOVES, MOVES)
