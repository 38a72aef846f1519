"""python bench/compare.py OLD.json [NEW.json]: what became faster or slower between two results of make
bench.

A row is compared by its ratio to the reference, the first contender of its contest, within each round: that
says the same on a busy machine and a quiet one. A peer's row is turned round: it is the reference that became
faster or slower than that peer. A reference itself is compared by its own figure, and only if machine,
versions and settings are the same in both files. A change counts if it is beyond the noise: half of the range
of the old run's rounds plus half of the new one's, relative to their medians, and at least 5 %. With fewer
than three rounds in a file there is no telling. Exit code 1: a regression; 2: a file that cannot be read.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contest import Result, Row, ratios
from results import BadResultError, Report, read
from tables import number

FLOOR = 0.05  # a smaller change is never reported
ROUNDS = 3
NEW = Path("build/bench/bench.json")


@dataclass(frozen=True)
class Change:
    """One row in both files. verdict: slower, faster, same, unknown, missing or new.

    change: relative to the old figure; below 0 is worse. noise: how large it must be to count.
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
    return (max(figures) - min(figures)) / 2 / statistics.median(figures)


def judged(contest: str, row: str, old: Sequence[float], new: Sequence[float], better: str) -> Change:
    """Return whether the figures of a row changed beyond the noise."""
    if not old or not new or min(*old, *new) <= 0:
        return Change(contest, row, "unknown", why="no figures in one of the files")
    before, after = statistics.median(old), statistics.median(new)
    change = after / before - 1 if better == "higher" else before / after - 1
    noise = max(FLOOR, half_range(old) + half_range(new))
    if min(len(old), len(new)) < ROUNDS:
        return Change(contest, row, "unknown", before, after, change, noise, f"fewer than {ROUNDS} rounds")
    # A change to half the speed is as large as one to double: the loss is measured from the new figure.
    size = change if change >= 0 else 1 - 1 / (1 + change)
    verdict = "same" if abs(size) <= noise else "faster" if size > 0 else "slower"
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
            changes.append(judged(old.key, name, *figures, old.better))
        elif index == 0 or old.rows[0].name != new.rows[0].name:
            changes.append(_reference(old, before, after, comparable))
        else:
            figures = ratios(before, old.rows[0]), ratios(after, new.rows[0])
            changes.append(judged(old.key, before.name, *figures, old.better))
    return changes + [Change(old.key, name, "new", why="the row is not in the old file") for name in rows]


def _reference(old: Result, before: Row, after: Row, comparable: bool) -> Change:
    if not comparable:
        why = "another machine or other versions: its own figure says nothing"
        return Change(old.key, before.name, "unknown", before.median, after.median, why=why)
    return judged(old.key, before.name, before.values, after.values, old.better)


def differences(old: Report, new: Report) -> list[str]:
    """Return what differs in machine, versions and settings."""
    kinds = (
        ("", old.machine, new.machine),
        ("version of ", old.packages, new.packages),
        ("setting ", old.settings, new.settings),
    )
    return [
        f"{what}{name}: {before.get(name, 'none')} → {after.get(name, 'none')}"
        for what, before, after in kinds
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def in_words(change: Change) -> str:
    """Return a line for a change."""
    where = f"{change.contest}: {change.row}" if change.row else change.contest
    if change.change is None or change.old is None or change.new is None:
        return f"{change.verdict:8s} {where} ({change.why})"
    assert change.noise is not None
    figures = f"{number(change.old)} → {number(change.new)}, {change.change:+.0%} (noise {change.noise:.0%})"
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
