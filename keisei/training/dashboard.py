"""The picture of a run in a terminal: bar, curves, results, phases, a board, evaluations, notices.

A function of what is known and of the size of the terminal. What does not fit is left out, the board first;
what is left over in height goes to taller curves.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.align import Align
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from keisei.training.progress import WINDOW, Progress
from keisei.training.text_figures import bar, duration, number, percent, quantity, sparkline

CURVES = (
    ("entropy", "policy/entropy", "magenta"),
    ("policy loss", "loss/policy", "cyan"),
    ("value loss", "loss/value", "blue"),
    ("KL", "policy/approx_kl", "yellow"),
    ("clipped", "policy/clip_fraction", "red"),
    ("explained", "value/explained_variance", "green"),
)
BLACK, WHITE, DRAW = "blue", "white", "bright_black"
BOARD_WIDTH, BOARD_HEIGHT = 37, 18  # of its panel: 33 columns of board, 16 rows with both hands
CURVE_UPDATES = 40
ROOMY = 30  # rows from which on a blank one is spent
NOTICES = 5


@dataclass(frozen=True)
class Plan:
    """How a size is used: rows of a curve, of the lower panels, of the notices; with a board or without."""

    curve_rows: int
    lower_rows: int
    notice_rows: int
    board: bool

    @classmethod
    def of(cls, width: int, height: int) -> "Plan":
        """Return the plan for a terminal, of which the last row stays free for the cursor."""
        room = height - 1 - (4 if height >= ROOMY else 3)
        notices = min(NOTICES, max(room - 2 * 8 - 2, 0))
        room -= notices + 2 if notices else 0
        lower = min(max(room - 8, 0), 10)
        lower = lower if lower >= 5 else 0  # two borders and three rows at least
        curve_rows = min(max((room - lower - 2) // len(CURVES), 1), 6)
        upper = curve_rows * len(CURVES) + 2
        fits = width >= 80 + BOARD_WIDTH and upper + lower >= BOARD_HEIGHT
        board = fits and notices == NOTICES  # the first thing to go
        return cls(curve_rows, lower, notices, board)


def draw(
    progress: Progress, board: str | None, notices: Sequence[str], width: int, height: int
) -> RenderableType:
    """Return the picture for a terminal of this size, at least one row less high than that."""
    plan = Plan.of(width, height)
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
    middle: RenderableType = Group(*rows)
    if with_board and board is not None:
        text = Align.center(Text(board.rstrip("\n")), vertical="middle")
        middle = _beside(middle, _panel("a game", text, BOARD_WIDTH, upper_rows + plan.lower_rows))
    parts = [_head(progress, width, height), middle]
    if plan.notice_rows:
        lines = Text("\n".join(notices[-plan.notice_rows :]), no_wrap=True, overflow="ellipsis")
        parts.append(_panel("notices", lines, width, plan.notice_rows + 2))
    return Group(*parts)


def _head(progress: Progress, width: int, height: int) -> RenderableType:
    facts = progress.facts
    title = Text(no_wrap=True, overflow="ellipsis")
    title.append("Keisei 形勢", "bold")
    title.append(
        f"  {facts.run_path}  seed {facts.seed}  {facts.parameters:,} parameters  {facts.device}", "dim"
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
        curve = _curve(progress.history(name), width - 21, rows)
        value = number(progress.last(name))
        grid.add_row(label, Text(value, "bold"), Text("\n".join(curve), color))
    return grid


def _results(progress: Progress, width: int, rows: int) -> RenderableType:
    results = progress.results()
    lines = [
        _stacked([(results.black_wins, BLACK), (results.white_wins, WHITE), (results.draws, DRAW)], width)
    ]
    words = Text(no_wrap=True, overflow="crop")
    for name, count, color in (
        ("☗", results.black_wins, BLACK),
        ("☖", results.white_wins, WHITE),
        ("draws", results.draws, DRAW),
    ):
        words.append(f"{name} ", color)
        words.append(f"{percent(results.share(count))}  ", "bold")
    words.append(f"of {results.finished:,}", "dim")
    lines.append(words)
    curve_rows = min(max((rows - 2 - len(results.reasons)) // 2, 1), 6)
    lines.append(_labelled_curve("draws", progress.draw_rates(), percent, DRAW, width, curve_rows))
    lines.append(
        _labelled_curve("plies", progress.history("games/length"), quantity, "blue", width, curve_rows)
    )
    room = rows - 2 - 2 * curve_rows
    common = sorted(results.reasons.items(), key=lambda item: -item[1])
    for reason, count in [item for item in common if item[1]][:room]:
        share = results.share(count)
        line = Text(f"{reason:<15} {percent(share):>5} ", no_wrap=True, overflow="crop")
        line.append(bar(share, max(width - 22, 0)), "blue")
        lines.append(line)
    return Group(*lines)


def _curve(values: Sequence[float], width: int, rows: int) -> list[str]:
    """Return a sparkline of as many updates as there are columns, but never fewer than CURVE_UPDATES."""
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
    """Return one bar of several colours, as long as the width, by the shares of the counts."""
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
    lines = []
    for phase, share in shares[:rows]:
        line = Text(f"{phase:<11}{percent(share):>5} ", no_wrap=True, overflow="crop")
        line.append(bar(share, max(width - 17, 0)), "cyan")
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
        before = f"before {percent(matches[0].score)}; " if len(matches) > 1 else ""
        details = f"{before}draws {percent(now.draws)}, {quantity(now.length)} plies"
        lines += [line, Text(bar(now.score, width), "green"), Text(details, "dim", no_wrap=True)]
    return Group(*lines)


def _panel(title: str, content: RenderableType, width: int, height: int) -> Panel:
    return Panel(
        content,
        title=title,
        title_align="left",
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
