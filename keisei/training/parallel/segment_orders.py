"""SegmentOrders: what each worker was asked for, what is under way, what has come, and what became of it.

A worker owes a segment until it delivers it, and gets a ticket for it as soon as there is room. What it has
delivered waits until a collection takes it. Every step on this way is entered in the ledger.
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
    """One worker's.

    saved, played: its games after the last segment that was given to the learner, and that was delivered.
    owed: segments that it still has to deliver, with a ticket or without. games_sent: to its process, which
    has not yet taken them.
    """

    saved: SavedGames
    played: SavedGames
    owed: int = 0
    games_sent: int = 0


class SegmentOrders:
    """The orders of all workers, and the segments that have come.

    streams: games of each worker. limit: segments of one worker that may be under way or wait.
    """

    def __init__(
        self, games: Sequence[SavedGames], communicator: WorkerCommunicator, *, streams: int, limit: int
    ) -> None:
        self._communicator = communicator
        self._streams, self._limit = streams, limit
        self._orders = [_Orders(saved, saved) for saved in games]
        self._steps = 0  # moves of each game in the segments that are asked for
        self._waiting: deque[WorkerSegment] = deque()
        self._taken: list[WorkerSegment] = []  # by a collection that is under way
        self._ledger = Ledger()

    # Asking

    def order(self, segments: int, steps: int, workers: Sequence[int]) -> None:
        """See to it that so many segments, of so many moves, wait or are owed, by turns of these workers."""
        share = Counter(one.worker for one in (*self._taken, *self._waiting))
        for _ in range(segments - len(self._waiting) - sum(self._orders[worker].owed for worker in workers)):
            if workers:
                least = min(workers, key=lambda worker: (share[worker] + self._orders[worker].owed, worker))
                self._orders[least].owed += 1
        self._steps = steps

    def grant(self, workers: Sequence[int], version: int) -> None:
        """Give these workers tickets for what they owe, as far as there is room for it."""
        waiting = Counter(one.worker for one in self._waiting)
        for worker in workers:
            orders, tickets = self._orders[worker], self._communicator.tickets(worker)
            if not orders.games_sent:
                for _ in range(min(orders.owed - tickets, self._limit - waiting[worker] - tickets)):
                    self._communicator.grant(worker, self._steps, version)

    def cancel(self, worker: int) -> None:
        """Expect nothing more of a worker, which is given up."""
        self._orders[worker].owed = 0

    def has_tickets(self, worker: int) -> bool:
        """Tell whether a worker has been asked for segments that it has not delivered."""
        return self._communicator.tickets(worker) > 0

    # Games

    @property
    def games(self) -> list[SavedGames]:
        """The games of each worker after its last segment that was delivered."""
        return [orders.played for orders in self._orders]

    def saved_games(self) -> list[SavedGames]:
        """Return the games of each worker after its last segment that was given to the learner."""
        return [orders.saved for orders in self._orders]

    def reset(self, games: Sequence[SavedGames]) -> None:
        """Go on with other games: nothing is owed, and what has come is discarded."""
        self._orders = [
            _Orders(begun, begun, games_sent=orders.games_sent)
            for orders, begun in zip(self._orders, games, strict=True)
        ]
        self.discard("reset")

    def send_games(self, worker: int) -> None:
        """Let a worker's process go on with the worker's games; what it is playing is void."""
        self._orders[worker].games_sent += 1
        self._communicator.send_games(worker, self._orders[worker].played)

    def games_taken(self, worker: int) -> None:
        """Note that a process plays the games that it was sent, and has dropped its tickets."""
        orders = self._orders[worker]
        if not orders.games_sent:
            raise DamagedError("GAMES_TAKEN, though it was sent none")
        orders.games_sent -= 1
        self._communicator.void_tickets(worker)
        self._note_generated(worker)
        self._ledger.abandon(worker, "reset")

    # Segments

    @property
    def waiting(self) -> int:
        """How many segments have come and are not taken."""
        return len(self._waiting)

    def receive(self, worker: int, body: bytes) -> bool:
        """Take in the segment that a message is about; tell whether it counts. DamagedError if it is broken.

        One that was played before the worker heard of other games does not count.
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
        """Add a segment of a worker's games that this process has played to those taken."""
        self._orders[one.worker].played = one.saved
        self._ledger.played_here(len(one.segment))
        self._taken.append(one)

    @contextmanager
    def collection(self) -> Iterator[list[WorkerSegment]]:
        """Give the list of what is taken: the learner's when this ends, waiting again if it fails."""
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
        """Take what waits, up to so many moves, and return how many are missing; drop what is too old."""
        while self._waiting and _moves(self._taken) < target_steps:
            one = self._waiting.popleft()
            if one.version < oldest_version:
                self._ledger.discard_queued(len(one.segment), "stale")
            else:
                self._taken.append(one)
        return max(0, target_steps - _moves(self._taken))

    def discard(self, reason: str) -> None:
        """Drop all that has come and was not given to the learner."""
        for one in (*self._taken, *self._waiting):
            self._ledger.discard_queued(len(one.segment), reason)
        self._taken.clear()
        self._waiting.clear()

    # Processes, and the account

    def process_started(self, worker: int) -> None:
        """Begin to count for a new process, which has no tickets and no games."""
        self._orders[worker].games_sent = 0
        self._ledger.begin(worker)

    def process_ended(self, worker: int, reason: str) -> None:
        """Count what a process has done, while its channel is still open; what it was playing is lost."""
        self._note_generated(worker)
        self._ledger.end(worker, reason)

    def give_back(self, steps: int) -> None:
        """Note that the learner does not train on so many of the moves that it was given."""
        self._ledger.give_back(steps)

    def account(self) -> Account:
        """Return where every move has gone; ConservationError if one is missing or counted twice."""
        asked_for = {}
        for channel in self._communicator.status():
            # Its own count first: what it makes after that is not expected to be anywhere.
            self._note_generated(channel.worker)
            asked_for[channel.worker] = self._communicator.steps_asked_for(channel.worker, self._streams)
        queued = _moves(self._waiting) + _moves(self._taken)
        return self._ledger.check(queued=queued, asked_for=asked_for)

    def _note_generated(self, worker: int) -> None:
        self._ledger.shown(worker, self._communicator.word(worker, Word.STEPS))


def _moves(segments: Sequence[WorkerSegment]) -> int:
    return sum(len(one.segment) for one in segments)
