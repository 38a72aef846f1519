"""The clock of a game at a table: main time, then byoyomi for each move."""

import time
from collections.abc import Callable
from typing import Any

from keisei.shogi import Color


class TableClock:
    """minutes: of main time for each side. byoyomi: seconds for each move after that."""

    def __init__(self, minutes: float, byoyomi: float, now: Callable[[], float] = time.monotonic) -> None:
        self._left = dict.fromkeys(Color, minutes * 60)
        self.byoyomi = byoyomi
        self._now = now
        self._running: Color | None = None
        self._since = 0.0

    def run(self, color: Color | None) -> None:
        """Note what the side on the move has used, and run for another side, or nobody."""
        if self._running is not None:
            self._left[self._running] = self.main_time(self._running)
        self._running, self._since = color, self._now()

    def main_time(self, color: Color) -> float:
        """Return a side's main time in seconds, which byoyomi does not use up."""
        used = self._now() - self._since if color is self._running else 0.0
        return max(0.0, self._left[color] - used)

    def until_flag(self) -> float | None:
        """Return the seconds until the running side has lost on time, None if the clock stands."""
        if self._running is None:
            return None
        return self._since + self._left[self._running] + self.byoyomi - self._now()

    def facts(self) -> dict[str, Any]:
        """Return what a page is told: main time left, in milliseconds."""
        left = {f"{color}_ms": round(1000 * self.main_time(color)) for color in Color}
        return {
            **left,
            "byoyomi_ms": round(1000 * self.byoyomi),
            "byoyomi_left_ms": self._byoyomi_left(),
            "running": None if self._running is None else str(self._running),
        }

    def _byoyomi_left(self) -> int:
        left = self.until_flag()
        return round(1000 * self.byoyomi if left is None else 1000 * max(0.0, min(left, self.byoyomi)))
