"""Ctrl-C, SIGTERM and SIGHUP stop a run at the next safe point; a second signal exits at once."""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):  # noqa: N818  (not an error)
    """The user, or the system, asked the run to stop."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.exit_code = 128 + signum


class StopRequest:
    """A context in which the first signal is only noted, for `check` to raise; a second one ends the process.

    Python handles signals only in the main thread: entered in another thread, this never requests a stop.
    """

    def __init__(self) -> None:
        self._on_first: Callable[[str], None] = lambda _: None
        self._before_leaving: Callable[[], None] = lambda: None
        self._signum = 0
        self._told = False
        self._old: dict[int, Any] = {}

    def tell(self, on_first: Callable[[str], None], before_leaving: Callable[[], None]) -> None:
        """Call on_first with the first signal's name, and before_leaving before a second ends the process."""
        self._on_first, self._before_leaving = on_first, before_leaving
        self._told = False

    def __enter__(self) -> Self:
        heard = _SIGNALS if threading.current_thread() is threading.main_thread() else ()
        for signum in heard:
            self._old[signum] = signal.signal(signum, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._old.items():
            signal.signal(signum, handler)

    def _note(self, signum: int, _frame: FrameType | None) -> None:
        if self._signum:
            try:
                self._before_leaving()
            finally:
                os._exit(128 + signum)
        self._signum = signum
        with suppress(RuntimeError):  # it came in the middle of a line being printed: `check` tells
            self._tell_first()

    def _tell_first(self) -> None:
        if not self._told:
            self._on_first(signal.Signals(self._signum).name)
            self._told = True

    @property
    def requested(self) -> bool:
        """Whether a signal has arrived."""
        return bool(self._signum)

    def check(self) -> None:
        """Raise Interrupted if a signal has arrived."""
        if self._signum:
            self._tell_first()
            raise Interrupted(self._signum)
