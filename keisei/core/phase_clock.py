"""PhaseClock: where the time goes, as part of the loop."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager


class PhaseClock:
    """Seconds by phase. A phase inside another counts as the outer one; time outside any phase is `other`.

    now: the clock to count by; wall time by default.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._seconds: dict[str, float] = {}
        self._running = False
        self._since = now()

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Count the time of the `with` block as this phase."""
        if self._running:
            yield
            return
        self._running = True
        start = self._now()
        try:
            yield
        finally:
            self._running = False
            self._seconds[phase] = self._seconds.get(phase, 0.0) + self._now() - start

    def lap(self) -> Mapping[str, float]:
        """Return the seconds of each phase and of `other` since the last call, and reset them."""
        now = self._now()
        total, seconds = now - self._since, self._seconds
        self._since, self._seconds = now, {}
        return {**seconds, "other": max(0.0, total - sum(seconds.values()))}
