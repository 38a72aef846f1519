"""Plots of one or several runs as a PNG or SVG, from their metrics.jsonl.

Several runs share the panels, each in its own colour, so that seeds can be compared. Equal metrics give an
equal SVG, byte for byte. matplotlib is used without pyplot, so no global state changes.

The rating has its own plot, since it comes from games and not from metrics: RUN/plots/rating.png.
`keisei evaluate` draws one beside its report.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from keisei.config.files import load_config
from keisei.errors import writing
from keisei.evaluation.evaluate import draw_curve
from keisei.evaluation.matches.match_conditions import conditions_of
from keisei.evaluation.matches.tournament import RESULTS, Tournament
from keisei.evaluation.ratings.rating_plot import METADATA, moves_label
from keisei.training.metrics import OPPONENTS, MetricsError, read_metrics
from keisei.training.parallel.worker_status import WORK_PHASES

Floats = npt.NDArray[np.float64]

_STYLES = ("-", "--", ":", "-.")  # of the curves within a panel, in turn; the colour is the run's


@dataclass(frozen=True)
class Run:
    """The metrics of a run: steps is float64 [U], a column float64 [U] with NaN where a metric is absent."""

    name: str
    steps: Floats
    rows: Sequence[Mapping[str, float]]

    @classmethod
    def read(cls, path: Path) -> "Run":
        """Read the metrics of a run's directory."""
        file = path / "metrics.jsonl"
        if not file.is_file():
            raise MetricsError(f"{path} is not a run: expected a file metrics.jsonl in it")
        rows = read_metrics(file)
        if not rows:
            raise MetricsError(f"{file} is empty: the run has not finished an update")
        steps = np.array([row["step"] for row in rows], np.float64)
        return cls(path.resolve().name, steps, rows)

    def column(self, name: str) -> Floats:
        """Return a metric over all updates."""
        return np.array([row.get(name, math.nan) for row in self.rows], np.float64)

    def smooth(self, values: Floats) -> Floats:
        """Return the running mean over the last 2 % of the updates, ignoring gaps."""
        return self.ratio(np.nan_to_num(values), np.isfinite(values).astype(np.float64))

    def ratio(self, parts: Floats, wholes: Floats) -> Floats:
        """Return running sum / running sum over the last 2 % of the updates, NaN where wholes is 0."""
        window = max(len(parts) // 50, 1)
        sums = [
            np.cumsum(np.concatenate([np.zeros(window), np.nan_to_num(values)])) for values in (parts, wholes)
        ]
        above, below = (total[window:] - total[:-window] for total in sums)
        shares = np.full(len(parts), math.nan)
        np.divide(above, below, out=shares, where=below > 0.5)  # counts, so 0.5 is none
        return shares


def plot_run(run_path: Path, out: Path | None = None) -> Path:
    """Draw the curves of a run, by default to <run>/plots/curves.png; return the file."""
    return plot_runs([run_path], out or run_path / "plots" / "curves.png")


def plot_rating(run_path: Path) -> Path | None:
    """Draw the rating of a run over its steps to <run>/plots/rating.png; None if it has fewer than two."""
    directory = run_path / "evaluation"
    if not (directory / RESULTS).is_file():
        return None
    config = load_config(run_path / "config.yaml")
    with Tournament(directory, conditions_of(config), config.run.seed) as tournament:
        ratings = tournament.ratings()
        return None if ratings is None else draw_curve(tournament, ratings, run_path / "plots")


def plot_runs(run_paths: Sequence[Path], out: Path) -> Path:
    """Overlay the curves of several runs in a .png or .svg; return the file."""
    if not run_paths:
        raise ValueError("expected at least one run to plot, got none")
    suffix = out.suffix.lower()
    if suffix not in METADATA:
        raise MetricsError(f"cannot draw {out}: expected a name ending in {' or '.join(METADATA)}")
    runs = [Run.read(path) for path in run_paths]
    with matplotlib.rc_context({"svg.hashsalt": "keisei", "font.size": 9}):
        figure = _draw(runs)
        out.parent.mkdir(parents=True, exist_ok=True)
        with writing(out):
            figure.savefig(out, dpi=120, metadata=METADATA[suffix])
    return out


def _draw(runs: Sequence[Run]) -> Figure:
    panels = dict(_PANELS)
    if any(np.isfinite(run.column("parallel/active_workers")).any() for run in runs):
        panels |= _WORKER_PANELS
    rows = len(panels) // 2
    figure = Figure(figsize=(12, 3 * rows), layout="constrained")
    figure.suptitle(runs[0].name if len(runs) == 1 else f"{len(runs)} runs")
    for axes, (title, panel) in zip(figure.subplots(rows, 2, sharex=True).flat, panels.items(), strict=True):
        axes.set_title(title, loc="left")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.set_major_formatter(moves_label)
        for index, run in enumerate(runs):
            panel(axes, run, None if len(runs) == 1 else f"C{index}")
        if not axes.lines:
            axes.text(
                0.5, 0.5, "nothing yet", ha="center", va="center", transform=axes.transAxes, color="grey"
            )
        elif sum(not str(line.get_label()).startswith("_") for line in axes.lines) > 1:
            axes.legend(frameon=False, fontsize=8)
    if len(runs) > 1:
        names = [Line2D([], [], color=f"C{index}") for index in range(len(runs))]
        figure.legend(names, [run.name for run in runs], loc="outside lower center", ncols=min(len(runs), 4))
    for axes in figure.axes[-2:]:
        axes.set_xlabel("moves")
    return figure


def _lines(axes: Axes, run: Run, color: str | None, curves: Mapping[str, Floats], marker: str = "") -> None:
    """Draw labelled curves: colours tell one run's apart, line styles several runs'; label each once."""
    known = {str(line.get_label()) for line in axes.lines}
    for index, (label, values) in enumerate(curves.items()):
        there = np.isfinite(values)
        if there.any():
            axes.plot(
                run.steps[there],
                values[there],
                color=color or f"C{index}",
                linestyle=_STYLES[index % len(_STYLES)] if color else "-",
                linewidth=1.4,
                marker=marker,
                markersize=4,
                label=f"_{label}" if label in known else label,
            )


def _evaluation(axes: Axes, run: Run, color: str | None) -> None:
    axes.set_ylim(0, 1.02)
    scores = {f"against {name}": run.column(f"evaluation/{name}_score") for name in OPPONENTS}
    _lines(axes, run, color, scores, marker="o")


def _results(axes: Axes, run: Run, color: str | None) -> None:
    axes.set_ylim(0, 1.02)
    finished = run.column("games/finished")
    words = {"draws": "draws", "black wins": "black_wins", "white wins": "white_wins"}
    shares = {label: run.ratio(run.column(f"games/{name}"), finished) for label, name in words.items()}
    _lines(axes, run, color, shares)


def _smoothed(**names: str) -> Callable[[Axes, Run, str | None], None]:
    """Return a panel of smoothed metrics, label=name; a single curve of one run also shows raw values."""

    def panel(axes: Axes, run: Run, color: str | None) -> None:
        if len(names) == 1 and color is None:
            values = run.column(next(iter(names.values())))
            if np.isfinite(values).any():
                axes.plot(run.steps, values, color="C0", alpha=0.25, linewidth=0.8, label="_measured")
        columns = {label.replace("_", " "): run.smooth(run.column(name)) for label, name in names.items()}
        _lines(axes, run, color, columns)

    return panel


_PANELS: Mapping[str, Callable[[Axes, Run, str | None], None]] = {
    "evaluation: score": _evaluation,
    "results of the training games": _results,
    "length of the training games, plies": _smoothed(length="games/length"),
    "entropy of the policy, nats": _smoothed(entropy="policy/entropy"),
    "losses": _smoothed(policy="loss/policy", value="loss/value"),
    "KL, clipped share, agreement with searches": _smoothed(
        KL="policy/approx_kl",
        clipped="policy/clip_fraction",
        search_KL="search/kl",
        agreement="search/agreement",
    ),
    "explained variance of the value": _smoothed(explained="value/explained_variance"),
    "moves per second": _smoothed(speed="speed/steps_per_second"),
}
# Only when workers collect. An even number, since there are two columns.
_WORKER_PANELS: Mapping[str, Callable[[Axes, Run, str | None], None]] = {
    "seconds of an update: the learner": _smoothed(
        **{
            phase: f"time/{phase}"
            for phase in ("collect", "encode", "update", "exchange", "wait", "synchronize")
        }
    ),
    "seconds of an update: all workers together": _smoothed(
        **{phase: f"parallel/seconds_{phase}" for phase in WORK_PHASES}
    ),
}
