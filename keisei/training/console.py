"""What the user sees during a run: a dashboard on a terminal, lines in a log, or nothing.

Consoles are listeners. One that takes over the terminal restores it even if the process exits without
`close`.
"""

import atexit
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Literal, TextIO

import rich.console
from rich.live import Live

from keisei.runs.durable import naming
from keisei.shogi.vector import VectorGames
from keisei.training.dashboard import draw
from keisei.training.listener import Listener, RunFacts, SilentListener, Update
from keisei.training.number_text import duration, elo, number, percent, quantity, whole
from keisei.training.panel_layout import NOTICES, PanelLayout
from keisei.training.run_progress import Progress

Mode = Literal["auto", "rich", "plain", "off"]
Clock = Callable[[], float]

PLAIN_SECONDS = 10.0
BOARD_SECONDS = 1.0
# A frame takes about 10 ms of Python, which must not slow the training (measured on one core).
REFRESH_PER_SECOND = 2.0


def make_console(mode: Mode, stream: TextIO) -> Listener:
    """Return the console for a mode; auto is the dashboard on a capable terminal, plain lines elsewhere."""
    if mode == "auto":
        unicode = (stream.encoding or "").lower().startswith("utf")
        able = stream.isatty() and unicode and os.environ.get("TERM", "dumb") != "dumb"
        mode = "rich" if able else "plain"
    if mode == "rich":
        return RichConsole(stream)
    return PlainConsole(stream) if mode == "plain" else SilentListener()


