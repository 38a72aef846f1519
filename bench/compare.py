"""python bench/compare.py OLD.json [NEW.json]: what became faster or slower between two results of make
bench.

A row is compared by its ratio to the reference, the first contender of its contest, within each round: that
says the same on a busy machine and a quiet one. A peer's row is turned round: it is the reference that became
faster or slower than that peer. If machine, versions and settings are the same in both files, the figure
itself must have changed too: it is no regression if only the reference, or the peer, became faster. A
reference, and a row whose reference scored 0, is compared by its own figure, and only then. Versions are
those of python, torch, numpy and gymnasium, not of keisei and its peers.

A change counts if it is beyond the noise: half of the range of the old run's rounds plus half of the new
one's, relative to their medians, and at least 5 %. With fewer than three rounds in a file there is no
telling. Exit code 1: a regression; 2: a file that cannot be read.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contest import Result, Row, ratios
from results import BadResultError, Report, read
from tables import number

FLOOR = 0.05  # a smaller change is never reported
ROUNDS = 3
NEW = Path("build/bench/bench.json")
VERSIONS = ("torch", "numpy", "gymnasium")  # of the packages, what our own figures depend on


@dataclass(frozen=True)
class Change:
    """One row in both files. verdict: slower, faster, same, unknown, missing or new.

    change: how many times as good the new figure is as the old one. noise: a change counts if it is above
    1 + noise, or below 1 / (1 + noise).
    """

    contest: str
    row: str
    verdict: str
    old: float | None = None
    new: float | None = None
    change: float | None = None
    noise: float | None = None
    why: str = ""


def half_range(figures: Sequence[float]) -> float:
    """Return half of the range of the rounds, relative to their median."""
    half, median = (max(figures) - min(figures)) / 2, statistics.median(figures)
    return half / median if median else math.inf if half else 0.0


def times_as_good(old: float, new: float, better: str) -> float:
    """Return how many times as good the new figure is, neither being negative."""
    worse, good = (old, new) if better == "higher" else (new, old)
    return good / worse if worse else math.inf if good else 1.0


def judged(contest: str, row: str, old: Sequence[float], new: Sequence[float], better: str) -> Change:
    """Return whether the figures of a row changed beyond the noise."""
    if not old or not new:
        return Change(contest, row, "unknown", why="no figures in one of the files")
    before, after = statistics.median(old), statistics.median(new)
    change = times_as_good(before, after, better)
    noise = max(FLOOR, half_range(old) + half_range(new))
    if min(len(old), len(new)) < ROUNDS:
        return Change(contest, row, "unknown", before, after, change, noise, f"fewer than {ROUNDS} rounds")
    # A change to half the speed is as large as one to double.
    verdict = "faster" if change > 1 + noise else "slower" if change < 1 / (1 + noise) else "same"
    return Change(contest, row, verdict, before, after, change, noise)


def compared(old: Report, new: Report) -> list[Change]:
    """Return the changes, contest by contest."""
    comparable = not differences(old, new)
    contests = {contest.key: contest for contest in new.contests}
    changes: list[Change] = []
    for before in old.contests:
        after = contests.pop(before.key, None)
        if after is None:
            changes.append(Change(before.key, "", "missing", why="the contest is not in the new file"))
        else:
            changes += _compared_contest(before, after, comparable)
    return changes + [Change(key, "", "new", why="the contest is not in the old file") for key in contests]


def _compared_contest(old: Result, new: Result, comparable: bool) -> list[Change]:
    rows, changes = {row.name: row for row in new.rows}, []
    for index, before in enumerate(old.rows):
        after = rows.pop(before.name, None)
        if after is None:
            changes.append(Change(old.key, before.name, "missing", why="the row is not in the new file"))
        elif before.peer:
            name = f"{old.rows[0].name}, against {before.name}"
            figures = ratios(old.rows[0], before), ratios(new.rows[0], after)
            change = judged(old.key, name, *figures, old.better)
            own = _own(old, old.rows[0], new.rows[0], comparable)
            changes.append(_confirmed(change, own, comparable))
        elif index == 0 or old.rows[0].name != new.rows[0].name:
            changes.append(_own(old, before, after, comparable))
        else:
            figures = ratios(before, old.rows[0]), ratios(after, new.rows[0])
            own = _own(old, before, after, comparable)
            change = judged(old.key, before.name, *figures, old.better) if all(figures) else own
            changes.append(_confirmed(change, own, comparable))
    return changes + [Change(old.key, name, "new", why="the row is not in the old file") for name in rows]


def _own(old: Result, before: Row, after: Row, comparable: bool) -> Change:
    """Return how a row's own figure changed."""
    if not comparable:
        why = "another machine, other versions or settings: its own figure says nothing"
        return Change(old.key, before.name, "unknown", before.median, after.median, why=why)
    return judged(old.key, before.name, before.values, after.values, old.better)


def _confirmed(change: Change, own: Change, comparable: bool) -> Change:
    """Return a change of a ratio as it is, or as none if the figure itself did not change that way."""
    if not comparable or change.verdict not in {"slower", "faster"} or own.verdict == change.verdict:
        return change
    what = f"as a ratio {change.verdict}, but not its own figure"
    return replace(change, verdict="same", why=what)


def differences(old: Report, new: Report) -> list[str]:
    """Return what differs in machine, versions and settings, as far as our own figures depend on it."""
    machine = [name for name in dict.fromkeys([*old.machine, *new.machine]) if name != "fairy-stockfish"]
    kinds = (
        ("", machine, old.machine, new.machine),
        ("version of ", VERSIONS, old.packages, new.packages),
        ("setting ", dict.fromkeys([*old.settings, *new.settings]), old.settings, new.settings),
    )
    return [
        f"{what}{name}: {before.get(name, 'none')} → {after.get(name, 'none')}"
        for what, names, before, after in kinds
        for name in names
        if before.get(name) != after.get(name)
    ]


def in_words(change: Change) -> str:
    """Return a line for a change."""
    where = f"{change.contest}: {change.row}" if change.row else change.contest
    if change.change is None or change.old is None or change.new is None:
        return f"{change.verdict:8s} {where} ({change.why})"
    assert change.noise is not None
    least, most = 1 / (1 + change.noise), 1 + change.noise
    figures = f"{number(change.old)} → {number(change.new)}, ×{change.change:.2f}"
    figures += f" (noise: ×{least:.2f} to ×{most:.2f})"
    return f"{change.verdict:8s} {where}: {figures}{f', {change.why}' if change.why else ''}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the comparison and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="an earlier bench.json")
    parser.add_argument("new", type=Path, nargs="?", default=NEW, help=f"a later one (default {NEW})")
    arguments = parser.parse_args(argv)
    try:
        old, new = read(arguments.old), read(arguments.new)
    except BadResultError as error:
        print(f"bench-compare: {error}", file=sys.stderr)
        return 2
    print(f"old: {old.commit}, {old.date}; new: {new.commit}, {new.date}")
    if found := differences(old, new):
        print("\nNOT THE SAME CONDITIONS: only ratios within a file are compared, not absolute figures.")
        print("\n".join(f"  {line}" for line in found))
    changes = compared(old, new)
    order = ("slower", "missing", "faster", "same", "unknown", "new")
    print()
    for change in sorted(changes, key=lambda change: order.index(change.verdict)):
        print(in_words(change))
    slower = sum(change.verdict == "slower" for change in changes)
    missing = sum(change.verdict == "missing" for change in changes)
    print(f"\n{slower} slower beyond noise, {missing} missing, {len(changes)} compared")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
