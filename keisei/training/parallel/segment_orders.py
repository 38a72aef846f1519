"""SegmentOrders: what the workers of this machine are asked for, each for the place of its own number.

A place owes a segment until it is delivered, and its worker gets a ticket for it as soon as there is room.
"""

from collections.abc import Sequence

from keisei.training.parallel.communication import Word, WorkerCommunicator
from keisei.training.parallel.places import Places
from keisei.training.parallel.wire import DamagedError


class SegmentOrders:
    """Tickets and games for all workers, and the segments that come back.

    streams: games per worker. limit: segments per worker that may be in flight or waiting.
    """

    def __init__(self, places: Places, communicator: WorkerCommunicator, *, streams: int, limit: int) -> None:
        self._places, self._communicator = places, communicator
        self._streams, self._limit = streams, limit
        self._games_sent = [0] * len(places)  # GAMES messages that a process has not acknowledged yet

    @property
    def waiting(self) -> int:
        """How many segments are delivered but not taken."""
        return self._places.waiting

    def grant(self, workers: Sequence[int], version: int) -> None:
        """Give these workers tickets for what they owe, as far as there is room."""
        waiting = self._places.queued()
        for worker in workers:
            owed, tickets = self._places.owed(worker), self._communicator.tickets(worker)
            if not self._games_sent[worker]:
                for _ in range(min(owed - tickets, self._limit - waiting[worker] - tickets)):
                    self._communicator.grant(worker, self._places.steps, version)

    def cancel(self, worker: int) -> None:
        """Expect nothing more from a worker that is given up."""
        self._places.cancel(worker)

    def send_games(self, worker: int) -> None:
        """Send a process its place's games to continue from; its unfinished segment is void."""
        self._games_sent[worker] += 1
        self._communicator.send_games(worker, self._places.games_of(worker))

    def games_taken(self, worker: int) -> None:
        """Record that a process plays the games it was sent and has dropped its tickets."""
        if not self._games_sent[worker]:
            raise DamagedError("GAMES_TAKEN, but no games were sent")
        self._games_sent[worker] -= 1
        self._communicator.void_tickets(worker)
        self._note_generated(worker)
        self._places.ledger.abandon(worker, "reset")

    def receive(self, worker: int, body: bytes) -> bool:
        """Receive a SEGMENT message; return whether it counts. Raises DamagedError if it fails a check.

        A segment played before the worker received other games does not count.
        """
        one = self._communicator.take_segment(worker, body)
        self._note_generated(worker)
        if self._games_sent[worker]:
            self._places.refuse(worker, len(one.segment), "reset")
            return False
        self._places.deliver(worker, one)
        return True

    def process_started(self, worker: int) -> None:
        """Start counting for a new process, which has no tickets and no games."""
        self._games_sent[worker] = 0
        self._places.ledger.begin(worker)

    def process_ended(self, worker: int, reason: str) -> None:
        """Count what a process did, while its channel is still open; its unfinished segment is lost."""
        self._note_generated(worker)
        self._places.ledger.end(worker, reason)

    def asked_for(self) -> dict[int, int]:
        """Note what every process has played; return the moves that each has been asked for."""
        asked_for = {}
        for channel in self._communicator.status():
            # Read its own count first: moves made after that need not be accounted for yet.
            self._note_generated(channel.worker)
            asked_for[channel.worker] = self._communicator.steps_asked_for(channel.worker, self._streams)
        return asked_for

    def _note_generated(self, worker: int) -> None:
        self._places.ledger.shown(worker, self._communicator.word(worker, Word.STEPS))
