"""Numbers, times, shares, curves and bars as text, for consoles."""

import math
from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉█"


def duration(seconds: float) -> str:
    """Return "7:05", "1:02:30" or, for NaN, "–"."""
    if not math.isfinite(seconds):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def number(value: float) -> str:
    """Return a number in at most 8 characters, "–" if it is absent or not finite."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}" if size < 1e6 else f"{value:.1e}"
    if size >= 100:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.3f}"
    return f"{value:.4f}" if size >= 1e-3 or size == 0 else f"{value:.1e}"


def quantity(value: float) -> str:
    """Return a count or a rate without decimals from 10 up, "–" if not finite."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def whole(value: float) -> str:
    """Return a whole number, "–" if not finite."""
    return f"{value:,.0f}" if math.isfinite(value) else "–"


def short_count(value: float) -> str:
    """Return a whole number in at most 5 characters below 10¹⁵, such as "9,999", "12.3k" or "412M"."""
    if not math.isfinite(value) or value < 10_000:
        return whole(value)
    return _scaled(value, ("", "k", "M", "G", "T"))


def data_size(size_bytes: float) -> str:
    """Return "412 MB", in powers of 1000, "–" if not finite."""
    return _scaled(size_bytes, (" B", " kB", " MB", " GB", " TB")) if math.isfinite(size_bytes) else "–"


def _scaled(value: float, units: Sequence[str]) -> str:
    """Return a number of at most three digits with its unit."""
    power = 0
    while value >= 999.5 and power < len(units) - 1:
        value /= 1000
        power += 1
    decimals = 1 if power and value < 99.95 else 0
    return f"{value:.{decimals}f}{units[power]}"


def percent(share: float) -> str:
    """Return "74 %", or "–" for NaN."""
    return f"{share * 100:.0f} %" if math.isfinite(share) else "–"


def elo(rating: float, low: float, high: float) -> str:
    """Return a rating and its interval, such as "Elo 812 (750 to 874)".

    An infinite one, of a player that won or lost all its games, is "Elo above 750" or "Elo below 874".
    """
    if math.isfinite(rating):
        return f"Elo {round(rating)} ({round(low)} to {round(high)})"
    if math.isnan(rating):
        return "Elo unknown"
    return f"Elo above {round(low)}" if rating > 0 else f"Elo below {round(high)}"


def sparkline(values: Sequence[float], width: int, rows: int = 1) -> list[str]:
    """Return the values as rows of blocks scaled from minimum to maximum; NaN is a gap.

    Equal values are at half the height, but zeros at the bottom. If there are more values than columns, each
    column is the mean of its share of them.
    """
    shown = _squeezed(values, width)
    finite = [value for value in shown if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    levels = []
    for value in shown:
        if not math.isfinite(value):
            levels.append(0)
        elif high > low:
            levels.append(1 + round((value - low) / (high - low) * (8 * rows - 1)))
        else:
            levels.append(4 * rows if value else 1)
    return [
        "".join(BLOCKS[min(max(level - 8 * row, 0), 8)] for level in levels) for row in reversed(range(rows))
    ]


def stretched(values: Sequence[float], width: int) -> list[float]:
    """Return the values over this many columns, with straight lines between them; many stay as they are."""
    last = len(values) - 1
    if not 0 < last < width - 1:
        return list(values)
    found = []
    for column in range(width):
        before, part = divmod(column * last, width - 1)
        share = part / (width - 1)
        after = values[before + 1] if share else values[before]
        found.append(values[before] * (1 - share) + after * share)
    return found


def _squeezed(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    means = []
    for column in range(width):
        share = values[column * len(values) // width : (column + 1) * len(values) // width]
        finite = [value for value in share if math.isfinite(value)]
        means.append(sum(finite) / len(finite) if finite else math.nan)
    return means


def bar(share: float, width: int) -> str:
    """Return a horizontal bar, accurate to an eighth of a column."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, part = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[part] if part else "")
