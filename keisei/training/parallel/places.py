"""Places: games in a fixed number of places, what each owes, which segments have arrived, and their fate.

A place is a set of games that is played segment by segment; it is in the checkpoint, and who plays it does
not matter. Hands, the processes that play, are numbered on their own. Every step is entered in the ledger.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from keisei.core.self_play import SavedGames
from keisei.training.parallel.communication import WorkerSegment
from keisei.training.parallel.ledger import Account, Ledger


@dataclass(slots=True)
class _Place:
    """One place.

    saved: its games after the last segment handed to the learner. played: after the last one delivered.
    owed: segments still to deliver. sequence: the number of the next one; it never returns.
    """

    saved: SavedGames
    played: SavedGames
    owed: int = 0
    sequence: int = 0


class Places:
    """All places, the segments delivered, and the account of every move."""

    def __init__(self, games: Sequence[SavedGames]) -> None:
        self._places = [_Place(saved, saved) for saved in games]
        self._waiting: deque[WorkerSegment] = deque()
        self._taken: list[WorkerSegment] = []  # by the current collection
        self._steps = 0
        self.ledger = Ledger()

    def __len__(self) -> int:
        """Return the number of places."""
        return len(self._places)

    # Ordering

    @property
    def steps(self) -> int:
        """Moves per game in the segments that are owed."""
        return self._steps

    def order(self, segments: int, steps: int, places: Sequence[int]) -> None:
        """Order until `segments` are waiting or owed, spread evenly over places; steps: moves per game."""
        for _ in range(segments - len(self._waiting) - sum(self._places[place].owed for place in places)):
            if places:
                self._places[self._least(places)].owed += 1
        self._steps = steps

    def next_to_play(self) -> int:
        """Return the place to play for somebody who was not asked: one that owes, else the least played."""
        owing = [number for number, place in enumerate(self._places) if place.owed]
        return owing[0] if owing else self._least(range(len(self._places)))

    def owed(self, place: int) -> int:
        """Return how many segments a place still owes."""
        return self._places[place].owed

    def queued(self) -> Counter[int]:
        """Return how many segments of each place are delivered but not taken."""
        return Counter(one.worker for one in self._waiting)

    def cancel(self, place: int) -> None:
        """Expect nothing more from a place that nobody plays."""
        self._places[place].owed = 0

    def _least(self, places: Sequence[int]) -> int:
        """Return the place that has delivered and owes least, the first of several."""
        share = Counter(one.worker for one in (*self._taken, *self._waiting))
        return min(places, key=lambda place: (share[place] + self._places[place].owed, place))

    # Games

    @property
    def games(self) -> list[SavedGames]:
        """The games of each place after its last delivered segment."""
        return [place.played for place in self._places]

    def games_of(self, place: int) -> SavedGames:
        """Return the games of a place after its last delivered segment."""
        return self._places[place].played

    def sequence(self, place: int) -> int:
        """Return the number of a place's next segment, which grows with each and with new games."""
        return self._places[place].sequence

    def saved_games(self) -> list[SavedGames]:
        """Return the games of each place after its last segment handed to the learner."""
        return [place.saved for place in self._places]

    def reset(self, games: Sequence[SavedGames]) -> None:
        """Switch to other games: nothing is owed, and delivered segments are discarded."""
        self._places = [
            _Place(begun, begun, sequence=place.sequence + 1)
            for place, begun in zip(self._places, games, strict=True)
        ]
        self.discard("reset")

    def switch(self, place: int, games: SavedGames) -> None:
        """Give a single place other games."""
        self._places[place].saved = self._places[place].played = games

    def owe(self, place: int, steps: int) -> None:
        """Order one segment of a single place."""
        self._places[place].owed += 1
        self._steps = steps

    # Segments

    @property
    def waiting(self) -> int:
        """How many segments are delivered but not taken."""
        return len(self._waiting)

    def deliver(self, hand: int, one: WorkerSegment) -> None:
        """Take in a segment of a place, one.worker, that a hand has played."""
        place = self._places[one.worker]
        self.ledger.delivered(hand, len(one.segment))
        self._waiting.append(one)
        place.played = one.saved
        place.owed = max(0, place.owed - 1)
        place.sequence += 1

    def refuse(self, hand: int, steps: int, reason: str) -> None:
        """Count a whole segment that a hand has played, and that is not used."""
        self.ledger.delivered(hand, steps)
        self.ledger.discard_queued(steps, reason)

    def add_own(self, one: WorkerSegment) -> None:
        """Take a segment of a place that this process has played itself."""
        place = self._places[one.worker]
        place.played = one.saved
        place.owed = max(0, place.owed - 1)
        place.sequence += 1
        self.ledger.played_here(len(one.segment))
        self._taken.append(one)

    @contextmanager
    def collection(self) -> Iterator[list[WorkerSegment]]:
        """Yield the list of taken segments; they go to the learner at the end, back to waiting on failure."""
        self._taken = []
        try:
            yield self._taken
            for one in self._taken:
                self._places[one.worker].saved = one.saved
                self.ledger.trained(len(one.segment))
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
                self.ledger.discard_queued(len(one.segment), "stale")
            else:
                self._taken.append(one)
        return max(0, target_steps - _moves(self._taken))

    def discard(self, reason: str) -> None:
        """Discard all segments delivered but not handed to the learner."""
        for one in (*self._taken, *self._waiting):
            self.ledger.discard_queued(len(one.segment), reason)
        self._taken.clear()
        self._waiting.clear()

    # Accounting

    def give_back(self, steps: int) -> None:
        """Record that the learner does not train on this many of the moves it was given."""
        self.ledger.give_back(steps)

    def account(self, asked_for: Mapping[int, int]) -> Account:
        """Return where every move has gone; raise ConservationError if one is missing or counted twice.

        asked_for: the moves that each hand has been asked for.
        """
        queued = _moves(self._waiting) + _moves(self._taken)
        return self.ledger.check(queued=queued, asked_for=asked_for)


def _moves(segments: Sequence[WorkerSegment]) -> int:
    return sum(len(one.segment) for one in segments)
