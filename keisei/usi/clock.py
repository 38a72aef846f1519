"""How long to think: from a clock to seconds, and the Control through which a thinking engine is stopped.

A move may take what its clock has, less a margin for the way to the GUI and back. A clock without byoyomi and
increment is divided so that it never runs out by thinking: each move takes a share of what is left.
"""

import threading
import time

from keisei.shogi import Color
from keisei.usi.protocol import Limits

MOVES_TO_COME = 30  # of one side, over which the main time is spread; assumption, not studied


def seconds_to_think(limits: Limits, turn: Color, delay_ms: int) -> float | None:
    """Return how long a move may take to think, None if there is no limit of time.

    delay_ms is kept back, or three quarters of the time where that is less.
    """
    milliseconds = _milliseconds(limits, turn)
    if milliseconds is None:
        return None
    return max(milliseconds - delay_ms, milliseconds / 4) / 1000


def _milliseconds(limits: Limits, turn: Color) -> float | None:
    """Return what a move may cost on its clock."""
    if limits.infinite:
        return None
    clock = limits.clocks[turn]
    increment = limits.increments[turn] or 0
    byoyomi = limits.byoyomi or 0
    if clock is None and not byoyomi and not increment:
        return limits.movetime
    left = max(clock or 0, 0)
    wanted = left / MOVES_TO_COME + byoyomi + increment
    # Whether the increment comes before the move or after it is up to the GUI, so it is the last resort.
    available = left + byoyomi or increment
    if limits.movetime is not None:
        wanted = min(wanted, limits.movetime)
    return min(wanted, available)


class Control:
    """Between the thread that reads and the thread that thinks: when the thinking must end.

    started: the moment, by time.monotonic, at which the command came. waits: the answer is held back until
    `stop` or `hit`. silent: nobody wants an answer any more.
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
        """Ask for an end without an answer."""
        self.silent = True
        self.stop()

    def hit(self, now: float, seconds: float | None) -> None:
        """Let the clock run from now on, after pondering; without a clock the other limits remain."""
        self._deadline = None if seconds is None else now + seconds
        self._released.set()

    @property
    def waits(self) -> bool:
        """The answer is still held back."""
        return not self._released.is_set()

    @property
    def has_deadline(self) -> bool:
        """A clock runs."""
        return self._deadline is not None

    def over(self) -> bool:
        """Tell whether to stop now; to be asked before each step, since the next must end in time as well."""
        now = time.monotonic()
        if self._last_asked is not None:
            # An average that forgets: a single slow step, by another program's fault, is not the rule.
            self._longest_step = max(now - self._last_asked, 0.9 * self._longest_step)
        self._last_asked = now
        return self._stopped or (self._deadline is not None and now + self._longest_step > self._deadline)

    def pause(self) -> None:
        """Note that no step is under way, so that the time until the next one is not taken for a step."""
        self._last_asked = None

    def wait(self) -> None:
        """Return when the answer may be given."""
        self._released.wait()

    @property
    def seconds(self) -> float:
        """Since the command came."""
        return time.monotonic() - self.started
