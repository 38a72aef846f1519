"""Black's win rate over a game as a picture, PNG or SVG. Equal analyses give equal files, byte for byte.

matplotlib is used without pyplot, so no global state changes.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from keisei.analysis.game_analysis import GameAnalysis
from keisei.errors import UserError, writing
from keisei.shogi import Color

# No date, no version and stable ids, so that equal data give equal files.
_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}
_COLORS = ("#0072b2", "#d55e00")  # told apart by colour-blind readers too


def check_picture(path: Path) -> None:
    """Reject a file of another kind, before the work is done."""
    if path.suffix.lower() not in _METADATA:
        raise UserError(f"cannot draw {path}: expected a name that ends in {' or '.join(_METADATA)}")


def plot_game(path: Path, analyses: Sequence[GameAnalysis], missed: float) -> Path:
    """Draw the win rate by each network, with a mark where the first one's better move was missed."""
    check_picture(path)
    with matplotlib.rc_context({"svg.hashsalt": "keisei", "font.size": 10}):
        figure = Figure(figsize=(9, 4), layout="constrained")
        axes = figure.subplots()
        axes.axhline(50, color="grey", linewidth=0.9)
        for analysis, color in zip(analyses, _COLORS, strict=False):
            rates = [100 * rate for rate in analysis.black_win_rates]
            label = f"{analysis.network}, {analysis.visits} visits"
            axes.plot(range(len(rates)), rates, color=color, linewidth=1.6, label=label)
        first = [100 * rate for rate in analyses[0].black_win_rates]
        for side, marker in ((Color.BLACK, "v"), (Color.WHITE, "^")):
            at = [move.number for move in analyses[0].moves if move.side is side and move.loss >= missed]
            label = f"a better move of {side} was missed"
            axes.plot(at, [first[number] for number in at], marker, color=_COLORS[0], label=label)
        axes.set(ylim=(-3, 103), xlabel="moves", ylabel="win rate of Black, %")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="best")
        with writing(path):
            figure.savefig(path, dpi=120, metadata=_METADATA[path.suffix.lower()])
    return path