class PlainConsole(SilentListener):
    """Plain lines for a log: one every ten seconds, and always the first and last update."""

    def __init__(self, stream: TextIO, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._progress: Progress | None = None  # between start and close
        self._printed_at = -math.inf
        self._held_back = False

    def start(self, facts: RunFacts) -> None:
        """Print the run's facts and how to stop it."""
        self._progress = Progress(facts, self._clock)
        self._print(str(facts))
        self._print(facts.how_to_stop)

    def update(self, update: Update) -> None:
        """Print a line if the last one is old enough, plus one per evaluation."""
        progress = _started(self._progress)
        evaluated = progress.update(update.step, update.metrics, update.workers)
        self._held_back = True
        if self._clock() - self._printed_at >= PLAIN_SECONDS:
            self._print_update(progress)
        if evaluated:
            self._print(_evaluation_line(progress))

    def notice(self, text: str) -> None:
        """Print the text after a "! "."""
        self._print(f"! {text}")

    def close(self) -> None:
        """Print the last update, if not yet printed."""
        if self._progress is not None and self._held_back:
            self._print_update(self._progress)
        self._progress = None

    def _print_update(self, progress: Progress) -> None:
        self._printed_at = self._clock()
        self._held_back = False
        self._print(_update_line(progress))

    def _print(self, text: str) -> None:
        with naming("the console"):
            self._stream.write(f"{time.strftime('%H:%M:%S')}  {text}\n")
            self._stream.flush()


class RichConsole(SilentListener):
    """A dashboard redrawn in place, below any other output."""

    def __init__(self, stream: TextIO, clock: Clock = time.monotonic) -> None:
        self._console = rich.console.Console(file=stream, force_terminal=True, highlight=False, emoji=False)
        self._clock = clock
        self._size = self._console.size
        self._picture: _Picture | None = None  # between start and close
        self._live: Live | None = None  # the same

    def start(self, facts: RunFacts) -> None:
        """Take over the bottom of the terminal."""
        self._picture = _Picture(Progress(facts, self._clock), self._clock)
        self._size = self._console.size
        self._live = self._go_live(self._picture)
        atexit.register(self.close)

    def update(self, update: Update) -> None:
        """Record an update; rich's thread draws it within half a second."""
        assert self._picture is not None, "update before start"
        size = self._console.size
        plan = PanelLayout.of(size.width, size.height, len(update.workers))
        self._picture.update(update, plan.boards)
        if size != self._size and self._live is not None:
            # The terminal has rewrapped the lines on screen, so the dashboard cannot be drawn over them.
            self._size = size
            self._live.stop()
            self._console.clear()
            self._live = self._go_live(self._picture)

    def notice(self, text: str) -> None:
        """Show the line in the dashboard; without one, print it."""
        if self._picture is None:
            self._console.print(text, markup=False)
        else:
            self._picture.notice(f"{time.strftime('%H:%M:%S')}  {text}")

    def close(self) -> None:
        """Draw one last time, leave the dashboard on screen and show the cursor."""
        if self._live is not None:
            self._live.stop()
            atexit.unregister(self.close)
        self._live = self._picture = None

    def _go_live(self, picture: "_Picture") -> Live:
        live = Live(picture, console=self._console, refresh_per_second=REFRESH_PER_SECOND)
        live.start(refresh=True)
        return live


class _Picture:
    """The dashboard as a renderable that rich draws at any size, from its own thread."""

    def __init__(self, progress: Progress, clock: Clock) -> None:
        self._progress = progress
        self._clock = clock
        self._notices: deque[str] = deque(maxlen=NOTICES)
        self._boards: list[str] = []
        self._boards_at = -math.inf
        self._lock = threading.RLock()  # a signal handler may call notice in the middle of an update

    def update(self, update: Update, room: int) -> None:
        """Record an update; room: how many boards to show."""
        boards = self._boards
        if not room or not update.saved_games:
            boards = []
        elif self._clock() - self._boards_at >= BOARD_SECONDS:
            games = VectorGames.restore(update.saved_games[0].games)
            boards = [str(games.game(index)) for index in range(min(room, len(games)))]
            self._boards_at = self._clock()
        with self._lock:
            self._progress.update(update.step, update.metrics, update.workers)
            self._boards = boards

    def notice(self, text: str) -> None:
        with self._lock:
            self._notices.append(text)

    def __rich_console__(
        self, console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> rich.console.RenderResult:
        with self._lock:
            picture = draw(
                self._progress, self._boards, list(self._notices), options.max_width, console.size.height
            )
        yield picture


def _started(progress: Progress | None) -> Progress:
    assert progress is not None, "update before start"
    return progress


def _update_line(progress: Progress) -> str:
    counts = progress.game_counts()
    fields = [
        f"{progress.step:,} ({progress.fraction() * 100:.1f} %)",
        f"{quantity(progress.last('speed/steps_per_second'))} moves/s",
        f"{duration(progress.remaining_seconds())} to go",
        *_rating(progress),
        f"policy {number(progress.last('loss/policy'))}",
        f"value {number(progress.last('loss/value'))}",
        f"entropy {number(progress.last('policy/entropy'))}",
        f"KL {number(progress.last(progress.recorded('policy/approx_kl', 'search/kl')))}",
        f"draws {percent(counts.share(counts.draws))}",
        f"length {quantity(progress.length())}",
        *_worker_fields(progress),
    ]
    return "  ".join(fields)


def _rating(progress: Progress) -> list[str]:
    """Return the latest rating; empty before the first."""
    return [elo(rated.elo, rated.low, rated.high) for rated in progress.ratings[-1:]]


def _worker_fields(progress: Progress) -> list[str]:
    """Return the workers' part of a line; empty without workers."""
    active = progress.last("parallel/active_workers")
    if math.isnan(active):
        return []
    known = f"/{len(progress.workers)}" if progress.workers else ""
    busy = percent(progress.last("parallel/utilization"))
    most = [f", {phase} {percent(share)}" for phase, share in progress.worker_shares().items()][:1]
    fields = [f"workers {whole(active)}{known}, {busy} busy{''.join(most)}"]
    if progress.last("parallel/lag_max") > 0:
        fields.append(f"lag {whole(progress.last('parallel/lag_max'))}")
    if progress.last("parallel/serial_steps") > 0:
        fields.append(f"learner played {whole(progress.last('parallel/serial_steps'))}")
    return fields


def _evaluation_line(progress: Progress) -> str:
    texts = _rating(progress) if progress.ratings and progress.ratings[-1].step == progress.step else []
    for opponent, matches in progress.evaluations.items():
        now = matches[-1]
        if now.step == progress.step:
            before = f", before {percent(matches[-2].score)}" if len(matches) > 1 else ""
            texts.append(f"{opponent} {percent(now.score)} (draws {percent(now.draws)}{before})")
    return f"evaluation at {progress.step:,}: {'; '.join(texts)}"
