"""Time management: seconds per move from a clock, and the Control that stops a thinking engine.

A move may take what its clock allows, less a margin for the round trip to the GUI. A clock without byoyomi
and increment is divided so that thinking never uses it up: each move takes a share of what is left.
"""

import threading
import time

from keisei.shogi import Color
from keisei.usi.protocol import Limits

MOVES_TO_COME = 30  # of one side; the main time is spread over them; assumption, not studied


def seconds_to_think(limits: Limits, turn: Color, delay_ms: int) -> float | None:
    """Return how many seconds to think about a move, None if there is no time limit.

    delay_ms is held in reserve, or three quarters of the time if that is less.
    """
    milliseconds = _milliseconds(limits, turn)
    if milliseconds is None:
        return None
    return max(milliseconds - delay_ms, milliseconds / 4) / 1000


def _milliseconds(limits: Limits, turn: Color) -> float | None:
    """Return how much clock time a move may use."""
    if limits.infinite:
        return None
    clock = limits.clocks[turn]
    increment = limits.increments[turn] or 0
    byoyomi = limits.byoyomi or 0
    if clock is None and not byoyomi and not increment:
        return limits.movetime
    left = max(clock or 0, 0)
    wanted = left / MOVES_TO_COME + byoyomi + increment
    # The GUI may add the increment before or after the move, so it is the last resort.
    available = left + byoyomi or increment
    if limits.movetime is not None:
        wanted = min(wanted, limits.movetime)
    return min(wanted, available)


class Control:
    """The reading thread's control over the thinking thread: when it must stop.

    started: when the command arrived, by time.monotonic. waits: the answer is held back until `stop` or
    `hit`. silent: the answer is no longer wanted.
    """

    def __init__(self, started: float, seconds: float | None, *, waits: bool) -> None:
        self.started = started
        self.silent = False
        self._stopped = False
        self._released = threading.Event()
        self._deadline = None if seconds is None or waits else started + seconds
        self._last_asked: float | None = None
        self._longest_step = 0.0
        if not waits:
            self._released.set()

    def stop(self) -> None:
        """Ask for the answer now."""
        self._stopped = True
        self._released.set()

    def abandon(self) -> None:
        """Ask to stop without an answer."""
        self.silent = True
        self.stop()

    def hit(self, now: float, seconds: float | None) -> None:
        """Start the clock now, after pondering; without a clock the other limits remain."""
        self._deadline = None if seconds is None else now + seconds
        self._released.set()

    @property
    def waits(self) -> bool:
        """Whether the answer is still held back."""
        return not self._released.is_set()

    @property
    def has_deadline(self) -> bool:
        """Whether a clock is running."""
        return self._deadline is not None

    def over(self) -> bool:
        """Return whether to stop now; call it before each step, since the next must end in time too."""
        now = time.monotonic()
        if self._last_asked is not None:
            # A maximum that decays: a single slow step, caused by another program, is soon forgotten.
            self._longest_step = max(now - self._last_asked, 0.9 * self._longest_step)
        self._last_asked = now
        return self._stopped or (self._deadline is not None and now + self._longest_step > self._deadline)

    def pause(self) -> None:
        """Note that no step is running, so that the time until the next one does not count as a step."""
        self._last_asked = None

    def wait(self) -> None:
        """Block until the answer may be given."""
        self._released.wait()

    @property
    def seconds(self) -> float:
        """Seconds since the command arrived."""
        return time.monotonic() - self.started
