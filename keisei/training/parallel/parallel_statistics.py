"""Measurements of the workers: totals, and since the metrics were last read."""

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from keisei.training.parallel.communication import WorkerSegment
from keisei.training.parallel.worker_status import WORK_PHASES, WorkerStatus


class ParallelStatistics:
    """Totals, time series, and the figures of the current lap, which `lap` ends."""

    def __init__(self, workers: int) -> None:
        self.games = 0
        self.lags: Counter[int] = Counter()
        self.replacement_seconds: deque[float] = deque(maxlen=1000)
        self.queue_depth: deque[tuple[float, int]] = deque(maxlen=1000)  # (seconds, segments)
        self.totals = [(0, 0, -1)] * workers  # steps, games, weights version of ended processes
        self.seconds: list[Mapping[str, float]] = [{}] * workers  # of ended processes
        self.restarts = self.serial_steps = 0
        self._began = time.monotonic()
        self._busy = [(self._began, 0)] * workers
        self._looks = self._depths = 0  # of this lap: number of samples, and their sum
        self._lap_lags: Counter[int] = Counter()
        self._lap_restarts = self._lap_serial = 0
        self._lap_seconds: Mapping[str, float] = dict.fromkeys(WORK_PHASES, 0.0)

    def took(self, taken: Sequence[WorkerSegment], version: int) -> None:
        """Record the segments handed to the learner."""
        lags = [version - one.version for one in taken]
        self.lags.update(lags)
        self._lap_lags.update(lags)
        self.games += sum(len(one.results) for one in taken)

    def looked(self, depth: int) -> None:
        """Record how many segments are waiting."""
        self.queue_depth.append((time.monotonic() - self._began, depth))
        self._looks += 1
        self._depths += depth

    def ended(self, status: WorkerStatus, seconds: Mapping[str, float]) -> None:
        """Record the totals of a worker's processes; the current one is ending."""
        self.totals[status.worker] = (status.steps, status.games, status.weights_version)
        self.seconds[status.worker] = seconds

    def started(self, worker: int, *, replaces: bool) -> None:
        """Record a new process, which may be a replacement."""
        self.restarts += replaces
        self.mark(worker, 0)

    def mark(self, worker: int, busy_nanoseconds: int) -> None:
        """Start measuring a worker's utilisation."""
        self._busy[worker] = (time.monotonic(), busy_nanoseconds)

    def utilization(self, worker: int, busy_nanoseconds: int) -> float:
        """Return the share of time since the mark that a worker spent playing."""
        since, before = self._busy[worker]
        return min(1.0, (busy_nanoseconds - before) / 1e9 / max(time.monotonic() - since, 1e-9))

    def lap(self, seconds: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Return the lap's metrics and start the next lap; seconds: total so far per worker, by phase."""
        spent = {phase: sum(worker[phase] for worker in seconds) for phase in WORK_PHASES}
        lags = self._lap_lags or Counter([0])
        metrics = {
            "parallel/queue_depth": self._depths / max(self._looks, 1),
            "parallel/lag_mean": sum(lag * count for lag, count in lags.items()) / lags.total(),
            "parallel/lag_max": max(lags),
            "parallel/restarts": self.restarts - self._lap_restarts,
            "parallel/serial_steps": self.serial_steps - self._lap_serial,
            **{f"parallel/seconds_{phase}": spent[phase] - self._lap_seconds[phase] for phase in WORK_PHASES},
        }
        self._looks, self._depths, self._lap_lags = 0, 0, Counter()
        self._lap_restarts, self._lap_serial, self._lap_seconds = self.restarts, self.serial_steps, spent
        return metrics
