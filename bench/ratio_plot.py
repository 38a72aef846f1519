"""One picture of a benchmark: how many times as fast as each peer our first contender is, on a log axis.

Of several runs it shows the medians, as the tables do.
"""

from collections.abc import Sequence
from pathlib import Path

from results import Report
from tables import number, times

COLORS = ("#2a78b5", "#e08a1e", "#3a9d5d", "#b5483a", "#7b5ea7", "#6b6b6b")


def bars(reports: Sequence[Report]) -> list[tuple[str, str, float]]:
    """Return (contest, peer row, how many times as fast our first row is) for every peer with a figure.

    Strength is not speed, and left out.
    """
    found = []
    for contest in reports[0].contests:
        runs = [one for report in reports for one in report.contests if one.key == contest.key]
        for row in contest.rows if not contest.key.startswith("strength") else []:
            factor = times(runs, row.name) if row.peer and not contest.rows[0].peer else None
            if factor is not None:
                found.append((contest.key, row.name, factor))
    return found


def draw(reports: Sequence[Report], path: Path) -> None:
    """Draw the bars; a bar to the left of 1 is a peer that is faster."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = bars(reports)
    keys = list(dict.fromkeys(key for key, _, _ in shown))
    height = max(2.0, 0.34 * (len(shown) + len(keys)) + 1.2)
    figure, axes = plt.subplots(figsize=(8, height), dpi=150, layout="constrained")
    places, labels, at = [], [], 0.0
    for key in keys:
        places.append(at)
        labels.append(key)
        at += 1
        for _, name, factor in (bar for bar in shown if bar[0] == key):
            axes.barh(at, factor - 1, left=1, color=COLORS[keys.index(key) % len(COLORS)], height=0.7)
            side, where = (1.06, "left") if factor >= 1 else (1 / 1.06, "right")
            axes.text(factor * side, at, f"×{number(factor)}", va="center", ha=where, fontsize=9)
            places.append(at)
            labels.append(name)
            at += 1
    axes.set_yticks(places, labels, fontsize=9)
    axes.tick_params(axis="y", length=0)
    for text in axes.get_yticklabels():
        if text.get_text() in keys:  # a contest's name above its bars
            text.set_fontweight("bold")
    axes.set_xscale("log")
    factors = [factor for _, _, factor in shown]
    left, right = min([0.5, *(factor / 2 for factor in factors)]), max([20.0, *(4 * one for one in factors)])
    axes.set(xlim=(left, right), ylim=(at, -0.7))
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("keisei is this many times as fast (left of 1: the peer is faster)", fontsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    if not shown:
        axes.text(0.5, 0.5, "no peer was measured", transform=axes.transAxes, ha="center")
    figure.savefig(path)
    plt.close(figure)
