"""Ratings as a plain-text or Markdown table."""

import math
from collections.abc import Mapping

from keisei.evaluation.ratings.rating import Rating, Ratings


def format_table(ratings: Ratings, names: Mapping[str, str] | None = None) -> str:
    """Return ratings as plain text, one line per player; names: display names by identity.

    LOS is the likelihood of superiority over the player on the next line.
    """
    rows = _rows(ratings, names or {})
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]]) + "\n"


def format_markdown(ratings: Ratings, names: Mapping[str, str] | None = None) -> str:
    """Return ratings as a Markdown table; names: display names by identity."""
    rows = [[cell.replace("|", "\\|") for cell in row] for row in _rows(ratings, names or {})]
    rule = ["---", *["---:"] * (len(rows[0]) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [rows[0], rule, *rows[1:]])


def _rows(ratings: Ratings, names: Mapping[str, str]) -> list[list[str]]:
    table = ratings.table
    rows = [["player", "Elo", f"{100 * ratings.confidence:g} % interval", "games", "score", "LOS"]]
    for rating, below in zip(table, [*table[1:], None], strict=True):
        score = "" if math.isnan(rating.score) else f"{100 * rating.score:.1f} %"
        name = names.get(rating.player, rating.player)
        rows.append([name, _elo(rating), _interval(ratings, rating), str(rating.games), score])
        rows[-1].append(_superiority(ratings, rating, below))
    return rows


def _elo(rating: Rating) -> str:
    """Return an Elo, "> 812" if it has only a lower bound, "?" if it has none."""
    if math.isnan(rating.elo):
        return "?"
    if math.isinf(rating.elo):
        return f"> {_whole(rating.low)}" if rating.elo > 0 else f"< {_whole(rating.high)}"
    return _whole(rating.elo)


def _interval(ratings: Ratings, rating: Rating) -> str:
    if rating.player == ratings.anchor:
        return "anchor"
    if math.isnan(rating.elo):
        return "no comparison"
    return f"{_whole(rating.low)} to {_whole(rating.high)}" if math.isfinite(rating.elo) else "one bound"


def _whole(elo: float) -> str:
    return str(round(elo))  # never "-0"


def _superiority(ratings: Ratings, rating: Rating, below: Rating | None) -> str:
    if below is None or math.isnan(rating.elo) or math.isnan(below.elo):
        return ""
    percent = round(100 * ratings.superiority(rating.player, below.player))
    return "> 99 %" if percent == 100 else f"{percent} %"  # nothing is certain
