"""A run's strength in one picture for a README or a talk: scores and Elo over moves, in large type.

It comes from the games in RUN/evaluation, which are kept pair by pair, so each point has its 95 % interval.
Equal games give equal files, byte for byte. `keisei plot RUN --summary FILE` draws it; keisei.training.plot
draws all the curves.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keisei.config.files import load_config
from keisei.errors import writing
from keisei.evaluation.matches.match_conditions import conditions_of
from keisei.evaluation.matches.match_result import score_interval
from keisei.evaluation.matches.results_store import StoredGame
from keisei.evaluation.matches.tournament import RESULTS, Tournament
from keisei.evaluation.ratings.rating_plot import METADATA, moves_label
from keisei.shogi import Color
from keisei.training.metrics import MetricsError

# Drawn at twice the size at which it is shown, 800 pixels wide: 10 inches at 160 dots.
_SIZE, _DOTS, _TYPE = (10, 4.2), 160, 15
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # told apart by colour-blind readers too
_BAND = 0.18  # opacity of the intervals


class Point(NamedTuple):
    """A value after so many moves, and its 95 % interval."""

    step: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Strength:
    """What a run's games say: scores by opponent, the network's Elo, and the Elo of the opponents."""

    scores: Mapping[str, Sequence[Point]]
    elo: Sequence[Point]
    opponents: Mapping[str, float]


def read_strength(run: Path) -> Strength:
    """Read the evaluation games of a run's directory; a MetricsError if there are none yet."""
    directory = run / "evaluation"
    if not (directory / RESULTS).is_file():
        raise MetricsError(f"{run} has no evaluation games: expected a file evaluation/{RESULTS} in it")
    config = load_config(run / "config.yaml")
    with Tournament(directory, conditions_of(config), config.run.seed) as tournament:
        players = tournament.results.players()
        ratings = tournament.ratings()
        stored = tournament.results.games(str(tournament.conditions))
        games = [game for game in stored if game.seed == tournament.seed]
    steps = {one.identity: one.step for one in players.values() if one.step is not None}
    if ratings is None or not steps:
        raise MetricsError(f"{run} has no evaluation games yet: expected some against random")
    fixed = [one for one in reversed(ratings.table) if one.player not in steps]  # the weakest first
    names = {one.player: players[one.player].name for one in fixed}
    # A network that has won or lost all its games has no finite Elo: it is left out.
    networks = [one for one in ratings.table if one.player in steps and math.isfinite(one.elo)]
    elo = [Point(steps[one.player], one.elo, one.low, one.high) for one in networks]
    opponents = {names[one.player]: one.elo for one in fixed}
    return Strength(_scores(games, steps, names), sorted(elo), opponents)


def _scores(
    games: Iterable[StoredGame], steps: Mapping[str, int], names: Mapping[str, str]
) -> dict[str, list[Point]]:
    """Return the networks' scores by opponent, from the pairs of which both games are there."""
    pairs: defaultdict[tuple[str, str], defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for game in games:
        for network, opponent, color in (
            (game.black, game.white, Color.BLACK),
            (game.white, game.black, Color.WHITE),
        ):
            if network in steps and opponent in names:
                half_points = 1 if game.winner is None else 2 if game.winner == color else 0
                pairs[network, opponent][game.pair].append(half_points)
    scores: defaultdict[str, list[Point]] = defaultdict(list)
    for (network, opponent), results in pairs.items():
        sums = Counter(sum(pair) for pair in results.values() if len(pair) == 2)
        if played := sums.total():
            value = sum(points * times for points, times in sums.items()) / (4 * played)
            interval = score_interval([sums[points] for points in range(5)])
            scores[names[opponent]].append(Point(steps[network], value, *interval))
    return {name: sorted(scores[name]) for name in names.values() if name in scores}


def plot_summary(run: Path, out: Path) -> Path:
    """Draw the scores and the Elo of a run over its moves in a .png or .svg; return the file."""
    suffix = out.suffix.lower()
    if suffix not in METADATA:
        raise MetricsError(f"cannot draw {out}: expected a name ending in {' or '.join(METADATA)}")
    strength = read_strength(run)
    with matplotlib.rc_context({"svg.hashsalt": "keisei", "font.size": _TYPE}):
        figure = _draw(strength)
        out.parent.mkdir(parents=True, exist_ok=True)
        with writing(out):
            figure.savefig(out, dpi=_DOTS, metadata=METADATA[suffix])
    return out


def _draw(strength: Strength) -> Figure:
    figure = Figure(figsize=_SIZE, layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    for axes, title in ((left, "score against"), (right, "Elo of the network")):
        axes.set_title(title, loc="left", fontsize=_TYPE + 1)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.set_major_formatter(moves_label)
        axes.set_xlabel("moves of self-play")
    left.set_ylim(-0.02, 1.02)
    left.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    for (name, points), color in zip(strength.scores.items(), cycle(_COLORS), strict=False):
        _curve(left, points, color, name)
    left.set_xlim(left=0)
    if strength.scores:
        left.legend(frameon=False, loc="best", fontsize=_TYPE - 1)
    _curve(right, strength.elo, "black", "network")
    _references(right, strength.opponents)
    return figure


def _curve(axes: Axes, points: Sequence[Point], color: str, label: str) -> None:
    """Draw points with their intervals."""
    steps = [point.step for point in points]
    lows, highs = [point.low for point in points], [point.high for point in points]
    axes.fill_between(steps, lows, highs, color=color, alpha=_BAND, linewidth=0)
    axes.plot(steps, [point.value for point in points], color=color, linewidth=2.5, marker="o", label=label)


def _references(axes: Axes, opponents: Mapping[str, float]) -> None:
    """Draw opponents as dashed lines with their names; neighbours whose names would collide share a label."""
    finite = {name: elo for name, elo in opponents.items() if math.isfinite(elo)}
    for elo in finite.values():
        axes.axhline(elo, color="grey", linestyle="--", linewidth=1.5)
    bottom, top = axes.get_ylim()
    labels: dict[float, list[str]] = {}
    for name, elo in sorted(finite.items(), key=lambda one: one[1]):
        near = [place for place in labels if elo - place < 0.09 * (top - bottom)]
        labels.setdefault(near[-1] if near else elo, []).append(name)
    for place, names in labels.items():
        above = place == min(
            labels
        )  # the lowest has no room below; the others leave it to a curve that rises
        axes.annotate(
            ", ".join(names),
            (0.99, place),
            xytext=(0, 3 if above else -5),
            textcoords="offset points",
            xycoords=axes.get_yaxis_transform(),
            ha="right",
            va="bottom" if above else "top",
            color="#444444",
            fontsize=_TYPE - 1,
        )
