"""What a console shows of a run: statistics over its last updates.

Input: metrics, one update at a time. Output: rates, shares and histories. Nothing is drawn here.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from keisei.training.listener import RunFacts
from keisei.training.metrics import OPPONENTS, PHASES, REASONS, WORKER_PHASES, reason_name
from keisei.training.parallel.worker_status import WORK_PHASES, WorkerStatus

HISTORY = 160  # updates, enough for the widest sparkline
WINDOW = 20  # updates over which results, phases and the time to go are computed


@dataclass(frozen=True)
class Evaluation:
    """A match against an opponent: score and draws as shares of the games, length in plies."""

    step: int
    score: float
    draws: float
    length: float


@dataclass(frozen=True)
class RatedStep:
    """The rating at a step, with the bounds of its 95 % interval; infinite if unbounded."""

    step: int
    elo: float
    low: float
    high: float


@dataclass(frozen=True)
class GameCounts:
    """Games that ended in the last updates, by winner and by reason."""

    black_wins: int
    white_wins: int
    draws: int
    reasons: Mapping[str, int]

    @property
    def finished(self) -> int:
        """All of them."""
        return self.black_wins + self.white_wins + self.draws

    def share(self, count: int) -> float:
        """Return count as a share of the finished games, NaN if there are none."""
        return count / self.finished if self.finished else math.nan


class Progress:
    """The last updates of a run."""

    def __init__(self, facts: RunFacts, clock: Callable[[], float]) -> None:
        self.facts = facts
        self.step = facts.start_step
        self.updates: deque[Mapping[str, float]] = deque(maxlen=HISTORY)
        self.evaluations: dict[str, list[Evaluation]] = {}  # of each opponent, all since the start
        self.ratings: list[RatedStep] = []  # the same
        self.workers: Sequence[WorkerStatus] = ()
        self._clock = clock
        self._begun = clock()
        self._marks = deque([(self._begun, facts.start_step)], maxlen=WINDOW + 1)

    def update(self, step: int, metrics: Mapping[str, float], workers: Sequence[WorkerStatus] = ()) -> bool:
        """Record the metrics of an update; return whether they include an evaluation."""
        self.step = step
        self.workers = tuple(workers)
        self.updates.append(dict(metrics))
        self._marks.append((self._clock(), step))
        evaluated = False
        for opponent in OPPONENTS:
            score = metrics.get(f"evaluation/{opponent}_score")
            if score is not None:
                evaluated = True
                draws, length = (
                    metrics.get(f"evaluation/{opponent}_{what}", math.nan) for what in ("draws", "length")
                )
                matches = self.evaluations.setdefault(opponent, [])
                matches.append(Evaluation(step, score, draws, length))
        if "evaluation/rating" in metrics:
            bounds = (metrics.get(f"evaluation/rating{end}", math.nan) for end in ("", "_low", "_high"))
            self.ratings.append(RatedStep(step, *bounds))
        return evaluated

    def last(self, name: str) -> float:
        """Return a metric of the last update, NaN if absent."""
        return self.updates[-1].get(name, math.nan) if self.updates else math.nan

    def recorded(self, *names: str) -> str:
        """Return which of these metrics the latest updates have, or the first; not every update has all."""
        return next((name for update in reversed(self.updates) for name in names if name in update), names[0])

    def history(self, name: str) -> list[float]:
        """Return a metric over the last updates, oldest first, NaN where absent."""
        return [metrics.get(name, math.nan) for metrics in self.updates]

    def worker_shares(self) -> dict[str, float]:
        """Return the share of the workers' time per phase, largest first; empty without workers."""
        seconds = {phase: self.last(f"parallel/seconds_{phase}") for phase in WORK_PHASES}
        total = sum(seconds.values())
        shares = {phase: spent / total for phase, spent in seconds.items()} if total > 0 else {}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    def draw_rates(self) -> list[float]:
        """Return the share of draws in each of the last updates, NaN where no game ended."""
        pairs = zip(self.history("games/draws"), self.history("games/finished"), strict=True)
        return [draws / finished if finished > 0 else math.nan for draws, finished in pairs]

    def game_counts(self) -> GameCounts:
        """Return the games that ended in the last WINDOW updates."""
        return GameCounts(
            black_wins=round(self._sum("games/black_wins")),
            white_wins=round(self._sum("games/white_wins")),
            draws=round(self._sum("games/draws")),
            reasons={reason.value: round(self._sum(reason_name(reason))) for reason in REASONS},
        )

    def length(self) -> float:
        """Return the mean game length over the last WINDOW updates, NaN if no game ended."""
        plies = games = 0.0
        for metrics in self._window():
            if "games/length" in metrics:
                plies += metrics["games/length"] * metrics.get("games/finished", 0.0)
                games += metrics.get("games/finished", 0.0)
        return plies / games if games else math.nan

    def phases(self) -> dict[str, float]:
        """Return the share of time per phase over the last WINDOW updates.

        Phases specific to workers are absent if they did not occur.
        """
        seconds = {phase: self._sum(f"time/{phase}") for phase in PHASES}
        total = sum(seconds.values())
        return {
            phase: value / total if total > 0 else 0.0
            for phase, value in seconds.items()
            if value > 0 or phase not in WORKER_PHASES
        }

    def fraction(self) -> float:
        """Return how much of the run is done, 0 to 1."""
        return min(self.step / self.facts.total_steps, 1.0)

    def elapsed_seconds(self) -> float:
        """Return the time since this process started training."""
        return self._clock() - self._begun

    def remaining_seconds(self) -> float:
        """Return the time to go at the overall pace of the last WINDOW updates; NaN at first."""
        (begun, first), (ended, last) = self._marks[0], self._marks[-1]
        if last <= first:
            return math.nan
        pace = (ended - begun) / (last - first)
        remaining = pace * max(self.facts.total_steps - last, 0) - (self._clock() - ended)
        return max(remaining, 0.0)

    def _window(self) -> list[Mapping[str, float]]:
        return list(self.updates)[-WINDOW:]

    def _sum(self, name: str) -> float:
        values = (metrics.get(name, 0.0) for metrics in self._window())
        return sum(value for value in values if math.isfinite(value))
