"""SegmentOrders: which segments each worker owes, which are in flight, which have arrived, and their fate.

A worker owes a segment until it delivers it, and gets a ticket for it as soon as there is room. A delivered
segment waits until a collection takes it. Every step is entered in the ledger.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from keisei.core.self_play import SavedGames
from keisei.training.parallel.communication import DamagedError, Word, WorkerCommunicator, WorkerSegment
from keisei.training.parallel.ledger import Account, Ledger


@dataclass(slots=True)
class _Orders:
    """One worker's orders.

    saved: its games after the last segment handed to the learner. played: after the last one delivered.
    owed: segments still to deliver, with or without a ticket. games_sent: GAMES messages that its process has
    not acknowledged yet.
    """

    saved: SavedGames
    played: SavedGames
    owed: int = 0
    games_sent: int = 0


class SegmentOrders:
    """The orders of all workers, and the segments delivered.

    streams: games per worker. limit: segments per worker that may be in flight or waiting.
    """

    def __init__(
        self, games: Sequence[SavedGames], communicator: WorkerCommunicator, *, streams: int, limit: int
    ) -> None:
        self._communicator = communicator
        self._streams, self._limit = streams, limit
        self._orders = [_Orders(saved, saved) for saved in games]
        self._steps = 0  # moves per game in the segments requested
        self._waiting: deque[WorkerSegment] = deque()
        self._taken: list[WorkerSegment] = []  # by the current collection
        self._ledger = Ledger()

    # Ordering

    def order(self, segments: int, steps: int, workers: Sequence[int]) -> None:
        """Order until `segments` are waiting or owed, spread evenly over workers; steps: moves per game."""
        share = Counter(one.worker for one in (*self._taken, *self._waiting))
        for _ in range(segments - len(self._waiting) - sum(self._orders[worker].owed for worker in workers)):
            if workers:
                least = min(workers, key=lambda worker: (share[worker] + self._orders[worker].owed, worker))
                self._orders[least].owed += 1
        self._steps = steps

    def grant(self, workers: Sequence[int], version: int) -> None:
        """Give these workers tickets for what they owe, as far as there is room."""
        waiting = Counter(one.worker for one in self._waiting)
        for worker in workers:
            orders, tickets = self._orders[worker], self._communicator.tickets(worker)
            if not orders.games_sent:
                for _ in range(min(orders.owed - tickets, self._limit - waiting[worker] - tickets)):
                    self._communicator.grant(worker, self._steps, version)

    def cancel(self, worker: int) -> None:
        """Expect nothing more from a worker that is given up."""
        self._orders[worker].owed = 0

    # Games

    @property
    def games(self) -> list[SavedGames]:
        """The games of each worker after its last delivered segment."""
        return [orders.played for orders in self._orders]

    def saved_games(self) -> list[SavedGames]:
        """Return the games of each worker after its last segment handed to the learner."""
        return [orders.saved for orders in self._orders]

    def reset(self, games: Sequence[SavedGames]) -> None:
        """Switch to other games: nothing is owed, and delivered segments are discarded."""
        self._orders = [
            _Orders(begun, begun, games_sent=orders.games_sent)
            for orders, begun in zip(self._orders, games, strict=True)
        ]
        self.discard("reset")

    def send_games(self, worker: int) -> None:
        """Send a process its worker's games to continue from; its unfinished segment is void."""
        self._orders[worker].games_sent += 1
        self._communicator.send_games(worker, self._orders[worker].played)

    def games_taken(self, worker: int) -> None:
        """Record that a process plays the games it was sent and has dropped its tickets."""
        orders = self._orders[worker]
        if not orders.games_sent:
            raise DamagedError("GAMES_TAKEN, but no games were sent")
        orders.games_sent -= 1
        self._communicator.void_tickets(worker)
        self._note_generated(worker)
        self._ledger.abandon(worker, "reset")

    # Segments

    @property
    def waiting(self) -> int:
        """How many segments are delivered but not taken."""
        return len(self._waiting)

    def receive(self, worker: int, body: bytes) -> bool:
        """Receive a SEGMENT message; return whether it counts. Raises DamagedError if it fails a check.

        A segment played before the worker received other games does not count.
        """
        orders, one = self._orders[worker], self._communicator.take_segment(worker, body)
        steps = len(one.segment)
        self._note_generated(worker)
        self._ledger.delivered(worker, steps)
        if orders.games_sent:
            self._ledger.discard_queued(steps, "reset")
            return False
        self._waiting.append(one)
        orders.played = one.saved
        orders.owed = max(0, orders.owed - 1)
        return True

    def add_own(self, one: WorkerSegment) -> None:
        """Take a segment of a worker's games that this process has played itself."""
        self._orders[one.worker].played = one.saved
        self._ledger.played_here(len(one.segment))
        self._taken.append(one)

    @contextmanager
    def collection(self) -> Iterator[list[WorkerSegment]]:
        """Yield the list of taken segments; they go to the learner at the end, back to waiting on failure."""
        self._taken = []
        try:
            yield self._taken
            for one in self._taken:
                self._orders[one.worker].saved = one.saved
                self._ledger.trained(len(one.segment))
        except BaseException:
            self._waiting.extendleft(reversed(self._taken))
            raise
        finally:
            self._taken = []

    def take(self, target_steps: int, oldest_version: int) -> int:
        """Take waiting segments up to target_steps, dropping stale ones; return how many are missing."""
        while self._waiting and _moves(self._taken) < target_steps:
            one = self._waiting.popleft()
            if one.version < oldest_version:
                self._ledger.discard_queued(len(one.segment), "stale")
            else:
                self._taken.append(one)
        return max(0, target_steps - _moves(self._taken))

    def discard(self, reason: str) -> None:
        """Discard all segments delivered but not handed to the learner."""
        for one in (*self._taken, *self._waiting):
            self._ledger.discard_queued(len(one.segment), reason)
        self._taken.clear()
        self._waiting.clear()

    # Processes and accounting

    def process_started(self, worker: int) -> None:
        """Start counting for a new process, which has no tickets and no games."""
        self._orders[worker].games_sent = 0
        self._ledger.begin(worker)

    def process_ended(self, worker: int, reason: str) -> None:
        """Count what a process did, while its channel is still open; its unfinished segment is lost."""
        self._note_generated(worker)
        self._ledger.end(worker, reason)

    def give_back(self, steps: int) -> None:
        """Record that the learner does not train on this many of the moves it was given."""
        self._ledger.give_back(steps)

    def account(self) -> Account:
        """Return where every move has gone; raise ConservationError if one is missing or counted twice."""
        asked_for = {}
        for channel in self._communicator.status():
            # Read its own count first: moves made after that need not be accounted for yet.
            self._note_generated(channel.worker)
            asked_for[channel.worker] = self._communicator.steps_asked_for(channel.worker, self._streams)
        queued = _moves(self._waiting) + _moves(self._taken)
        return self._ledger.check(queued=queued, asked_for=asked_for)

    def _note_generated(self, worker: int) -> None:
        self._ledger.shown(worker, self._communicator.word(worker, Word.STEPS))


def _moves(segments: Sequence[WorkerSegment]) -> int:
    return sum(len(one.segment) for one in segments)
