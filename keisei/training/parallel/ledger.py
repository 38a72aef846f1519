"""The whereabouts of every generated move: trained on, in flight, or discarded for a reason."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

# died: the process died. hung: the process was killed after giving no sign of life. failed: an exception.
# damaged: wrong header or checksum. stale: played with weights older than allowed. reset: from games
# abandoned by reset(). twice: played by two hands, and the other one was first.
REASONS = ("died", "hung", "failed", "damaged", "stale", "reset", "twice")
# interrupted: collected, but the learner was stopped before training on them. shutdown: in flight when the
# workers were stopped.
REASONS_AT_THE_END = ("interrupted", "shutdown")


class ConservationError(AssertionError):
    """Moves were lost, or counted twice: a bug."""


@dataclass(frozen=True, slots=True)
class Account:
    """generated = trained + in flight + discarded, each a number of moves.

    trained: handed to the learner. in_flight: being played, or delivered but not yet handed over.
    """

    generated: int
    trained: int
    in_flight: int
    discarded: Mapping[str, int]

    def __str__(self) -> str:
        """Return a phrase: "4,224 moves generated = 4,096 trained on + 0 in flight + 128 discarded"."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.discarded.items() if count)
        total = sum(self.discarded.values())
        return (
            f"{self.generated:,} moves generated = {self.trained:,} trained on + {self.in_flight:,} in "
            f"flight + {total:,} discarded{f' ({reasons})' if reasons else ''}"
        )


@dataclass(slots=True)
class _Incarnation:
    """One process. generated is the count it publishes itself; the others are counted here."""

    generated: int = 0
    delivered: int = 0
    discarded: int = 0  # abandoned before they made a segment


class Ledger:
    """A double entry of moves: what each process says it has generated, and what became of it."""

    def __init__(self) -> None:
        self._running: dict[int, _Incarnation] = {}
        self._ended_generated = 0
        self._trained = 0
        self._queued = 0
        self._discarded: Counter[str] = Counter(dict.fromkeys(REASONS + REASONS_AT_THE_END, 0))

    def begin(self, worker: int) -> None:
        """Start counting for a new process of a worker."""
        self._running[worker] = _Incarnation()

    def shown(self, worker: int, generated: int) -> None:
        """Record the number of moves that a process publishes."""
        self._running[worker].generated = generated

    def delivered(self, worker: int, steps: int) -> None:
        """Record a delivered segment."""
        self._running[worker].delivered += steps
        self._queued += steps

    def trained(self, steps: int) -> None:
        """Record a segment handed to the learner."""
        self._queued -= steps
        self._trained += steps

    def give_back(self, steps: int) -> None:
        """Record that the learner does not use these moves after all."""
        self._trained -= steps
        self._discarded["interrupted"] += steps

    def played_here(self, steps: int) -> None:
        """Record a segment played by the learner's own process."""
        self._ended_generated += steps
        self._queued += steps

    def discard_queued(self, steps: int, reason: str) -> None:
        """Record a delivered segment that is not used."""
        self._queued -= steps
        self._discarded[reason] += steps

    def abandon(self, worker: int, reason: str) -> None:
        """Record that a process has dropped its unfinished segment; it plays nothing now."""
        count = self._running[worker]
        lost = self._in_the_making(count)
        count.discarded += lost
        self._discarded[reason] += lost

    def dropped(self, worker: int, steps: int, reason: str) -> None:
        """Record moves of a process that never become a segment, as it says itself."""
        self._running[worker].discarded += steps
        self._discarded[reason] += steps

    def end(self, worker: int, reason: str) -> None:
        """Record that a process has ended, along with its unfinished segment."""
        self.abandon(worker, reason)
        self._ended_generated += self._running.pop(worker).generated

    def account(self) -> Account:
        """Return the current totals."""
        making = sum(map(self._in_the_making, self._running.values()))
        generated = self._ended_generated + sum(count.generated for count in self._running.values())
        return Account(generated, self._trained, self._queued + making, dict(self._discarded))

    def check(self, *, queued: int, asked_for: Mapping[int, int]) -> Account:
        """Return the current totals; raise ConservationError if they do not add up.

        queued: the moves in the segments actually waiting. asked_for: the moves in each worker's open
        tickets; a worker cannot have more moves in progress than its tickets ask for.
        """
        account = self.account()
        wrong = []
        if self._queued != queued:
            wrong.append(f"{queued} moves are waiting, expected {self._queued}")
        for worker, count in self._running.items():
            making, limit = self._in_the_making(count), asked_for[worker]
            if not 0 <= making <= limit:
                wrong.append(f"worker {worker} has {making} moves in progress, expected 0 to {limit}")
        total = account.trained + account.in_flight + sum(account.discarded.values())
        if account.generated != total:
            wrong.append(f"{account.generated} moves were generated, {total} accounted for")
        if wrong:
            raise ConservationError(f"{'; '.join(wrong)}: {account}")
        return account

    @staticmethod
    def _in_the_making(count: _Incarnation) -> int:
        return count.generated - count.delivered - count.discarded
