"""ProfileClock: wall and CPU seconds by phase, kept lap by lap, for one process."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from keisei.core.phase_clock import PhaseClock


@dataclass(frozen=True, slots=True)
class Lap:
    """The seconds by phase between two laps; wall and cpu have the same phases.

    began, ended: time.perf_counter(), which on Linux is the same clock in every process. cpu: of all threads.
    """

    began: float
    ended: float
    wall: Mapping[str, float]
    cpu: Mapping[str, float]


class ProfileClock(PhaseClock):
    """A PhaseClock that counts CPU seconds too and keeps every lap."""

    def __init__(self) -> None:
        super().__init__()
        self.laps: list[Lap] = []
        self._cpu = PhaseClock(time.process_time)
        self._began = time.perf_counter()

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Count the time of the `with` block as this phase."""
        with super().__call__(phase), self._cpu(phase):
            yield

    def lap(self) -> Mapping[str, float]:
        """Return the wall seconds by phase since the last call, and keep the lap."""
        wall, cpu, now = super().lap(), self._cpu.lap(), time.perf_counter()
        self.laps.append(Lap(self._began, now, wall, cpu))
        self._began = now
        return wall


def total(laps: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sum of seconds by phase, the longest phase first and `other` last."""
    summed: dict[str, float] = {}
    for lap in laps:
        for phase, seconds in lap.items():
            summed[phase] = summed.get(phase, 0.0) + seconds
    return dict(sorted(summed.items(), key=lambda item: (item[0] == "other", -item[1])))
