"""Ratings over training steps as one picture, PNG or SVG, with other players as reference lines.

Equal ratings give equal files, byte for byte. It uses matplotlib without pyplot: nothing outside the figure
changes.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keisei.errors import writing

# No date, no version and stable ids, so that equal data give equal files.
METADATA: Mapping[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}


class RatedStep(NamedTuple):
    """The rating of a run's checkpoint; low and high may be infinite, and so may elo with one of them."""

    step: int
    elo: float
    low: float
    high: float


def plot_rating_curve(
    path: Path, curves: Mapping[str, Sequence[RatedStep]], lines: Mapping[str, float]
) -> Path:
    """Draw the ratings of runs over their steps, and players as horizontal lines by name; return the file.

    An open-ended interval is an arrow; if the Elo itself is infinite, it begins at the finite bound.
    Steps without any bound are left out.
    """
    suffix = path.suffix.lower()
    if suffix not in METADATA:
        raise ValueError(f"cannot draw {path}: expected a name that ends in {' or '.join(METADATA)}")
    with matplotlib.rc_context({"svg.hashsalt": "keisei", "font.size": 9}):
        figure = _draw(curves, lines)
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing(path):
            figure.savefig(path, dpi=120, metadata=METADATA[suffix])
    return path


def _draw(curves: Mapping[str, Sequence[RatedStep]], lines: Mapping[str, float]) -> Figure:
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    axes.set_title("rating over training", loc="left")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(moves_label)
    axes.set_xlabel("moves")
    axes.set_ylabel("Elo")
    finite = [
        value for steps in curves.values() for step in steps for value in step[1:] if math.isfinite(value)
    ]
    finite += [elo for elo in lines.values() if math.isfinite(elo)]
    arrow = 0.08 * (max(finite) - min(finite) or 100.0) if finite else 0.0
    for index, (name, steps) in enumerate(curves.items()):
        _curve(axes, name, sorted(steps), f"C{index}", arrow)
    if not axes.lines:
        axes.text(0.5, 0.5, "nothing yet", ha="center", va="center", transform=axes.transAxes, color="grey")
    _references(axes, {name: elo for name, elo in lines.items() if math.isfinite(elo)})
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=8, loc="best")
    return figure


def _curve(axes: Axes, name: str, steps: Sequence[RatedStep], color: str, arrow: float) -> None:
    """Draw one run; arrow: the length of an arrow, in Elo."""
    known = [step for step in steps if math.isfinite(step.elo)]
    if any(math.isfinite(value) for step in steps for value in step[1:]):
        xs, ys = [step.step for step in known], [step.elo for step in known]
        axes.plot(xs, ys, color=color, linewidth=1.4, marker="o", markersize=4, label=name)
    for step in steps:
        ends = [bound for bound in (step.low, step.high) if math.isfinite(bound)]
        if not ends:
            continue
        low, high = min(ends), max(ends)
        if math.isfinite(step.elo):
            low, high = min(low, step.elo), max(high, step.elo)
        if math.isinf(step.high):
            high += arrow
            axes.plot(step.step, high, color=color, marker="^", markersize=5, label="_without upper bound")
        if math.isinf(step.low):
            low -= arrow
            axes.plot(step.step, low, color=color, marker="v", markersize=5, label="_without lower bound")
        axes.vlines(step.step, low, high, color=color, linewidth=1.0, alpha=0.6)
        axes.plot(
            [step.step] * len(ends), ends, color=color, linestyle="", marker="_", markersize=6, alpha=0.6
        )


def _references(axes: Axes, lines: Mapping[str, float]) -> None:
    """Draw players as dashed lines, with names on the right, moved apart where they are close."""
    for elo in lines.values():
        axes.axhline(elo, color="grey", linestyle="--", linewidth=0.9, label="_reference")
    bottom, top = axes.get_ylim()
    place, gap = -math.inf, (top - bottom) * 0.035
    for name, elo in sorted(lines.items(), key=lambda line: line[1]):
        place = max(elo, place + gap)
        axes.text(
            1.01, place, name, transform=axes.get_yaxis_transform(), va="center", color="grey", fontsize=8
        )


def moves_label(value: float, _position: float) -> str:
    """Return a number of moves as an axis label: 500k, 1.5M."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e3 else f"{value:g}"
