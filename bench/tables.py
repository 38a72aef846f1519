"""Results in words: Markdown tables of one run, or of several runs of the same contests side by side."""

import statistics
from collections.abc import Sequence

from contest import Result, Row, ratios
from results import Report

BUSY_CORES = 0.2  # used by other programs


def number(value: float) -> str:
    """Return a figure with three significant digits and thousands separators."""
    if abs(value) >= 999.5:
        digits = len(str(round(abs(value)))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"


def head_to_head(row: Row, reference: Row, better: str) -> float | None:
    """Return how many times as good the reference is as the row: the median over the rounds."""
    found = ratios(row, reference)
    median = statistics.median(found) if found else 0.0
    if median == 0 or reference.median == 0:  # nothing is so many times as good as no score
        return None
    return 1 / median if better == "higher" else median


def table(runs: Sequence[Result]) -> str:
    """Return the Markdown table of a contest, best row first, from one run of it or several.

    The figure is the median; with several runs, of their medians. The spread is over the rounds of one run,
    or over the medians of several. The reference is the first contender, wherever it stands in the table.
    """
    first = runs[0]
    names = [row.name for row in first.rows]
    extras = _columns([extra for row in first.rows for turn in row.turns[:1] for extra in turn.extra])
    facts = _columns([fact for row in first.rows for turn in row.turns[:1] for fact in turn.facts])
    notes = any(row.note or row.failed for row in first.rows)
    head = [
        "",
        first.unit,
        "reference is ×",
        "rounds" if len(runs) == 1 else f"{len(runs)} runs",
        "CPU s : wall s",
    ]
    head += [*extras, *facts, *(["note"] if notes else [])]
    lines = [f"| {' | '.join(head)} |", f"|---{'|---:' * 4}{'|---' * (len(head) - 5)}|"]
    lines += [
        f"| {' | '.join(_cells(runs, name, names[0], extras, facts, notes))} |"
        for name in sorted(names, key=lambda name: _order(runs, name))
    ]
    return "\n".join(lines)


def _columns(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _rows(runs: Sequence[Result], name: str) -> list[Row]:
    return [row for run in runs for row in run.rows if row.name == name]


def _median(rows: Sequence[Row]) -> float | None:
    found = [row.median for row in rows if row.median is not None]
    return statistics.median(found) if found else None


def _order(runs: Sequence[Result], name: str) -> float:
    """Return a sort key: best first, those without a figure last."""
    median = _median(_rows(runs, name))
    if median is None:
        return float("inf")
    return -median if runs[0].better == "higher" else median


def _cells(
    runs: Sequence[Result], name: str, reference: str, extras: list[str], facts: list[str], notes: bool
) -> list[str]:
    rows = _rows(runs, name)
    median = _median(rows)
    shown = f"**{name}**" if not rows[0].peer else name
    if median is None:
        cells = [shown, "–", "–", "–", "–"]
    else:
        shown_times = times(runs, name)
        spread = rows[0].values if len(runs) == 1 else [row.median for row in rows if row.median is not None]
        cells = [
            shown,
            number(median),
            "reference" if name == reference else "" if shown_times is None else number(shown_times),
            f"{number(min(spread))}–{number(max(spread))}",
            _cpu(rows),
        ]
    turns = [turn for row in rows for turn in row.turns]
    for extra in extras:
        values = [turn.extra[extra] for turn in turns if extra in turn.extra]
        cells.append(number(statistics.median(values)) if values else "")
    cells += [
        "; ".join(_columns([turn.facts[fact] for turn in turns if fact in turn.facts])) for fact in facts
    ]
    if notes:
        cells.append((rows[0].failed and f"failed: {rows[0].failed}") or rows[0].note)
    return [cell.replace("|", "\\|") for cell in cells]


def times(runs: Sequence[Result], name: str) -> float | None:
    """Return how many times as good the reference, the first row, is as the row: the median of the runs."""
    found = [one for run in runs if (one := _times(run, name, runs[0].rows[0].name)) is not None]
    return statistics.median(found) if found else None


def _times(run: Result, name: str, reference: str) -> float | None:
    found = {row.name: row for row in run.rows}
    if name not in found or reference not in found:
        return None
    return head_to_head(found[name], found[reference], run.better)


def _cpu(rows: Sequence[Row]) -> str:
    """Return median CPU and wall seconds of a turn; nothing if CPU seconds were not counted."""
    turns = [turn for row in rows for turn in row.turns]
    cpu = [turn.cpu_seconds for turn in turns if turn.cpu_seconds is not None]
    if not cpu:
        return ""
    return f"{number(statistics.median(cpu))} : {number(statistics.median(t.wall_seconds for t in turns))}"


def place(runs: Sequence[Result]) -> str:
    """Return in words where our best row stands among the peers; nothing where there are no peers.

    A row that does only a part of the work takes no place.
    """
    ranked = sorted(
        (row.name for row in runs[0].rows if not row.partial), key=lambda name: _order(runs, name)
    )
    peers = {row.name for row in runs[0].rows if row.peer}
    timed = [name for name in ranked if _median(_rows(runs, name)) is not None]
    if not peers & set(ranked) or len(peers) == len(ranked):
        return ""
    ours = next((name for name in timed if name not in peers), None)
    if ours is None:
        return "Keisei has no figure here."
    key = _order(runs, ours)
    ahead = sum(_order(runs, name) < key for name in timed if name in peers)
    level = sum(_order(runs, name) == key for name in timed if name in peers)
    of = len(peers) + 1
    rows = "1 peer row" if of == 2 else f"{of - 1} peer rows"
    tied = f", tied with {level}" if level else ""
    return f"Keisei's best row is number {ahead + 1} among {of} (itself and {rows}){tied}."


def conditions(reports: Sequence[Report]) -> str:
    """Return machine, versions, commit and load of the runs, as Markdown."""
    first = reports[0]
    loads = "; ".join(f"{one.load_start[0]:g} → {(one.load_end or one.load_start)[0]:g}" for one in reports)
    dirty = " with uncommitted changes" if any(one.dirty for one in reports) else ""
    versions = ", ".join(f"{name} {version}" for name, version in first.packages.items())
    missing = "; ".join(first.missing) or "none"
    runs = "1 run" if len(reports) == 1 else f"{len(reports)} runs"
    settings = ", ".join(f"{name} {value}" for name, value in first.settings.items() if value is not None)
    machine = first.machine
    unfinished = not all(one.complete for one in reports)
    busy = any(one.others > BUSY_CORES for one in reports)
    return "\n".join(
        [
            f"- command: `{first.command}`, {'; '.join(one.date for one in reports)}",
            f"- {runs}; settings: {settings}",
            f"- commit: {', '.join(dict.fromkeys(one.commit for one in reports))}{dirty}",
            f"- machine: {machine['cpu']}, {machine['cores']} cores, {machine['os']}",
            f"- load average at start → end: {loads}",
            f"- {machine['python']}, {machine['compiler']}, fairy-stockfish: {machine['fairy-stockfish']}",
            f"- packages: {versions}",
            f"- peers that were not installed: {missing}",
            *(["- **busy machine: other programs ran too; trust the ratios**"] if busy else []),
            *(["- **interrupted: not all contests ran**"] if unfinished else []),
        ]
    )


EXPLAINED = (
    "Contenders take turns, one after the other in every round; a figure is the median. “Reference is ×”: "
    "how many times as good the reference is as this row, the median of the ratios within a round. CPU "
    "seconds are those of all processes of a contender in a turn. **Bold** rows are Keisei's."
)


def page(reports: Sequence[Report]) -> str:
    """Return the whole report as Markdown, without a title."""
    parts = [EXPLAINED, conditions(reports)]
    for contest in reports[0].contests:
        runs = [found for one in reports for found in one.contests if found.key == contest.key]
        if any(row.turns or row.failed for row in contest.rows):
            parts += [f"### {contest.title} ({contest.key})", table(runs)]
            parts += [words] if (words := place(runs)) else []
    return "\n\n".join(parts) + "\n"
