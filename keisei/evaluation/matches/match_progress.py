"""Progress of a match and the time left: one line rewritten in place, or a new one now and then."""

import os
import time
from collections.abc import Callable
from typing import TextIO

_SECONDS_BETWEEN_LINES = 30  # when the output is not a terminal


class MatchProgress:
    """The progress display of one match; a callable for `play_match`."""

    def __init__(self, label: str, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._label = label
        self._stream = stream
        self._clock = clock
        self._terminal = stream.isatty()
        self._began = self._told = clock()
        self._first: int | None = None
        self._width = 0

    def __call__(self, done: int, games: int) -> None:
        """Show that `done` of `games` games are finished."""
        now = self._clock()
        if self._first is None:
            self._first, self._began = done, now
        due = self._terminal or now - self._told >= _SECONDS_BETWEEN_LINES
        if not due:
            return
        self._told = now
        text = f": {done} of {games} games"
        if done > self._first:
            left = (now - self._began) / (done - self._first) * (games - done)
            text += f", {_duration(left)} to go"
        if self._terminal:
            line = self._shortened(text)
            self._stream.write(f"\r{line:{self._width}}")
            self._width = len(line)
        else:
            self._stream.write(f"{self._label}{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Erase the line, so that the result can take its place."""
        if self._terminal and self._width:
            self._stream.write(f"\r{'':{self._width}}\r")
            self._stream.flush()
            self._width = 0

    def _shortened(self, text: str) -> str:
        """Return label and text cut to the terminal's width: a wrapped line could not be rewritten."""
        columns = os.get_terminal_size(self._stream.fileno()).columns or 80  # some terminals report 0
        room = max(columns - 1 - len(text), 1)
        label = self._label if len(self._label) <= room else f"{self._label[: room - 1]}…"
        return f"{label}{text}"


def _duration(seconds: float) -> str:
    """Return a readable duration: 40 s, 12 min, 3.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
