"""The dashboard of a run: progress bar, curves, results, phases, board, evaluations, workers, notices.

A pure function of the progress and the terminal size. What does not fit is dropped, the board first; spare
rows make the curves taller.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.align import Align
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from keisei.training.number_text import (
    bar,
    data_size,
    duration,
    number,
    percent,
    quantity,
    short_count,
    sparkline,
    whole,
)
from keisei.training.parallel.worker_status import State, WorkerStatus
from keisei.training.run_progress import WINDOW, Progress

CURVES = (
    ("entropy", "policy/entropy", "magenta"),
    ("policy loss", "loss/policy", "cyan"),
    ("value loss", "loss/value", "blue"),
    ("KL", "policy/approx_kl", "yellow"),
    ("clipped", "policy/clip_fraction", "red"),
    ("explained", "value/explained_variance", "green"),
)
# What a run that searches has instead.
SEARCH_CURVES = {
    "policy/approx_kl": ("search KL", "search/kl"),
    "policy/clip_fraction": ("agreement", "search/agreement"),
}
BLACK, WHITE, DRAW = "blue", "white", "bright_black"
BOARD_WIDTH, BOARD_HEIGHT = 37, 18  # of its panel: 33 columns of board, 16 rows with both hands
CURVE_UPDATES = 40
ROOMY = 30  # rows needed to afford a blank one
NOTICES = 5
UPPER_ROWS = len(CURVES) + 2  # minimum, like the two below
LOWER_ROWS = 5  # two borders and three rows
WORKER_ROWS = 3  # two borders and a row
WORKER_BAR = 30  # columns at most
STATE_COLORS: dict[State, str] = {
    "starting": "cyan",
    "playing": "green",
    "learning": "green",
    "waiting": "yellow",
    "paused": "yellow",
    "restarting": "red",
    "given up": "red",
    "stopped": "bright_black",
}
STATE_WIDTH = max(map(len, STATE_COLORS))  # fixed, so that nothing moves when a state changes


@dataclass(frozen=True)
class PanelLayout:
    """Rows for each curve, the lower panels, the workers' panel and the notices; with or without a board."""

    curve_rows: int
    lower_rows: int
    worker_rows: int
    notice_rows: int
    board: bool

    @classmethod
    def of(cls, width: int, height: int, workers: int = 0) -> "PanelLayout":
        """Return the layout for a terminal; its last row stays free for the cursor."""
        room = height - 1 - (4 if height >= ROOMY else 3)
        worker_rows = _worker_rows(room, workers)
        room -= worker_rows
        # With workers the lower panels give up rows, so that the notice of a dead worker is visible.
        lower_before_notices = LOWER_ROWS if worker_rows else 8
        notices = min(NOTICES, max(room - UPPER_ROWS - lower_before_notices - 2, 0))
        room -= notices + 2 if notices else 0
        lower = min(max(room - UPPER_ROWS, 0), 10)
        lower = lower if lower >= LOWER_ROWS else 0
        curve_rows = min(max((room - lower - 2) // len(CURVES), 1), 6)
        upper = curve_rows * len(CURVES) + 2
        fits = width >= 80 + BOARD_WIDTH and upper + lower + worker_rows >= BOARD_HEIGHT
        board = fits and notices == NOTICES  # the first thing to go
        return cls(curve_rows, lower, worker_rows, notices, board)


def _worker_rows(room: int, workers: int) -> int:
    """Return the height of the workers' panel: at most a third of the room, and what the others can spare."""
    if not workers:
        return 0
    wanted = min(workers + 2, max(room // 3, 4))
    left = room - UPPER_ROWS - LOWER_ROWS
    beside_notice = left - 3  # two borders and one notice
    rows = min(wanted, beside_notice if beside_notice >= min(wanted, 4) else left)
    return rows if rows >= WORKER_ROWS else 0


def draw(
    progress: Progress, board: str | None, notices: Sequence[str], width: int, height: int
) -> RenderableType:
    """Return the dashboard for a terminal of this size, at least one row shorter than it."""
    plan = PanelLayout.of(width, height, len(progress.workers))
    with_board = plan.board and board is not None
    left = width - (BOARD_WIDTH if with_board else 0)
    half = left // 2
    upper_rows = plan.curve_rows * len(CURVES) + 2
    rows: list[RenderableType] = [
        _beside(
            _panel("learning", _curves(progress, half - 4, plan.curve_rows), half, upper_rows),
            _panel(
                f"results of {min(len(progress.updates), WINDOW)} updates",
                _results(progress, left - half - 4, upper_rows - 2),
                left - half,
                upper_rows,
            ),
        )
    ]
    if plan.lower_rows:
        rows.append(
            _beside(
                _panel(
                    "where the time goes",
                    _phases(progress, half - 4, plan.lower_rows - 2),
                    half,
                    plan.lower_rows,
                ),
                _panel("evaluation", _evaluations(progress, left - half - 4), left - half, plan.lower_rows),
            )
        )
    if plan.worker_rows:
        lines = _workers(progress.workers, left - 4, plan.worker_rows - 2)
        rows.append(_panel(_queue(progress), lines, left, plan.worker_rows, _weights(progress, left - 6)))
    middle: RenderableType = Group(*rows)
    if with_board and board is not None:
        position = Align.center(Text(board.rstrip("\n")), vertical="middle")
        board_rows = upper_rows + plan.lower_rows + plan.worker_rows
        middle = _beside(middle, _panel("a game", position, BOARD_WIDTH, board_rows))
    parts = [_head(progress, width, height), middle]
    if plan.notice_rows:
        text = Text("\n".join(notices[-plan.notice_rows :]), no_wrap=True, overflow="ellipsis")
        parts.append(_panel("notices", text, width, plan.notice_rows + 2))
    return Group(*parts)


def _head(progress: Progress, width: int, height: int) -> RenderableType:
    facts = progress.facts
    title = Text(no_wrap=True, overflow="ellipsis")
    title.append("Keisei 形勢", "bold")
    title.append(
        f"  {facts.where}  seed {facts.seed}  {facts.parameters:,} parameters  {facts.device}", "dim"
    )
    remaining = progress.remaining_seconds()
    times = f"{duration(progress.elapsed_seconds())} gone, {duration(remaining)} to go"
    label = f" {progress.fraction() * 100:5.1f} %  {times}"
    length = max(width - cell_len(label), 8)
    done = round(progress.fraction() * length)
    line = Text(no_wrap=True, overflow="crop")
    line.append("━" * done, "green")
    line.append("━" * (length - done), "bright_black")
    line.append(label)
    speed = Text(no_wrap=True, overflow="ellipsis")
    speed.append(f"{progress.step:,}", "bold")
    speed.append(f" of {facts.total_steps:,} moves   ")
    speed.append(quantity(progress.last("speed/steps_per_second")), "bold green")
    speed.append(" moves/s ")
    if width >= 110:
        speed.append(_curve(progress.history("speed/steps_per_second"), 20, 1)[0] + " ", "green")
    speed.append("  ")
    speed.append(quantity(progress.last("speed/games_per_second")), "bold green")
    speed.append(" games/s   ")
    speed.append(f"{quantity(progress.last('progress/games'))} games")
    if width >= 110:
        speed.append(f"   learning rate {number(progress.last('schedule/learning_rate'))}", "dim")
    return Group(title, line, speed, *([""] if height >= ROOMY else []))


def _curves(progress: Progress, width: int, rows: int) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=11, no_wrap=True)
    grid.add_column(width=8, justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    for label, name, color in CURVES:
        other_label, other = SEARCH_CURVES.get(name, (label, name))
        if progress.recorded(name, other) != name:
            label, name = other_label, other
        curve = _curve(progress.history(name), width - 21, rows)
        value = number(progress.last(name))
        grid.add_row(label, Text(value, "bold"), Text("\n".join(curve), color))
    return grid


def _results(progress: Progress, width: int, rows: int) -> RenderableType:
    counts = progress.game_counts()
    lines = [_stacked([(counts.black_wins, BLACK), (counts.white_wins, WHITE), (counts.draws, DRAW)], width)]
    words = Text(no_wrap=True, overflow="crop")
    for name, count, color in (
        ("☗", counts.black_wins, BLACK),
        ("☖", counts.white_wins, WHITE),
        ("draws", counts.draws, DRAW),
    ):
        words.append(f"{name} ", color)
        words.append(f"{percent(counts.share(count))}  ", "bold")
    words.append(f"of {counts.finished:,}", "dim")
    lines.append(words)
    curve_rows = min(max((rows - 2 - len(counts.reasons)) // 2, 1), 6)
    lines.append(_labelled_curve("draws", progress.draw_rates(), percent, DRAW, width, curve_rows))
    lines.append(
        _labelled_curve("plies", progress.history("games/length"), quantity, "blue", width, curve_rows)
    )
    room = rows - 2 - 2 * curve_rows
    common = sorted(counts.reasons.items(), key=lambda item: -item[1])
    for reason, count in [item for item in common if item[1]][:room]:
        share = counts.share(count)
        line = Text(f"{reason:<15} {percent(share):>5} ", no_wrap=True, overflow="crop")
        line.append(bar(share, max(width - 22, 0)), "blue")
        lines.append(line)
    return Group(*lines)


def _curve(values: Sequence[float], width: int, rows: int) -> list[str]:
    """Return a sparkline with one update per column, but at least CURVE_UPDATES updates."""
    return sparkline(values[-max(width, CURVE_UPDATES) :], width, rows)


def _labelled_curve(
    label: str, values: Sequence[float], text: Callable[[float], str], color: str, width: int, rows: int
) -> Text:
    last = next((value for value in reversed(values) if math.isfinite(value)), math.nan)
    head = f"{label:<6}{text(last):>5} "
    line = Text(no_wrap=True, overflow="crop")
    for index, row in enumerate(_curve(values, width - len(head), rows)):
        line.append(head if index == 0 else "\n" + " " * len(head), "bold")
        line.append(row, color)
    return line


def _stacked(parts: Sequence[tuple[int, str]], width: int) -> Text:
    """Return one bar of the given width, split into colours in proportion to the counts."""
    total = sum(count for count, _ in parts)
    line = Text(no_wrap=True, overflow="crop")
    before = 0
    for count, color in parts:
        begin, before = before, before + count
        if total:
            line.append("█" * (round(before / total * width) - round(begin / total * width)), color)
    return line


def _phases(progress: Progress, width: int, rows: int) -> RenderableType:
    shares = sorted(progress.phases().items(), key=lambda item: -item[1])
    names = max(len(phase) for phase, _ in shares) + 1
    lines = []
    for phase, share in shares[:rows]:
        line = Text(f"{phase:<{names}}{percent(share):>5} ", no_wrap=True, overflow="crop")
        line.append(bar(share, max(width - names - 6, 0)), "cyan")
        lines.append(line)
    return Group(*lines)


def _evaluations(progress: Progress, width: int) -> RenderableType:
    if not progress.evaluations:
        return Text("none yet", "dim")
    lines = []
    for opponent, matches in progress.evaluations.items():
        now = matches[-1]
        line = Text(f"{opponent:<7}", no_wrap=True, overflow="crop")
        line.append(f"{percent(now.score):>6}", "bold green")
        line.append(f"  at move {now.step:,}", "dim")
        before = f"before {percent(matches[-2].score)}; " if len(matches) > 1 else ""
        details = f"{before}draws {percent(now.draws)}, {quantity(now.length)} plies"
        lines += [line, Text(bar(now.score, width), "green"), Text(details, "dim", no_wrap=True)]
    return Group(*lines)


def _queue(progress: Progress) -> str:
    """Return the title of the workers' panel: how experience flows in."""
    last = progress.last
    return ", ".join(
        (
            f"workers {whole(last('parallel/active_workers'))}/{len(progress.workers)}",
            f"queue {quantity(last('parallel/queue_depth'))}",
            f"lag {quantity(last('parallel/lag_mean'))} (max {whole(last('parallel/lag_max'))})",
            f"discarded {short_count(last('parallel/steps_discarded'))}",
        )
    )


def _weights(progress: Progress, width: int) -> str:
    """Return the panel's lower border: moves the learner had to play, weights, how workers spend their time.

    Time shares are listed largest first, as many as fit.
    """
    last = progress.last
    serial = last("parallel/serial_steps")
    text = ", ".join(
        (
            *([f"learner played {whole(serial)}"] if serial > 0 else []),
            f"weights v{whole(last('parallel/weights_version'))}",
            f"sync {quantity(last('parallel/sync_milliseconds'))} ms",
            data_size(last("parallel/sync_bytes")),
        )
    )
    for phase, share in progress.worker_shares().items():
        more = f", {phase} {percent(share)}"
        if len(text) + len(more) > width:
            break
        text += more
    return text


def _workers(workers: Sequence[WorkerStatus], width: int, rows: int) -> RenderableType:
    """Return a line per worker; if there are too many, the first ones and a line for all the others."""
    shown = workers if len(workers) <= rows else workers[: rows - 1]
    table = [_worker_fields(status) for status in shown]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    while len(widths) > 3 and sum(widths) + len(widths) + 4 > width:  # number, state and share always stay
        widths.pop()
    bar_width = min(max(width - sum(widths) - len(widths), 0), WORKER_BAR)
    lines = []
    for status, fields in zip(shown, table, strict=True):
        worker, state, *figures = (
            f"{field:>{field_width}}" for field, field_width in zip(fields, widths, strict=False)
        )
        line = Text(f"{worker} ", no_wrap=True, overflow="crop")
        line.append(f"{state} ", STATE_COLORS[status.state])
        line.append(f"{bar(status.utilization, bar_width):<{bar_width}} ", "green")
        line.append(" ".join(figures))
        lines.append(line)
    if len(shown) < len(workers):
        lines.append(_other_workers(workers[len(shown) :], alone=not shown))
    return Group(*lines)


def _other_workers(workers: Sequence[WorkerStatus], alone: bool) -> Text:
    states = Counter(status.state for status in workers)
    words = ", ".join(f"{times} {state}" for state, times in states.most_common())
    head = f"{len(workers)} workers" if alone else f"… and {len(workers)} more"
    return Text(f"{head}: {words}", "dim", no_wrap=True, overflow="ellipsis")


def _worker_fields(status: WorkerStatus) -> list[str]:
    """Return a worker's fields shown beside its bar, least important last."""
    return [
        f"{status.worker}",
        f"{status.state:<{STATE_WIDTH}}",
        percent(status.utilization),
        f"{short_count(status.steps)} moves",
        f"{short_count(status.games)} games",
        f"v{status.weights_version}",
        f"{status.restarts} restarts",
        data_size(status.memory_bytes) if status.memory_bytes else "–",
    ]


def _panel(
    title: str, content: RenderableType, width: int, height: int, subtitle: str | None = None
) -> Panel:
    return Panel(
        content,
        title=title,
        title_align="left",
        subtitle=subtitle,
        subtitle_align="left",
        width=width,
        height=height,
        box=box.ROUNDED,
        border_style="dim",
    )


def _beside(*parts: RenderableType) -> Table:
    grid = Table.grid()
    for _ in parts:
        grid.add_column()
    grid.add_row(*parts)
    return grid
