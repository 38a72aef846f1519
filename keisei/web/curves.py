"""What a stream tells of metrics: all of them in buckets, or the rows since a mark.

Metrics of evaluations are rare: they go out as points, the others as curves whose arrays are aligned.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keisei.web.metric_rows import Buckets, MetricRows, short, shortened

RARE = "evaluation/"
MOST_NAMES = 120
MOST_ROWS = 500  # since a mark; a page that has missed more gets the curves anew
_MOST_POINTS = 1000


def curves(
    rows: MetricRows, names: Sequence[str], first: int = 0, after: int | None = None
) -> dict[str, Any]:
    """Return the `curves` event's data: metrics over the whole run, or over the rows first to after."""
    after = len(rows) if after is None else after
    buckets = Buckets.of(first, after)
    told: dict[str, Any] = {
        "anew": True,
        "x": {
            "step": rows.steps[buckets.lasts].tolist(),
            "time": shortened(rows.seconds[buckets.lasts].tolist()),
        },
        "curves": {},
        "points": {},
    }
    for name in names:
        if name.startswith(RARE):
            told["points"][name] = _points(rows, name, first, after)
        else:
            told["curves"][name] = buckets.summary(rows.column(name))
    return told


def stretch(rows: MetricRows, start: int, end: int) -> tuple[int, int]:
    """Return the first row at or after a step, and the one after the last at or before another step."""
    first, after = np.searchsorted(rows.steps, [start, end + 1])
    return int(first), max(int(first), int(after))


def rows_since(rows: MetricRows, names: Sequence[str], first: int) -> dict[str, Any]:
    """Return the `rows` event's data: the rows from one on."""
    return {
        "step": rows.steps[first:].tolist(),
        "time": shortened(rows.seconds[first:].tolist()),
        "values": {name: shortened(rows.column(name, first).tolist()) for name in names},
    }


def _points(rows: MetricRows, name: str, first: int, after: int) -> list[list[float | None]]:
    values = rows.column(name)[first:after]
    places = np.flatnonzero(np.isfinite(values))
    if len(places) > _MOST_POINTS:  # evenly, and the last one
        places = places[np.linspace(0, len(places) - 1, _MOST_POINTS).astype(np.int64)]
    return [
        [
            int(rows.steps[first + place]),
            short(float(rows.seconds[first + place])),
            short(float(values[place])),
        ]
        for place in places.tolist()
    ]
