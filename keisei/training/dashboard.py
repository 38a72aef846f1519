"""The dashboard of a run: progress, strength, curves, games, times, workers, boards and notices.

A pure function of the progress and the terminal size.
"""

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence

from rich import box
from rich.align import Align
from rich.cells import cell_len, chop_cells
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
from keisei.training.panel_layout import BOARD_HEIGHT, BOARD_WIDTH, LOWER_ROWS, ROOMY, PanelLayout
from keisei.training.parallel.worker_status import State, WorkerStatus
from keisei.training.run_progress import WINDOW, Progress
from keisei.training.strength_panel import strength, strength_title

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
CURVE_UPDATES = 40
NOTICE_INDENT = 10  # of a notice's further lines, below its text: the time is before it
CUT = "… (see train.log)"
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


def draw(
    progress: Progress, boards: Sequence[str], notices: Sequence[str], width: int, height: int
) -> RenderableType:
    """Return the dashboard for a terminal of this size, at least one row shorter than it."""
    plan = PanelLayout.of(width, height, len(progress.workers))
    grid = plan.grid(len(boards))
    left = width - grid[0] * BOARD_WIDTH
    below_boards = plan.middle_rows - grid[1] * BOARD_HEIGHT if grid[1] else 0
    time_rows = min(below_boards, len(progress.phases()) + 2) if below_boards >= LOWER_ROWS else 0
    middle: RenderableType = Group(*_panels(progress, plan, left, with_times=not time_rows))
    if grid[1]:
        column = [_boards(boards, grid, plan.middle_rows - time_rows)]
        if time_rows:
            column.append(_times(progress, width - left, time_rows))
        middle = _beside(middle, Group(*column))
    hint = progress.facts.how_to_stop
    # Without a panel to carry it, its beginning is in the first row.
    parts = [_head(progress, width, height, "" if plan.notice_rows else hint.partition(";")[0]), middle]
    if plan.notice_rows:
        text = _notices(notices, width - 4, plan.notice_rows)
        parts.append(_panel("notices", text, width, plan.notice_rows + 2, hint))
    return Group(*parts)


def _panels(progress: Progress, plan: PanelLayout, width: int, *, with_times: bool) -> list[RenderableType]:
    """Return the panels beside the boards: strength and learning, games and times, workers."""
    half = width // 2
    inner = plan.upper_rows - 2
    rows: list[RenderableType] = [
        _beside(
            _panel(strength_title(progress), strength(progress, half - 4, inner), half, plan.upper_rows),
            _panel("learning", _curves(progress, width - half - 4, inner), width - half, plan.upper_rows),
        )
    ]
    if plan.lower_rows:
        games = half if with_times else width
        title = f"games of {min(len(progress.updates), WINDOW)} updates"
        lower = [_panel(title, _games(progress, games - 4, plan.lower_rows - 2), games, plan.lower_rows)]
        if with_times:
            lower.append(_times(progress, width - half, plan.lower_rows))
        rows.append(_beside(*lower))
    if plan.worker_rows:
        lines = _workers(progress.workers, width - 4, plan.worker_rows - 2)
        rows.append(_panel(_queue(progress), lines, width, plan.worker_rows, _weights(progress, width - 6)))
    return rows


def _boards(boards: Sequence[str], grid: tuple[int, int], rows: int) -> RenderableType:
    """Return a grid of boards that fills so many rows."""
    columns, lines = grid
    parts = []
    for line in range(lines):
        height = rows // lines + (line < rows % lines)
        parts.append(
            _beside(
                *(
                    _panel(
                        f"game {number + 1}",
                        Align.center(Text(boards[number].rstrip("\n")), vertical="middle"),
                        BOARD_WIDTH,
                        height,
                    )
                    for number in range(line * columns, (line + 1) * columns)
                )
            )
        )
    return Group(*parts)


def _times(progress: Progress, width: int, rows: int) -> Panel:
    return _panel("where the time goes", _phases(progress, width - 4, rows - 2), width, rows)


def _notices(notices: Sequence[str], width: int, rows: int) -> Text:
    """Return the latest notices that fit as a whole; of one that is too long, the beginning."""
    lines: list[str] = []
    for notice in reversed(notices):
        pieces = _wrapped(notice, width)
        if not lines and len(pieces) > rows:
            pieces = [*pieces[: rows - 1], f"{pieces[rows - 1][: max(width - len(CUT), 0)].rstrip()}{CUT}"]
        if len(lines) + len(pieces) > rows:
            break
        lines = [*pieces, *lines]
    return Text("\n".join(lines), no_wrap=True, overflow="crop")


def _wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines of so many cells, broken between words where possible."""
    indent = " " * min(NOTICE_INDENT, width // 4)
    lines = textwrap.wrap(text, max(width, 1), subsequent_indent=indent, break_on_hyphens=False)
    return [piece for line in lines for piece in chop_cells(line, max(width, 2))]


def _head(progress: Progress, width: int, height: int, hint: str) -> RenderableType:
    facts = progress.facts
    title = Text(no_wrap=True, overflow="ellipsis")
    title.append("Keisei 形勢", "bold")
    if hint:
        title.append(f"  {hint}")
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
    tall, taller = divmod(rows, len(CURVES))
    for index, (label, name, color) in enumerate(CURVES):
        other_label, other = SEARCH_CURVES.get(name, (label, name))
        if progress.recorded(name, other) != name:
            label, name = other_label, other
        curve = _curve(progress.history(name), width - 21, tall + (index < taller))
        value = number(progress.last(name))
        grid.add_row(label, Text(value, "bold"), Text("\n".join(curve), color))
    return grid


def _games(progress: Progress, width: int, rows: int) -> RenderableType:
    """Return the results of self-play: a bar if there is room, shares, curves, and the commonest reasons."""
    counts = progress.game_counts()
    words = Text(no_wrap=True, overflow="crop")
    for name, count, color in (
        ("☗", counts.black_wins, BLACK),
        ("☖", counts.white_wins, WHITE),
        ("draws", counts.draws, DRAW),
    ):
        words.append(f"{name} ", color)
        words.append(f"{percent(counts.share(count))}  ", "bold")
    words.append(f"of {counts.finished:,}", "dim")
    lines = [words]
    if rows >= 4:
        parts = [(counts.black_wins, BLACK), (counts.white_wins, WHITE), (counts.draws, DRAW)]
        lines.insert(0, _stacked(parts, width))
    plies = progress.history("games/length")
    curves: list[tuple[str, list[float], Callable[[float], str], str]] = [("plies", plies, quantity, "blue")]
    if rows >= 5:
        curves.insert(0, ("draws", progress.draw_rates(), percent, DRAW))
    common = sorted((item for item in counts.reasons.items() if item[1]), key=lambda item: -item[1])
    curve_rows = max((rows - len(lines) - len(common)) // len(curves), 1)
    lines += [_labelled_curve(*curve, width, curve_rows) for curve in curves]
    room = rows - len(lines) - len(curves) * (curve_rows - 1)
    for reason, count in common[: max(room, 0)]:
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
