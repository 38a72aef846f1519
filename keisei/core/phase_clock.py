"""PhaseClock: where the time goes, as part of the loop."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class PhaseClock:
    """Seconds by phase. A phase inside another counts as the outer one; time outside any phase is `other`."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._running = False
        self._since = time.perf_counter()

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Count the time of the `with` block as this phase."""
        if self._running:
            yield
            return
        self._running = True
        start = time.perf_counter()
        try:
            yield
        finally:
            self._running = False
            self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - start

    def lap(self) -> Mapping[str, float]:
        """Return the seconds of each phase and of `other` since the last call, and reset them."""
        now = time.perf_counter()
        total, seconds = now - self._since, self._seconds
        self._since, self._seconds = now, {}
        return {**seconds, "other": max(0.0, total - sum(seconds.values()))}
