"""Sampler: a thread that calls `sample` at a steady rate inside a `with` block."""

import threading
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Sampler(ABC):
    """Takes a sample at once, and then one every so many seconds; late samples are not made up for."""

    def __init__(self, seconds: float, name: str) -> None:
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def sample(self) -> None:
        """Take one sample."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        due = time.perf_counter()
        while True:
            self.sample()
            due = max(due + self._seconds, time.perf_counter())
            if self._stop.wait(due - time.perf_counter()):
                return
