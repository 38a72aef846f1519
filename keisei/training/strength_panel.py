"""What the dashboard shows of the evaluations: the rating, its curve, the score against every opponent."""

import math

from rich.console import Group, RenderableType
from rich.text import Text

from keisei.training.number_text import bar, elo, percent, quantity, sparkline, stretched, whole
from keisei.training.run_progress import Evaluation, Progress

LEAST_BAR = 10  # columns, for details to stand beside it
LEAST_CURVE = 3  # rows, for details to have their own
AXIS = 6  # columns of the highest and lowest rating


def strength_title(progress: Progress) -> str:
    """Return the panel's title, with the step of the latest evaluation."""
    return f"strength at move {_latest(progress):,}" if progress.evaluations else "strength"


def strength(progress: Progress, width: int, rows: int) -> RenderableType:
    """Return so many rows: the rating and its curve, then the opponents; the curve has what they leave."""
    if not progress.evaluations:
        return Text(_first_evaluation(progress), "dim")
    rated = [_rating(progress, width)] if progress.ratings else []
    opponents = _opponents(progress, width, rows - len(rated))
    curve = _curve(progress, width, rows - len(rated) - sum(line.plain.count("\n") + 1 for line in opponents))
    return Group(*rated, *curve, *opponents)


def _first_evaluation(progress: Progress) -> str:
    """Return when there will be something to see, in the words that fit a narrow panel."""
    every = progress.facts.evaluate_every
    if not every:
        return "no evaluation yet"
    at = min((progress.facts.start_step // every + 1) * every, progress.facts.total_steps)
    return f"no evaluation before move {at:,}"


def _latest(progress: Progress) -> int:
    return max(matches[-1].step for matches in progress.evaluations.values())


def _rating(progress: Progress, width: int) -> Text:
    now = progress.ratings[-1]
    line = Text(elo(now.elo, now.low, now.high), "bold green", no_wrap=True, overflow="crop")
    before = f"  before {whole(progress.ratings[-2].elo)}" if len(progress.ratings) > 1 else ""
    if len(line) + len(before) <= width:
        line.append(before, "not bold dim")
    return line


def _curve(progress: Progress, width: int, rows: int) -> list[Text]:
    """Return the ratings since the start of this process over the whole width; an unbounded one is a gap."""
    if rows < 1 or not progress.ratings:
        return []
    values = [rated.elo if math.isfinite(rated.elo) else math.nan for rated in progress.ratings]
    finite = [value for value in values if math.isfinite(value)]
    if rows == 1 or not finite or width < 4 * AXIS:
        return [Text(row, "cyan", no_wrap=True) for row in sparkline(stretched(values, width), width, rows)]
    columns = width - AXIS - 1
    labels = {0: whole(max(finite)), rows - 1: whole(min(finite))}
    lines = []
    for index, row in enumerate(sparkline(stretched(values, columns), columns, rows)):
        line = Text(f"{labels.get(index, ''):>{AXIS}} ", "dim", no_wrap=True, overflow="crop")
        line.append(row, "not dim cyan")  # unlike the bars below it
        lines.append(line)
    return lines


def _opponents(progress: Progress, width: int, rows: int) -> list[Text]:
    """Return the score against each opponent: with details if there is room, several to a row if little."""
    latest = {opponent: matches[-1] for opponent, matches in progress.evaluations.items()}
    if len(latest) > rows:
        return _crowded(latest, width, max(rows, 1))
    names = max(map(len, latest)) + 1
    details = {name: _details(matches, _latest(progress)) for name, matches in progress.evaluations.items()}
    longest = max(map(len, details.values()))
    beside = names + 7 + LEAST_BAR + longest <= width
    below = not beside and 2 * len(latest) + LEAST_CURVE <= rows
    bar_width = max(width - names - 6 - (longest + 1 if beside else 0), 0)
    lines = []
    for name, match in latest.items():
        line = Text(f"{name:<{names}}", no_wrap=True, overflow="crop")
        line.append(f"{percent(match.score):>5} ", "bold green")
        line.append(f"{bar(match.score, bar_width):<{bar_width}}", "green")
        if beside or below:
            line.append((" " if beside else "\n ") + details[name], "dim")
        lines.append(line)
    return lines


def _crowded(latest: dict[str, Evaluation], width: int, rows: int) -> list[Text]:
    """Return names and scores alone, in as many columns as are needed."""
    texts = [f"{name} {percent(match.score)}" for name, match in latest.items()]
    columns = -(-len(texts) // rows)
    cell = max(width // columns, 1)
    return [
        Text("".join(f"{text:<{cell}}" for text in texts[begin : begin + columns]).rstrip(), no_wrap=True)
        for begin in range(0, len(texts), columns)
    ]


def _details(matches: list[Evaluation], latest: int) -> str:
    now = matches[-1]
    parts = [
        *([f"at move {now.step:,}"] if now.step != latest else []),
        *([f"before {percent(matches[-2].score)}"] if len(matches) > 1 else []),
        f"draws {percent(now.draws)}",
        f"{quantity(now.length)} plies",
    ]
    return ", ".join(parts)
