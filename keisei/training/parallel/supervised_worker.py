"""SupervisedWorker: the successive processes of one worker.

It decides when to start the next process and when to give up; the supervisor acts on it.
"""

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import Signals
from typing import Literal

from keisei.training.parallel.communication import Activity
from keisei.training.parallel.worker_status import State

_LONGEST_LOOK = 1.0  # seconds of silence one check may add; a learner that slept must not blame its workers

_STATES: dict[int | None, State] = {
    Activity.WAITING: "waiting",
    Activity.PLAYING: "playing",
    Activity.PAUSED: "paused",
    Activity.LEARNING: "learning",
}
Phase = Literal["starting", "running", "restarting", "given up"]


@dataclass(frozen=True, slots=True)
class Supervision:
    """How patient the supervisor is with the workers.

    restarts: after this many within window_seconds a worker is given up, and retried after retry_seconds. The
    first restart waits first_backoff_seconds; each further one without a segment in between waits twice as
    long, up to longest_backoff_seconds. start_seconds: time for a process to become ready.
    """

    restarts: int = 5
    window_seconds: float = 600.0
    first_backoff_seconds: float = 0.25
    longest_backoff_seconds: float = 8.0
    retry_seconds: float = 60.0
    start_seconds: float = 60.0


class SupervisedWorker:
    """One worker. `process` is set while phase is starting or running."""

    def __init__(self, number: int, limits: Supervision, clock: Callable[[], float] = time.monotonic) -> None:
        self.number = number
        self.phase: Phase = "restarting"
        self.incarnation = -1
        self.process: BaseProcess | None = None
        self.on_trial = False  # it was given up, and its new process is not ready yet
        self.last_error = ""
        self.has_delivered = False  # this incarnation
        self.due_at = clock()  # when to start a process, if none is running
        self._limits = limits
        self._clock = clock
        self._restarted_at: deque[float] = deque()
        self._fruitless = 0  # incarnations in a row that delivered nothing
        self._silent_seconds = 0.0
        self._beats = -1
        self._looked_at = clock()
        self.ended_at: float | None = None  # when the last process ended, until the next one is ready

    def started(self, process: BaseProcess) -> None:
        """Record that a process was started."""
        self.on_trial = self.phase == "given up"
        self.phase, self.process = "starting", process
        self.incarnation += 1
        self.has_delivered = False
        self._silent_seconds, self._beats, self._looked_at = 0.0, -1, self._clock()

    def ended(self) -> float | None:
        """Record that the process is gone; return the seconds until the next one, None if given up."""
        now = self._clock()
        self.process = None
        self.ended_at = now if self.ended_at is None else self.ended_at
        self._fruitless = 0 if self.has_delivered else self._fruitless + 1
        self.has_delivered = False  # a process that cannot be started delivers nothing either
        while self._restarted_at and self._restarted_at[0] <= now - self._limits.window_seconds:
            self._restarted_at.popleft()
        if self.on_trial or len(self._restarted_at) >= self._limits.restarts:
            self.phase = "given up"
            self.due_at = now + self._limits.retry_seconds
            return None
        self.phase = "restarting"
        limits = self._limits
        doublings = max(0, self._fruitless - 1)
        wait = min(limits.first_backoff_seconds * 2.0**doublings, limits.longest_backoff_seconds)
        self.due_at = now + wait
        self._restarted_at.append(now)
        return wait

    def is_ready(self) -> float | None:
        """Record that the process can play; return the seconds since the previous one ended, if any."""
        self.phase, self.on_trial = "running", False
        self._silent_seconds = 0.0  # starting may have taken longer than it may be silent from now on
        ended_at, self.ended_at = self.ended_at, None
        return None if ended_at is None else self._clock() - ended_at

    def can_be_relied_on(self) -> bool:
        """Return whether it plays or soon will, so that its segments are worth waiting for."""
        return self.phase != "given up" and not self.on_trial

    def is_due(self) -> bool:
        """Return whether to start a process now."""
        return self.process is None and self._clock() >= self.due_at

    def is_silent(self, beats: int, timeout: float) -> bool:
        """Check the signs of life; return whether there was none for too long."""
        now = self._clock()
        passed = min(now - self._looked_at, _LONGEST_LOOK)
        self._looked_at = now
        if beats != self._beats:
            self._beats, self._silent_seconds = beats, 0.0
            return False
        self._silent_seconds += passed
        return self._silent_seconds >= self.patience(timeout)

    def patience(self, timeout: float) -> float:
        """Return how many seconds of silence are too many now; timeout applies to a running process."""
        return self._limits.start_seconds if self.phase == "starting" else timeout

    def state(self, activity: int | None) -> State:
        """Return the state in one word; activity is what the process reports, None without a process."""
        if self.phase != "running":
            return self.phase
        return _STATES.get(activity, "starting")


def cause_of_death(exitcode: int | None) -> str:
    """Return how a process ended, in words: "SIGKILL, probably out of memory"."""
    if exitcode is None:
        return "it closed its channel"
    if exitcode >= 0:
        return f"exit code {exitcode}"
    name = Signals(-exitcode).name if -exitcode in set(Signals) else f"signal {-exitcode}"
    return f"{name}, probably out of memory" if name == "SIGKILL" else name


def resident_bytes(pid: int | None) -> int:
    """Return the resident memory of a process, shared pages included; 0 if unknown."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
